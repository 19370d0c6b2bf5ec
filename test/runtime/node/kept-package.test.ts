import { execa } from 'execa';
import { mkdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { keptPackage } from '../../../src/runtime/node/kept-package.ts';
import { recordPlaced } from '../../../src/runtime/node/placed-package.ts';
import { addonRef } from '../../../src/core/ref.ts';
import { memorySource, readIndex } from '../../../src/formats/archive/read.ts';
import { archivePackages, type SourcePackage } from '../../../src/runtime/node/source.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { bundleOf } from '../../support/node-bundles.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('runtime/kept-package', { timeoutMs: 20_000 });

const REF = addonRef('aaa', '1.0.0', 'addons');
const FOLDER = 'addons/aaa/1.0.0';

/** A package in its place, as a run has put it there. */
async function placed(box: Tree): Promise<SourcePackage> {
  const files = { 'install.sh': 'aaa() { :; }\n', 'pod.yaml': 'kind: Pod\n' };
  const source = memorySource('b.tar.gz', bundleOf([{ name: 'aaa', version: '1.0.0', files }]));
  const [one] = await archivePackages(source, await readIndex(source, { signal: never }), { signal: never });
  if (one === undefined) throw new Error('no package');
  await mkdir(box.at('addons/aaa'), { recursive: true });
  await one.extract(box.at(FOLDER), { signal: never });
  await recordPlaced(box.path, one, { signal: never });
  return one;
}

async function kept(box: Tree, { addon }: SourcePackage): Promise<SourcePackage> {
  return keptPackage(box.path, REF, addon.digest, { signal: never });
}

test('a package is copied, and read, as it was proved', async () => {
  await using box = await tree();
  const found = await kept(box, await placed(box));
  await found.extract(box.at('copy'), { signal: never });
  assert.is(await readFile(box.at('copy/install.sh'), 'utf8'), 'aaa() { :; }\n');
});

test('what was exchanged after the proof is neither copied nor read', async () => {
  await using box = await tree();
  const found = await kept(box, await placed(box));
  await writeFile(box.at(FOLDER, 'install.sh'), 'aaa() { evil; }\n');
  await assert.rejectsWith(found.extract(box.at('copy'), { signal: never }), 'DIGEST_MISMATCH', /install\.sh/);
  const read = async (): Promise<void> => {
    for await (const _ of found.read('install.sh', { signal: never }));
  };
  await assert.rejectsWith(read(), 'DIGEST_MISMATCH', /install\.sh/);
});

test('a pipe in the place of what says what a package is is not waited for', async () => {
  await using box = await tree();
  const one = await placed(box);
  await rm(box.at(FOLDER, 'addon.json'));
  await execa('mkfifo', [box.at(FOLDER, 'addon.json')]);
  await assert.rejectsWith(kept(box, one), 'NOT_FOUND', /no longer on this node or has changed/);
});

test('what a hook has left beside the files is not read', async () => {
  await using box = await tree();
  const one = await placed(box);
  await writeFile(box.at(FOLDER, 'disk.img'), '');
  // No test has the time to read that.
  await truncate(box.at(FOLDER, 'disk.img'), 2 ** 42);
  const paths = (await kept(box, one)).files.map(({ path }) => path);
  assert.equal(paths.toSorted(), ['addon.json', 'install.sh', 'pod.yaml']);
});

test.run();
