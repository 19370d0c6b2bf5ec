import { truncate, writeFile } from 'node:fs/promises';
import { openExecutable, readRootFiles } from '../../src/own/root-files.ts';
import * as assert from '../support/assert.ts';
import { TOOL } from '../support/bundles.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('own/root-files');

test('a bundle begins with four scripts that anybody may run', async () => {
  const files = await readRootFiles();
  assert.equal(
    files.map(({ path, mode }) => [path, mode]),
    ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh'].map((name) => [name, 0o755]),
  );
  assert.ok(files.every(({ data }) => Buffer.from(data).toString().startsWith('#!/usr/bin/env bash\n')));
});

test('the executable of the wanted architecture is opened as an archive', async ({ signal }) => {
  await using box = await tree();
  await writeFile(box.at('curlew-linux-arm64.tar.gz'), TOOL.bytes);
  await using executable = await openExecutable('arm64', { folder: box.path, signal });
  assert.equal(executable.index, TOOL.plan.index);
});

test('a build without executables says how to make one', async ({ signal }) => {
  await using box = await tree();
  const opened = openExecutable('amd64', { folder: box.path, signal });
  const { hint } = await assert.rejectsWith(
    opened,
    'NOT_FOUND',
    /this build of curlew has no executable for amd64 nodes/,
  );
  assert.match(hint ?? '', 'npm run build');
});

test('a damaged executable is no bundle’s', async ({ signal }) => {
  await using box = await tree();
  const path = box.at('curlew-linux-amd64.tar.gz');
  await writeFile(path, TOOL.bytes);
  await truncate(path, TOOL.bytes.byteLength - 1);
  await assert.rejectsWith(openExecutable('amd64', { folder: box.path, signal }), 'PACKAGE_INVALID');
});

test.run();
