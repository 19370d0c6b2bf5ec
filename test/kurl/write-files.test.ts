import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findAddons } from '../../src/manifest/find-addons.ts';
import { readAddon } from '../../src/manifest/read-addon.ts';
import { checkRepository } from '../../src/kurl/migrate.ts';
import { newFiles, writeNewFiles } from '../../src/kurl/write-files.ts';
import { parseOrderFile } from '../../src/ship/release/version-order.ts';
import * as assert from '../support/assert.ts';
import { writeKurlRepository } from '../support/kurl-repository.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('migrate/write-files');
const LIBRARY = join(import.meta.dirname, '../../scripts/lib');
const { signal } = new AbortController();

async function plan(root: string, out: string): Promise<ReadonlyMap<string, string>> {
  const migration = await checkRepository(root, { library: LIBRARY, searchPath: process.env['PATH'] ?? '', signal });
  return newFiles(migration, out);
}

/** Digests of all files of all add-ons. */
async function digests(root: string): Promise<unknown> {
  const { folders } = await findAddons(root, [], { signal });
  const addons = [];
  for (const folder of folders) addons.push(await readAddon(folder, { signal }));
  return addons.map(({ ref, files }) => [ref, files]);
}

test('in place: order files and a configuration are added, and no file of an add-on changes', async () => {
  await using box = await tree();
  await writeKurlRepository(box.path, { count: 25 });
  const before = await digests(box.path);
  const written = await writeNewFiles(box.path, await plan(box.path, box.path), { dryRun: false, signal });
  assert.equal(
    written.map(({ path, outcome }) => `${path} ${outcome}`),
    [
      'addons/antrea/versions.json written',
      'addons/aws/versions.json written',
      'addons/calico/versions.json written',
      'addons/collectd/versions.json written',
      'addons/containerd/versions.json written',
      '.curlew-lint.json written',
    ],
  );
  const order = parseOrderFile(await readFile(box.at('addons/antrea/versions.json'), 'utf8'), 'antrea');
  assert.equal(order, ['1.0.6', '1.0.5', '1.0.4', '1.0.3', '1.0.2', '1.0.1', '1.0.0']);
  assert.equal(await digests(box.path), before);
  const again = await writeNewFiles(box.path, await plan(box.path, box.path), { dryRun: false, signal });
  assert.ok(again.every(({ outcome }) => outcome === 'same'));
});

test('what is there already stays as it is, and that is told', async () => {
  await using box = await tree({ 'addons/antrea/versions.json': '["1.0.0"]\n' });
  await writeKurlRepository(box.path, { count: 3 });
  const written = await writeNewFiles(box.path, await plan(box.path, box.path), { dryRun: false, signal });
  assert.is(written.find(({ path }) => path === 'addons/antrea/versions.json')?.outcome, 'kept');
  assert.is(await readFile(box.at('addons/antrea/versions.json'), 'utf8'), '["1.0.0"]\n');
});

test('into another folder the categories go along', async () => {
  await using box = await tree();
  await using out = await tree();
  await writeKurlRepository(box.path, { count: 7 });
  await writeNewFiles(out.at('new'), await plan(box.path, out.at('new')), { dryRun: false, signal });
  const [from, to] = [box.at('addons/antrea/categories.json'), out.at('new/addons/antrea/categories.json')];
  assert.is(await readFile(to, 'utf8'), await readFile(from, 'utf8'));
});

test('a link on the way is not followed', async () => {
  await using box = await tree();
  await using outside = await tree();
  await mkdir(box.at('addons'));
  await symlink(outside.path, box.at('addons/demo'));
  const files = new Map([['addons/demo/versions.json', '[]\n']]);
  await assert.rejectsWith(
    writeNewFiles(box.path, files, { dryRun: false, signal }),
    'FILE_UNUSABLE',
    /it is a symbolic link/,
  );
  await writeFile(box.at('file'), '');
  await assert.rejectsWith(writeNewFiles(box.at('file'), files, { dryRun: false, signal }), 'FILE_UNUSABLE');
});

test.run();
