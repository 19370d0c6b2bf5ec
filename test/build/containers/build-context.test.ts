import { chmod, symlink, truncate, writeFile } from 'node:fs/promises';
import { readBuildContext } from '../../../src/build/containers/build-context.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('build/build-context');

const COPYING = 'FROM a\nCOPY . /\n';

async function read(box: Tree, path: string, signal: AbortSignal) {
  const roots = { repository: box.path, addon: box.at('addons/tool/1.0') };
  return readBuildContext(path, roots, 'dockerout x', { signal });
}

test('the root of the repository comes before the Manifest’s folder', async ({ signal }) => {
  await using box = await tree({ Dockerfile: 'FROM root\n', 'addons/tool/1.0/Dockerfile': 'FROM near\n' });
  assert.is((await read(box, 'Dockerfile', signal)).dockerfile.text, 'FROM root\n');
  await using other = await tree({ 'addons/tool/1.0/Dockerfile': 'FROM near\n' });
  assert.is((await read(other, 'Dockerfile', signal)).dockerfile.text, 'FROM near\n');
});

test('a Dockerfile that copies nothing sees nothing', async ({ signal }) => {
  await using box = await tree({ 'd/Dockerfile': 'FROM a\nRUN true\n', 'd/other': 'x' });
  assert.equal((await read(box, 'd/Dockerfile', signal)).entries, []);
});

test('the context is sorted, with plain modes and links as they are', async ({ signal }) => {
  await using box = await tree({ 'd/Dockerfile': COPYING, 'd/b/run': '#!/bin/sh\n', 'd/a': 'a', 'd/c': 'c' });
  await chmod(box.at('d/a'), 0o600);
  await symlink('../a', box.at('d/b/link'));
  const { entries, digest } = await read(box, 'd/Dockerfile', signal);
  assert.equal(
    entries.map((entry) => [entry.kind, entry.path, 'mode' in entry ? entry.mode : entry.target]),
    [
      ['file', 'Dockerfile', 0o644],
      ['file', 'a', 0o644],
      ['folder', 'b', 0o755],
      ['link', 'b/link', '../a'],
      ['file', 'b/run', 0o755],
      ['file', 'c', 0o644],
    ],
  );
  assert.is((await read(box, 'd/Dockerfile', signal)).digest, digest);
  await chmod(box.at('d/c'), 0o755);
  assert.is.not((await read(box, 'd/Dockerfile', signal)).digest, digest);
});

test('a context beyond all measure is refused, unless it is ignored', async ({ signal }) => {
  await using box = await tree({ 'd/Dockerfile': COPYING, 'd/disk.img': '' });
  await truncate(box.at('d/disk.img'), 2 ** 31);
  const error = await assert.rejectsWith(
    read(box, 'd/Dockerfile', signal),
    'FILE_UNUSABLE',
    /more than 10000 files or 1 GiB/,
  );
  assert.match(error.hint ?? '', /\.dockerignore/);
  await writeFile(box.at('d/.dockerignore'), '*.img\n');
  assert.is((await read(box, 'd/Dockerfile', signal)).entries.length, 2);
});

test('a folder, a file of megabytes and one that is not there are no Dockerfiles', async ({ signal }) => {
  await using box = await tree({ 'd/x': '', large: '# '.repeat(600_000) });
  await assert.rejectsWith(read(box, 'd', signal), 'FILE_UNUSABLE', /d is not a file/);
  await assert.rejectsWith(read(box, 'large', signal), 'FILE_UNUSABLE', /large is larger than 1 MiB/);
  await assert.rejectsWith(
    read(box, 'none', signal),
    'NOT_FOUND',
    /neither .*\/none nor .*\/addons\/tool\/1\.0\/none exists/,
  );
});

test.run();
