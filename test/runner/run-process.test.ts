import { execa } from 'execa';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { runTestFile, type ProcessOptions } from './run-process.ts';
import type { Result } from './schedule.ts';

const test = suite('runner/run-process');

/** What becomes of a test file that prints this and ends so. */
async function resultOf(script: string, more: Partial<ProcessOptions> = {}): Promise<Result> {
  await using box = await tree();
  return await runTestFile(['bash', '-c', script], { log: box.at('logs/a.log'), kind: 'test', signal: never, ...more });
}

const summary = (total: number, passed: number): string => `printf '  Total:     ${total}\\n  Passed:    ${passed}\\n'`;

test('tests are counted, and skipped ones with their reasons', async () => {
  const { passed, failed, skipped } = await resultOf(
    `printf 'SKIPPED missing: curl | a suite: a test: with colons\\n'; ${summary(3, 2)}; exit 1`,
  );
  assert.equal([passed, failed, skipped], [2, 1, ['missing: curl']]);
});

test('a file that crashes, or runs nothing, is a failure; where titles choose, it may run nothing', async () => {
  assert.is((await resultOf(`${summary(2, 2)}; exit 7`)).failed, 1);
  assert.is((await resultOf('true')).failed, 1);
  assert.is((await resultOf('true', { mayBeEmpty: true })).failed, 0);
  assert.is((await resultOf('exit 1', { mayBeEmpty: true })).failed, 1);
});

test('certificates of the machine are for the programs of a file, not for the process that runs it', async () => {
  const { skipped } = await resultOf(
    `echo "SKIPPED \${NODE_EXTRA_CA_CERTS-none}, $CURLEW_TEST_CA_CERTS | a: b"; ${summary(1, 1)}`,
  );
  // This process is a file that has handed it on to itself.
  assert.equal(skipped, [`none, ${process.env['NODE_EXTRA_CA_CERTS'] ?? ''}`]);
});

test('what a file has started ends with it', async () => {
  await using box = await tree();
  await resultOf(`sleep 1000 >/dev/null 2>&1 & echo $! >'${box.at('pid')}'; ${summary(1, 1)}`);
  // Its first process has ended; whoever takes over the others may not have come to them.
  const { stdout } = await execa('bash', [
    '-c',
    'pid=$(<"$1"); until [[ ! -e /proc/$pid || $(</proc/$pid/stat) == *") Z "* ]]; do :; done; echo ended',
    'bash',
    box.at('pid'),
  ]);
  assert.is(stdout, 'ended');
});

test('a stop ends the whole group of processes', async () => {
  const stop = new AbortController();
  const running = resultOf('sleep 1000 & wait', { signal: stop.signal });
  stop.abort();
  assert.is((await running).failed, 1);
});

test.run();
