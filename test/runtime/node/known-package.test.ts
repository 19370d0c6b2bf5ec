import { readFile, rm, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { addonRef } from '../../../src/core/ref.ts';
import { knownPackage } from '../../../src/runtime/node/remote-package.ts';
import { placedPackage } from '../../../src/runtime/node/placed-package.ts';
import { readRecords } from '../../../src/runtime/node/records.ts';
import { NO_RECORDS } from '../../../src/runtime/plan/records.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { packagesOf, run, tracer } from '../../support/node-install.ts';
import { packageOf } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('packages that lie in place');

test('what lies in place is known without its package; what has gone by the time of the run is fetched after all', async () => {
  const { files } = tracer('aaa');
  const list = Object.entries(files).map(([path, data]) => ({ path, data }));
  const { bytes, addon } = packageOf('aaa', '1.0.0', list);
  await using box = await tree({ 'store/aaa.tar.gz': bytes });
  await run(box, await packagesOf(bundleOf([tracer('aaa')])));
  const records = await readRecords(box.at('node'));
  const ref = addonRef('aaa', '1.0.0');
  const placed = await placedPackage(box.at('node'), ref, addon.digest, { ...records, signal: never });
  if (placed === undefined) throw new Error('it lies in place');
  assert.equal(placed.files.map(({ path }) => path).toSorted(), ['addon.json', ...Object.keys(files)].toSorted());
  const places = [{ store: createFolderStore(box.at('store')), key: 'aaa.tar.gz' }];
  const published = { digest: addon.digest, sha256: digestOf(bytes), size: bytes.byteLength };
  const known = knownPackage({ name: 'aaa-1.0.0', published, places }, placed, published.size);
  assert.is((await run(box, [known])).addons[0]?.outcome, 'already applied');
  await rm(box.at('node/addons/aaa/1.0.0/install.sh'));
  assert.is((await run(box, [known])).addons[0]?.outcome, 'already applied');
  assert.is(await readFile(box.at('node/addons/aaa/1.0.0/install.sh'), 'utf8'), files['install.sh']);
});

test('neither another package, nor one that the records do not vouch for, nor a damaged one is known', async () => {
  await using box = await tree();
  const [source] = await packagesOf(bundleOf([tracer('aaa')]));
  if (source === undefined) throw new Error('one package');
  await run(box, [source]);
  const { ref, addon } = source;
  const records = await readRecords(box.at('node'));
  const isKnown = async (digest = addon.digest, from = records): Promise<boolean> =>
    (await placedPackage(box.at('node'), ref, digest, { ...from, signal: never })) !== undefined;
  assert.equal(
    [await isKnown(), await isKnown(digestOf('x')), await isKnown(addon.digest, NO_RECORDS)],
    [true, false, false],
  );
  await writeFile(box.at('node/addons/aaa/1.0.0/addon.json'), '{');
  assert.not(await isKnown());
});

test.run();
