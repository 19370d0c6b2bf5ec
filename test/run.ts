/**
 * Runs every `*.test.ts` below the folders named (default: all of test/), one process a file, as many at a time as
 * there are cores, and prints the failures. The last line is `N passed, N failed, N skipped`.
 * usage: tsx test/run.ts [--exclude FOLDER]… [--width N] [FILTER…]
 */
import { execa } from 'execa';
import { availableParallelism } from 'node:os';
import { readdir } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { eachLimited } from '../src/core/each.ts';

/** Against hanging; no measurement. */
const FILE_LIMIT_MS = 1_200_000;

const { values, positionals } = parseArgs({
  options: {
    exclude: { type: 'string', multiple: true, default: [] },
    width: { type: 'string', default: String(availableParallelism()) },
  },
  allowPositionals: true,
});

async function testFiles(): Promise<readonly string[]> {
  const all = await readdir('test', { recursive: true });
  return all
    .map((path) => `test/${path}`)
    .filter((path) => path.endsWith('.test.ts'))
    .filter((path) => !values.exclude.some((folder) => path.startsWith(folder)))
    .filter((path) => positionals.length === 0 || positionals.some((part) => path.includes(part)))
    .toSorted();
}

interface Outcome {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly output: string;
}

function count(output: string, pattern: RegExp): number {
  return Number(pattern.exec(output)?.[1] ?? 0);
}

/** A file that ends badly without a failed test of its own (it crashed, hung or ran nothing) is one failure. */
async function runFile(path: string, signal: AbortSignal): Promise<Outcome> {
  const result = await execa('node', ['--import', './test/support/tsx.mjs', path], {
    all: true,
    reject: false,
    stdin: 'ignore',
    timeout: FILE_LIMIT_MS,
    cancelSignal: signal,
    env: { NO_COLOR: '1', FORCE_COLOR: '0' },
  });
  const output = result.all.replaceAll(/\u001b\[[0-9;]*m/g, '');
  const total = count(output, /^ {2}Total: +(\d+)/m);
  const passed = count(output, /^ {2}Passed: +(\d+)/m);
  const skipped = [...output.matchAll(/^SKIPPED /gm)].length;
  const broken = result.exitCode !== 0 || total === 0;
  return { passed, failed: Math.max(total - passed, broken ? 1 : 0), skipped, output };
}

const files = await testFiles();
const sum = { passed: 0, failed: 0, skipped: 0 };
const stop = new AbortController();
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(name, () => {
    stop.abort();
  });
}
await eachLimited(
  files,
  async (path, { signal }) => {
    const started = performance.now();
    const { passed, failed, skipped, output } = await runFile(path, signal);
    const seconds = Math.round((performance.now() - started) / 1000);
    sum.passed += passed;
    sum.failed += failed;
    sum.skipped += skipped;
    console.log(`${failed === 0 ? 'ok  ' : 'FAIL'} ${path} (${passed} passed, ${seconds} s)`);
    if (failed > 0) console.log(output);
    else if (skipped > 0) console.log([...output.matchAll(/^SKIPPED .*$/gm)].map(([line]) => line).join('\n'));
  },
  { width: Number(values.width), signal: stop.signal },
);
console.log(`${sum.passed} passed, ${sum.failed} failed, ${sum.skipped} skipped`);
process.exitCode = sum.failed === 0 && files.length > 0 ? 0 : 1;
