import { readFile } from 'node:fs/promises';
import { lookUpFunctions } from '../../src/runtime/hook.ts';
import * as assert from '../support/assert.ts';
import { hooks } from '../support/hook-shell.ts';
import { suite } from '../support/suite.ts';

const test = suite('the shell that hooks start in');

const never = new AbortController().signal;

test('functions that the caller has exported are none of the hooks', async () => {
  await using box = await hooks(['demo() { type -t grep ls | sort -u >out; }'], {
    env: { 'BASH_FUNC_grep%%': '() { echo not mine; }', 'BASH_FUNC_demo_outro%%': '() { :; }' },
  });
  await box.run('demo');
  assert.is(await readFile(box.at('out'), 'utf8'), 'file\n');
  const found = await lookUpFunctions(box.shell, { report: () => undefined, signal: never });
  assert.not.ok(found.has('demo_outro'));
});

test('options that one install.sh sets at its top end with it', async () => {
  await using box = await hooks([
    'set -aufCx -o pipefail -o posix\ndemo() { :; }',
    'demo2() { set +o >out; }\nTOP=1\n',
  ]);
  await box.run('demo2');
  const said = await readFile(box.at('out'), 'utf8');
  for (const option of ['allexport', 'nounset', 'noglob', 'noclobber', 'xtrace', 'pipefail', 'posix']) {
    assert.match(said, `set +o ${option}\n`);
  }
});

test.run();
