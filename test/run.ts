/**
 * Compiles the tests and runs those of a tier, one process a file, several files at a time, and reports them. The last
 * line is `N passed, N failed, N skipped`. `scripts/test --help` has the options.
 */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { compiledPath, compileTests } from './runner/compile.ts';
import { startLender } from './runner/lender.ts';
import { createHosts, type Hosts } from './runner/hosts.ts';
import { busyLoops, cpuSeconds, roomOn } from './runner/machine.ts';
import { failureText, minutes, progressLine, skippedLines, slowestLines } from './runner/report.ts';
import { runStep, runTestFile } from './runner/run-process.ts';
import { inOrder, runJobs, timeLeft, type Job, type Result, type Times } from './runner/schedule.ts';
import { readShard, shardOf } from './runner/shards.ts';
import { withSourcePlaces } from './runner/stack.ts';
import {
  chooseFiles,
  groupOf,
  isShared,
  readTestFile,
  TIERS,
  type LeftOut,
  type TestFile,
  type Tier,
} from './runner/tiers.ts';

const ROOT = join(import.meta.dirname, '..');
const LOGS = '.curlew/log/tests';
const TIMES = '.curlew/test-times.json';
const BUILD = 'build';

const { values, positionals } = parseArgs({
  options: {
    tier: { type: 'string', default: 'default' },
    only: { type: 'string' },
    repeat: { type: 'string', default: '1' },
    load: { type: 'string', default: '0' },
    width: { type: 'string' },
    shard: { type: 'string' },
    'no-check': { type: 'boolean', default: false },
    'no-tools': { type: 'boolean', default: false },
    // Runs of a workflow are numbered: so many of them in a row reach every point of a sweep.
    seed: {
      type: 'string',
      default: process.env['GITHUB_RUN_NUMBER'] ?? String(Math.floor(Math.random() * 1_000_000)),
    },
  },
  allowPositionals: true,
});

const tier = tierOf(values.tier);
/** Many tests wait for other processes and for disks. */
const width = Number(values.width ?? availableParallelism() + 1);
/** Not where a width is asked for. */
const spare = values.width === undefined ? { most: 2 * width, hasRoom: roomOn(), everyMs: 500 } : undefined;
const repeat = Number(values.repeat);
const LIMIT = tier === 'soak' ? 'soak' : 'test';
const shard = values.shard === undefined ? undefined : readShard(values.shard);
const isPart = positionals.length > 0 || values.only !== undefined || shard !== undefined;
const isChecked = !isPart && tier !== 'rest' && !values['no-check'];

function tierOf(name: string): Tier {
  const found = TIERS.find((one) => one === name);
  if (found === undefined) throw new Error(`--tier is one of ${TIERS.join(', ')}`);
  return found;
}

async function testFiles(): Promise<readonly TestFile[]> {
  const all = await readdir(join(ROOT, 'test'), { recursive: true });
  const paths = all.filter((path) => path.endsWith('.test.ts')).map((path) => `test/${path}`);
  return Promise.all(
    paths.toSorted().map(async (path) => readTestFile(path, await readFile(join(ROOT, path), 'utf8'))),
  );
}

async function readTimes(): Promise<Times> {
  const text = await readFile(join(ROOT, TIMES), 'utf8').catch(() => '{}');
  try {
    return JSON.parse(text) as Times;
  } catch {
    return {};
  }
}

/** The command that runs a file again, with the same points of its sweeps. */
function commandOf({ path, soak }: TestFile): string {
  const option = { fast: ' --fast', rest: '', default: '', all: ' --all', soak: ' --soak' }[tier];
  return `scripts/test${option}${soak === undefined ? '' : ` --seed ${values.seed}`} ${path}`;
}

/** What test files need besides themselves. */
interface Needs {
  /** Files that wait for `npm run build`. */
  readonly needsBuild: ReadonlySet<string>;
  readonly env: Readonly<Record<string, string>>;
  readonly hosts: Hosts;
}

function fileJob(file: TestFile, round: number, { needsBuild, env, hosts }: Needs): Job {
  const { path, alone } = file;
  const name = round === 1 ? path : `${path} (${round})`;
  return {
    name,
    command: commandOf(file),
    alone,
    isLong: groupOf(file) !== undefined,
    after: needsBuild.has(path) ? BUILD : undefined,
    run: async (signal) => {
      const compiled = join(ROOT, compiledPath(path));
      const log = join(ROOT, LOGS, `${name}.log`);
      const options = { log, kind: LIMIT, mayBeEmpty: values.only !== undefined, env, signal } as const;
      return isShared(file, tier) ? hosts.run(compiled, options) : runTestFile([process.execPath, compiled], options);
    },
  };
}

function step(name: string, words: readonly string[]): Job {
  const log = join(ROOT, LOGS, `${name.replaceAll(/[^a-z]+/g, '-')}.log`);
  const command = words.join(' ');
  return {
    name,
    command,
    alone: undefined,
    isLong: true,
    after: undefined,
    run: async (signal) => runStep(words, { log, kind: LIMIT, signal }),
  };
}

function planJobs(files: readonly TestFile[], times: Times, needs: Needs): readonly Job[] {
  const { needsBuild } = needs;
  const rounds = Array.from({ length: repeat }, (_, index) => index + 1);
  const tests = rounds.flatMap((round) => files.map((file) => fileJob(file, round, needs)));
  const steps = [
    ...(needsBuild.size > 0 ? [step(BUILD, ['npm', 'run', '--silent', 'build'])] : []),
    ...(!isChecked ? [] : [step('format, lint, types, dead code, shell', ['scripts/check'])]),
  ];
  return [...steps, ...inOrder(tests, times)];
}

/** Why suites over real components cannot run here, or undefined. */
function whyUnable(): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  return existsSync('/usr/bin/apt-get') ? undefined : 'needs a Debian or Ubuntu machine';
}

/** Makes what is missing of the tools of this tier; what it says is seen as it comes. */
async function prepareTools(): Promise<boolean> {
  const words = ['prepare', tier === 'default' || tier === 'rest' ? 'default' : 'all'];
  const { exitCode } = await execa('scripts/tools', words, {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    reject: false,
  });
  return exitCode === 0;
}

function leftOutLine({ group, files }: LeftOut, unable: string | undefined): string {
  const { title, reason, command, needsTools } = group;
  return `SKIPPED ${files.length} files ${title}: ${(needsTools ? unable : undefined) ?? `${reason}; run: ${command}`}`;
}

function partOf(files: readonly TestFile[], times: Times): readonly TestFile[] {
  if (shard === undefined) return files;
  const names = new Set(
    shardOf(
      files.map(({ path }) => path),
      times,
      shard,
    ),
  );
  return files.filter(({ path }) => names.has(path));
}

async function main(): Promise<number> {
  const started = performance.now();
  const unable = tier === 'fast' ? undefined : whyUnable();
  const times = await readTimes();
  const { files: chosen, leftOut } = chooseFiles(await testFiles(), tier, positionals, {
    canHaveTools: unable === undefined,
  });
  const files = partOf(chosen, times);
  if (files.length === 0) {
    for (const { group, files: others } of leftOut) {
      console.log(
        `${others.map(({ path }) => path).join(', ')}: in another tier; run: ${group.command} ${positionals.join(' ')}`,
      );
    }
    console.log(leftOut.length === 0 ? `no test file has ${positionals.join(' or ')} in its path` : 'nothing was run');
    return 1;
  }
  const needsTools = !values['no-tools'] && files.some((file) => groupOf(file)?.needsTools === true);
  if (needsTools && !(await prepareTools())) {
    console.log('0 passed, 1 failed, 0 skipped');
    return 1;
  }
  const results = new Map<string, Result>();
  const totals = { passed: 0, failed: 0, skipped: 0 };
  const reasons: string[] = [];
  const failedNames: string[] = [];
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, () => stop.abort());
  await rm(join(ROOT, LOGS), { recursive: true, force: true });
  const needsBuild = await compileTests(
    ROOT,
    files.map(({ path }) => path),
  );
  const lender = needsTools ? await startLender(join(ROOT, LOGS, 'lender.log')) : undefined;
  const env = {
    ...lender?.env,
    CURLEW_TEST_TIER: tier === 'rest' ? 'default' : tier,
    CURLEW_TEST_SEED: values.seed,
    ...(values.only === undefined ? {} : { CURLEW_TEST_ONLY: values.only }),
  };
  const hosts = createHosts(env);
  const jobs = planJobs(files, times, { needsBuild, env, hosts });
  console.log(
    `${jobs.length} jobs, ${width} at a time${spare === undefined ? '' : ` or up to ${spare.most} while a processor is free`}, seed ${values.seed}; logs: ${LOGS}`,
  );
  let done = 0;
  const report = (job: Job, result: Result, waiting: readonly Job[]): void => {
    done += 1;
    totals.passed += result.passed;
    totals.failed += result.failed;
    totals.skipped += result.skipped.length;
    reasons.push(...result.skipped);
    results.set(job.name, result);
    const left = timeLeft(waiting, { ...times, ...secondsOf(results) }, width);
    console.log(progressLine(job, result, { done, all: jobs.length, left }));
    if (result.failed === 0) return;
    failedNames.push(job.name);
    console.log(withSourcePlaces(failureText(job, result), ROOT));
  };
  try {
    using _load = busyLoops(Number(values.load));
    await runJobs(jobs, report, { width, spare, signal: stop.signal });
  } finally {
    await hosts[Symbol.asyncDispose]();
    await lender?.[Symbol.asyncDispose]();
  }
  if (!isPart && !stop.signal.aborted) {
    for (const group of leftOut) {
      totals.skipped += group.files.length;
      console.log(leftOutLine(group, unable));
    }
  }
  for (const line of skippedLines(reasons)) console.log(line);
  if (values.only === undefined) await keepTimes(times, results);
  if (results.size > 1) console.log(['slowest:', ...slowestLines(results)].join('\n'));
  if (failedNames.length > 0) console.log(['failed:', ...failedNames.map((name) => `  ${name}`)].join('\n'));
  const wall = (performance.now() - started) / 1000;
  console.log(`${minutes(wall)} minutes, ${Math.round(cpuSeconds())} CPU-s`);
  if (stop.signal.aborted) console.log(`stopped: ${jobs.length - done} of ${jobs.length} jobs have not ended`);
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  if (stop.signal.aborted) return 130;
  if (values.only !== undefined && totals.passed + totals.failed === 0)
    console.error(`no test has the title ${values.only}`);
  return totals.failed === 0 && totals.passed > 0 ? 0 : 1;
}

function secondsOf(results: ReadonlyMap<string, Result>): Times {
  const first = [...results].filter(([name]) => !name.endsWith(')'));
  return Object.fromEntries(first.map(([name, { seconds }]) => [name, Math.round(seconds * 10) / 10]));
}

async function keepTimes(before: Times, results: ReadonlyMap<string, Result>): Promise<void> {
  const path = join(ROOT, TIMES);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify({ ...before, ...secondsOf(results) }, undefined, 2)}\n`);
}

process.exitCode = await main();
