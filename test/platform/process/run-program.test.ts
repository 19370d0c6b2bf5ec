/** Programs as children: how they end, what is kept of what they print, and that nothing of them is left. */
import { getEventListeners } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { CurlewError } from '../../../src/core/errors.ts';
import { secret } from '../../../src/core/secret.ts';
import { processInfo } from '../../../src/platform/process/process-tree.ts';
import {
  ProgramError,
  runProgram,
  tryProgram,
  type ProgramOptions,
  type ProgramResult,
} from '../../../src/platform/process/run-program.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('platform/process/run-program');
const env = { PATH: process.env['PATH'] ?? '' };

type Given = Partial<ProgramOptions> & Pick<ProgramOptions, 'signal'>;

async function endOf(file: string, args: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  return tryProgram(file, args, options, (ended) => ended);
}

async function bash(script: string, given: Given): Promise<ProgramResult> {
  return endOf('bash', ['-c', script], { env, ...given });
}

async function pidIn(box: Tree, name: string): Promise<number> {
  return Number(await readFile(box.at(name), 'utf8'));
}

/** Programs that write their ids to `pid`, one that obeys and one that does not, and say so. */
const OBEYS = 'sleep 1000 & echo $! >pid; echo ready; wait';
const IGNORES = 'trap "" TERM; sleep 1000 & echo $! >pid; echo ready; while true; do sleep 0.1; done';

test('its status and both outputs are handed back, whatever they are', async ({ signal }) => {
  const done = await bash('echo out; echo err >&2', { signal });
  assert.equal([done.status, done.stdout, done.stderr, done.error], [0, 'out\n', 'err\n', undefined]);
  const failed = await bash('echo out; printf "first\nlast" >&2; exit 7', { signal, doing: 'ask it' });
  assert.equal([failed.status, failed.stdout, failed.lastLines], [7, 'out\n', ['first', 'last']]);
  assert.equal([failed.error?.problem, failed.error?.reason], ['status', 'status 7']);
  assert.equal(
    [failed.error?.code, failed.error?.message],
    ['PROGRAM_FAILED', 'ask it: status 7\n  | first\n  | last'],
  );
});

test('a program that must succeed throws its failure', async ({ signal }) => {
  assert.equal(await runProgram('echo', ['out'], { env, signal }), { stdout: 'out\n', stderr: '' });
  const failure = await runProgram('bash', ['-c', 'exit 7'], { env, signal }).catch((error: unknown) => error);
  assert.is(failure instanceof ProgramError && failure.reason, 'status 7');
});

test('it gets the environment and the folder that were given, and nothing else', async ({ signal }) => {
  await using box = await tree();
  const own = { ...env, OWN: 'a b', NOT: undefined };
  const { stdout } = await bash('echo "$OWN ${NOT-none} ${HOME-none} $PWD"', { env: own, cwd: box.path, signal });
  assert.is(stdout, `a b none none ${box.path}\n`);
});

test('lines of both outputs come as they are printed, plain, and without a limit', async ({ signal }) => {
  const lines: string[] = [];
  const line = (text: string): void => {
    lines.push(text);
  };
  const script = 'for ((i = 0; i < 20000; i++)); do echo "line $i"; done; echo err >&2; printf "\\033[1mlast"; exit 3';
  const { error, stdout, lastLines } = await bash(script, { line, outputLimit: 10, signal });
  assert.equal([error?.reason, stdout, lines.length], ['status 3', '', 20_002]);
  assert.ok(lines.includes('err') && lines.includes('last') && lines.includes('line 19999'));
  assert.ok(lastLines.includes('last') && lastLines.length <= 20);
});

test('what is called with a line may throw: the program is ended, and that is thrown', async ({ signal }) => {
  const wrong = new Error('wrong');
  const line = (): void => {
    throw wrong;
  };
  assert.is(await bash('echo said; sleep 1000', { line, signal }).catch((error: unknown) => error), wrong);
});

test('a program that is not installed, and those that cannot be started', async ({ signal }) => {
  await using box = await tree({ text: 'no program' });
  const missing = await endOf('no-such-program', [], { env, signal });
  assert.equal([missing.status, missing.error?.problem], [undefined, 'missing']);
  assert.equal(
    [missing.error?.code, missing.error?.message],
    ['NOT_FOUND', 'run no-such-program: it is not installed'],
  );
  const text = await endOf(box.at('text'), [], { env, signal });
  assert.equal([text.error?.problem, text.error?.reason], ['unusable', 'it cannot be started (EACCES)']);
  const long = await endOf('true', ['x'.repeat(200_000)], { env, input: 'text', signal });
  assert.is(long.error?.reason, 'it cannot be started (E2BIG)');
});

test('a program that a signal has ended', async ({ signal }) => {
  const { status, error } = await bash('kill -9 $$', { signal });
  assert.equal([status, error?.problem, error?.reason], [undefined, 'signal', 'terminated by SIGKILL']);
});

test('output beyond the limit ends a program, and the bytes until there are kept', async ({ signal }) => {
  const { status, stdout, error } = await bash('yes €', { outputLimit: 999, signal });
  assert.equal([status, error?.problem, error?.reason], [undefined, 'output', 'more than 999 bytes of output']);
  assert.is(Buffer.byteLength(stdout), 999);
  const { error: said } = await bash('yes >&2', { outputLimit: 999, signal });
  assert.is(said?.problem, 'output');
  assert.is((await bash('printf 123', { outputLimit: 3, signal })).status, 0);
});

test('output beyond the limit is dropped where that is asked for', async ({ signal }) => {
  const { status, stdout } = await bash('echo 12345; exit 3', { outputLimit: 3, excess: 'drop', signal });
  assert.equal([status, stdout], [3, '123']);
});

test('a time limit ends a program that ignores SIGTERM, and its children', async ({ signal }) => {
  await using box = await tree();
  const { status, error } = await bash(IGNORES, { cwd: box.path, limitMs: 500, graceMs: 100, signal });
  assert.equal([status, error?.problem, error?.reason], [undefined, 'late', 'not finished after 0.5 s']);
  assert.is(processInfo(await pidIn(box, 'pid')), undefined);
});

for (const [title, script] of [
  ['one that obeys', OBEYS],
  ['one that ignores SIGTERM', IGNORES],
] as const) {
  test(`an abort ends a program and its children before its reason is thrown: ${title}`, async ({ signal }) => {
    await using box = await tree();
    const stop = new AbortController();
    const reason = new Error('enough');
    const line = (): void => stop.abort(reason);
    const both = AbortSignal.any([stop.signal, signal]);
    const running = bash(script, { cwd: box.path, line, graceMs: 200, signal: both });
    assert.is(await running.catch((error: unknown) => error), reason);
    assert.is(processInfo(await pidIn(box, 'pid')), undefined);
  });
}

test('an abort before it begins starts nothing', async () => {
  await using box = await tree();
  const reason = new Error('no');
  const running = bash('touch started', { cwd: box.path, signal: AbortSignal.abort(reason) });
  assert.is(await running.catch((error: unknown) => error), reason);
  assert.equal(await readdir(box.path), []);
});

test('what a program leaves in its group ends with it', async ({ signal }) => {
  await using box = await tree();
  const { status } = await bash('sleep 1000 & echo $! >pid', { cwd: box.path, signal });
  assert.is(status, 0);
  assert.is(processInfo(await pidIn(box, 'pid')), undefined);
});

test('nobody waits for pipes that a process of another group holds', async ({ signal }) => {
  await using box = await tree();
  const script = 'setsid bash -c "echo \\$\\$ >pid; exec sleep 1000" & until [ -s pid ]; do :; done; echo said';
  const { stdout } = await bash(script, { cwd: box.path, signal });
  assert.is(stdout, 'said\n');
  process.kill(await pidIn(box, 'pid'), 'SIGKILL');
});

test('a process that ends at once takes its programs along', async ({ signal }) => {
  await using box = await tree();
  const module = new URL('../../../src/platform/process/run-program.ts', import.meta.url).href;
  const script = `
    import { tryProgram } from ${JSON.stringify(module)};
    const line = () => process.exit(3);
    await tryProgram('bash', ['-c', ${JSON.stringify(IGNORES)}], { env: process.env, signal: new AbortController().signal, line }, () => undefined);
  `;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
  const { status } = await endOf(process.execPath, args, { env, cwd: box.path, signal });
  assert.is(status, 3);
  const pid = await pidIn(box, 'pid');
  while (processInfo(pid) !== undefined) await pause(5);
});

test('a bound program is killed with the process that started it, and otherwise runs like any other', async ({
  signal,
}) => {
  await using box = await tree();
  const done = await bash('cat; echo out; exit 7', { bound: true, signal });
  assert.equal([done.status, done.stdout], [7, 'out\n']);
  assert.is((await endOf('no-such-program', [], { env, bound: true, signal })).error?.problem, 'missing');
  const module = new URL('../../../src/platform/process/run-program.ts', import.meta.url).href;
  const script = `
    import { tryProgram } from ${JSON.stringify(module)};
    const line = () => process.kill(process.pid, 'SIGKILL');
    await tryProgram('bash', ['-c', ${JSON.stringify(IGNORES)}], { env: process.env, bound: true, signal: new AbortController().signal, line }, () => undefined);
  `;
  const args = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
  const { error } = await endOf(process.execPath, args, { env, cwd: box.path, signal });
  assert.is(error?.reason, 'terminated by SIGKILL');
  const pid = await pidIn(box, 'pid');
  while (processInfo(pid) !== undefined) await pause(5);
});

test('input is a text or comes in chunks, and a program need not take it', async ({ signal }) => {
  assert.is((await bash('cat', { input: 'a text', signal })).stdout, 'a text');
  assert.is((await bash('cat', { signal })).stdout, '');
  const chunks = async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let index = 0; index < 100; index += 1) yield Buffer.alloc(65_536, 'x');
  };
  assert.is((await bash('wc -c', { input: chunks(), signal })).stdout.trim(), String(100 * 65_536));
  const early = await bash('exit 0', { input: chunks(), signal });
  assert.is(early.status, 0);
  assert.ok(early.inputError instanceof Error);
});

test('what the input throws is thrown when the program has seen its end', async ({ signal }) => {
  await using box = await tree();
  const wrong = new CurlewError('DIGEST_MISMATCH', 'wrong bytes');
  const chunks = async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('some');
    throw wrong;
  };
  const running = bash('cat >took; echo >ended', { input: chunks(), cwd: box.path, signal });
  assert.is(await running.catch((error: unknown) => error), wrong);
  assert.equal(await readdir(box.path), ['ended', 'took']);
});

test('secrets are neither in its messages nor in what it says for people', async ({ signal }) => {
  const secrets = [secret('topsecret'), secret('so')];
  const script = 'echo topsecret; echo "so: topsecret https://user:canary@host/?canary" >&2; exit 1';
  const { stdout, stderr, error } = await bash(script, { secrets, signal });
  assert.is(stdout, 'topsecret\n');
  assert.match(stderr, /^so: \[secret\] /);
  assert.is(error?.message, 'run bash: status 1\n  | so: [secret] https://host/');
  const lines: string[] = [];
  const heard = await bash(script, { secrets, line: (text) => lines.push(text), signal });
  assert.not.match(inspect([lines, heard.lastLines, heard.error?.message], { depth: 9 }), /topsecret/);
});

test('many programs leave no listener behind', async ({ signal }) => {
  const { signal: never } = new AbortController();
  const before = process.listenerCount('exit');
  const all = Array.from({ length: 8 }, async () => bash('exit 0', { signal: never, limitMs: 60_000 }));
  await Promise.all([...all, bash('exit 1', { signal: never }), endOf('no-such-program', [], { env, signal: never })]);
  assert.equal([getEventListeners(never, 'abort').length, process.listenerCount('exit')], [0, before]);
  signal.throwIfAborted();
});

test('a call that does not judge how its program ends does not compile', async ({ signal }) => {
  // @ts-expect-error: the compiler refuses it, and without it the program has ended in vain.
  const error = await tryProgram('true', [], { env, signal }).catch((reason: unknown) => reason);
  assert.ok(error instanceof TypeError);
});

test.run();
