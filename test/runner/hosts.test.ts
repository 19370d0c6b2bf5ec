import * as assert from '../support/assert.ts';
import { compiledModule } from '../support/compiled.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { createHosts } from './hosts.ts';
import type { Result } from './schedule.ts';

const test = suite('runner/hosts', { timeoutMs: 300_000 });

/** A file with one test, which prints its process; with what it does besides. */
function file({ top = '', body = '', options = '{}' } = {}): string {
  return `import { suite } from '${compiledModule('test/support/suite.ts')}';
    const test = suite('a', ${options});
    test('is run', async () => { console.log('process', process.pid); ${body} });
    ${top}
    test.run();`;
}

/** What becomes of files that run one after another, and whether each has the process of the one before. */
async function resultsOf(
  texts: readonly string[],
  env: Readonly<Record<string, string>> = {},
  most?: Parameters<typeof createHosts>[1],
): Promise<readonly (Result & { readonly isShared: boolean })[]> {
  await using box = await tree(Object.fromEntries(texts.map((text, index) => [`${index}.mjs`, text])));
  await using hosts = createHosts({ CURLEW_TEST_TIER: 'fast', ...env }, most);
  const results: (Result & { readonly isShared: boolean })[] = [];
  let last: string | undefined;
  for (const index of texts.keys()) {
    const log = box.at('logs', `${index}.log`);
    const mayBeEmpty = env['CURLEW_TEST_ONLY'] !== undefined;
    const result = await hosts.run(box.at(`${index}.mjs`), { log, kind: 'test', mayBeEmpty, signal: never });
    const pid = /process (\d+)/.exec(result.output)?.[1];
    results.push({ ...result, isShared: pid !== undefined && pid === last });
    last = pid;
  }
  return results;
}

function counts(results: Awaited<ReturnType<typeof resultsOf>>): readonly unknown[] {
  return results.map(({ passed, failed, isShared }) => [passed, failed, isShared]);
}

const GOOD = file();
/** Its setup and its test. */
const PASSED = [2, 0, false];

test('files that leave the process as it was share it, and each has its own tests, skips and output', async () => {
  const skips = file({ top: `test.skip('b', 'no moon');` });
  const results = await resultsOf([GOOD, skips, GOOD]);
  assert.equal(counts(results), [PASSED, [2, 0, true], [2, 0, true]]);
  assert.equal(
    results.map(({ skipped }) => skipped),
    [[], ['no moon'], []],
  );
  for (const { output, cpu } of results) {
    assert.is(output.match(/Total: +2/g)?.length, 1);
    assert.is(typeof cpu, 'number');
  }
});

test('a file that leaves something behind fails, and the next one has a new process', async () => {
  const leaks = {
    'environment variable LEAKED: none before, "1" after': `process.env.LEAKED = '1';`,
    'working directory: ': `process.chdir('/');`,
    'umask: ': `process.umask(0o77 ^ process.umask());`,
    'listeners of process for SIGHUP: none before, 1 after': `process.on('SIGHUP', () => undefined);`,
    'fs.readFile: one before, one after': `(await import('node:fs')).default.readFile = () => undefined;`,
    'global fetch: one before, one after': `fetch; globalThis.fetch = () => undefined;`,
    'exit code: none before, 3 after': `setTimeout(() => { process.exitCode = 3; });`,
    'child processes: ': `(await import('node:child_process')).spawn('sleep', ['1000'], { stdio: 'ignore' }).unref();`,
    'still open: TCPServerWrap': `(await import('node:net')).createServer().listen(0, '127.0.0.1');`,
  };
  const one = file({ body: `process.env.LEAKED = '1';` });
  const results = await resultsOf([GOOD, one, file({ body: Object.values(leaks).join('\n') }), GOOD]);
  assert.equal(counts(results), [PASSED, [2, 1, true], [2, 1, false], PASSED]);
  for (const line of Object.keys(leaks)) assert.match(results[2]?.output ?? '', `  ${line}`);
});

test('a process that has run many files, or holds much memory, gets no further one', async () => {
  const few = await resultsOf([GOOD, GOOD, GOOD], {}, { files: 2, bytes: Infinity });
  assert.equal(counts(few), [PASSED, [2, 0, true], PASSED]);
  assert.equal(counts(await resultsOf([GOOD, GOOD], {}, { files: 50, bytes: 1 })), [PASSED, PASSED]);
});

test('a child process that ends soon after its file is not left behind', async () => {
  const child = `(await import('node:child_process')).spawn('sleep', ['0.3'], { stdio: 'ignore' }).unref();`;
  assert.equal(counts(await resultsOf([file({ body: child }), GOOD])), [PASSED, [2, 0, true]]);
});

test('a file that fails is the last of its process', async () => {
  const results = await resultsOf([GOOD, file({ body: `throw new Error('no');` }), GOOD]);
  assert.equal(counts(results), [PASSED, [1, 1, true], PASSED]);
  assert.match(results[1]?.output ?? '', ' FAIL  a  "is run"');
  assert.match(results[1]?.output ?? '', /before it in the same process: \S+\/0\.mjs\n/);
});

test('an exit, a crash or an error at the top is a failure of the file that has it', async () => {
  const bad = [
    file({ body: 'process.exit(0);' }),
    file({ body: `process.kill(process.pid, 'SIGKILL');` }),
    file({ top: `throw new Error('no');` }),
  ];
  const results = await resultsOf([GOOD, ...bad, GOOD]);
  assert.equal(
    results.map(({ failed }) => failed),
    [0, 1, 1, 1, 0],
  );
});

test('what is thrown after the last test is a failure of the file that throws it', async () => {
  const bad = [
    file({ body: `setTimeout(() => { throw new Error('too late'); }, 20);` }),
    file({ body: `setTimeout(() => { void Promise.reject(new Error('too late')); }, 20);` }),
    file({ top: `test.after(() => { throw new Error('too late'); });` }),
  ];
  const results = await resultsOf([GOOD, ...bad, GOOD]);
  assert.equal(counts(results), [PASSED, [2, 1, true], [2, 1, false], [2, 1, false], PASSED]);
  for (const { output } of results.slice(1, 4)) assert.match(output, 'too late');
});

test('a file that hangs is a failure, whether or not something could still happen', async () => {
  const bad = [
    file({ body: 'await new Promise(() => undefined);', options: '{ timeoutMs: 20 }' }),
    file({ body: 'await new Promise(() => setInterval(() => undefined, 1000));', options: '{ timeoutMs: 20 }' }),
    `await new Promise(() => undefined);\n${GOOD}`,
  ];
  const results = await resultsOf([...bad, GOOD]);
  assert.equal(
    results.map(({ failed }) => failed),
    [1, 1, 1, 0],
  );
});

test('a file without a suite that runs is a failure, but where titles choose', async () => {
  const idle = GOOD.replace('test.run();', '');
  assert.equal(counts(await resultsOf([idle, GOOD])), [[0, 1, false], PASSED]);
  assert.equal(counts(await resultsOf([GOOD, GOOD], { CURLEW_TEST_ONLY: 'other' })), [
    [0, 0, false],
    [0, 0, false],
  ]);
});

test.run();
