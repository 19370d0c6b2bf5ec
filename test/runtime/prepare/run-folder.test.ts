/** The folder of a run that cannot be created leaves nothing. */
import { readdir } from 'node:fs/promises';
import { createRunFolder, runFolder } from '../../../src/runtime/prepare/run-folder.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/run-folder');

test('a run whose folder cannot be created leaves neither it nor the folders around it', async () => {
  await using box = await tree({ 'node/packages/kept': '', 'scripts/hook-runner.sh': '' });
  const directory = box.at('node');
  const creating = createRunFolder(runFolder(directory, '20261121T101500Z-3f2a'), {
    directory,
    scripts: box.at('scripts'),
    settings: [],
    own: [],
    carried: undefined,
    asked: { variables: [], settings: {}, command: undefined },
  });
  await assert.rejectsWith(creating, 'FILE_UNUSABLE', /^cannot prepare .*3f2a: /);
  assert.equal((await readdir(directory, { recursive: true })).toSorted(), ['packages', 'packages/kept']);
});

test('the folder of a run with the same ID stays as it is', async () => {
  const run = '20261121T101500Z-3f2a';
  await using box = await tree({ [`node/runs/${run}/journal`]: 'kept', 'scripts/hook-runner.sh': '' });
  const directory = box.at('node');
  const creating = createRunFolder(runFolder(directory, run), {
    directory,
    scripts: box.at('scripts'),
    settings: [],
    own: [],
    carried: undefined,
    asked: { variables: [], settings: {}, command: undefined },
  });
  await assert.rejectsWith(creating, 'FILE_UNUSABLE', /^cannot prepare .*3f2a: /);
  assert.equal((await readdir(directory, { recursive: true })).toSorted(), [
    'runs',
    `runs/${run}`,
    `runs/${run}/journal`,
  ]);
});

test.run();
