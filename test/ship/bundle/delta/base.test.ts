import { writeFile } from 'node:fs/promises';
import { openBase } from '../../../../src/ship/bundle/delta/base.ts';
import * as assert from '../../../support/assert.ts';
import { bundleOfPackages } from '../../../support/deltas.ts';
import { suite } from '../../../support/suite.ts';
import { tree } from '../../../support/tree.ts';

const test = suite('ship/bundle/delta/base');
const ALPHA = { name: 'alpha', version: '1.0.0', files: [{ path: 'install.sh', data: 'alpha() { :; }\n' }] };

test('a bundle beside what was unpacked for kURL counts, and so does that', async ({ signal }) => {
  await using box = await tree({ 'kurl/addons/gamma/1.0.0/install.sh': 'gamma() { :; }\n', 'kurl/asset.tgz': 'x' });
  await writeFile(box.at('b.tar.gz'), (await bundleOfPackages([ALPHA])).bytes);
  const base = await openBase(box.path, { report: () => assert.unreachable('nothing is left out'), signal });
  assert.equal(base.packages, ['addons/alpha/1.0.0', 'addons/gamma/1.0.0']);
});

test('a file that is named like a folder of packages is no hindrance', async ({ signal }) => {
  await using box = await tree({ 'site/kurl': 'text', 'site/packages': 'text' });
  await writeFile(box.at('site/b.tar.gz'), (await bundleOfPackages([ALPHA])).bytes);
  const base = await openBase(box.at('site'), { report: () => assert.unreachable('nothing is left out'), signal });
  assert.equal(base.packages, ['addons/alpha/1.0.0']);
});

test.run();
