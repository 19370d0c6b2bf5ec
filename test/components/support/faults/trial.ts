/** Commands over small folders, tried with a fault at each of their calls. */
import { execFile } from 'node:child_process';
import { readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../../support/appears.ts';
import * as assert from '../../../support/assert.ts';
import { sampleOf } from '../../../support/sweep.ts';
import { tree, writeTree, type Files, type Tree } from '../../../support/tree.ts';
import { makeShim, openHost, startFaulty, type Fault, type Host, type Job, type JobEnd } from './hosts.ts';
import { faultsOf, TOLD } from './points.ts';
import { differences, halfDone, stateOf, UNFINISHED, type Settle, type State } from './states.ts';

const run = promisify(execFile);
/** Points of a verb in a run that takes samples. */
const SAMPLE = 4;

export interface Verb {
  readonly title: string;
  /** The current folder of all commands. */
  readonly files: Files;
  /** Commands, and files that are written between them. */
  readonly before?: readonly (readonly string[] | Files)[];
  readonly words: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly settle?: Settle;
  /** Files that have other contents while the command is at work. */
  readonly between?: RegExp;
  /** A soak has found nothing: runs that are none take a sample. */
  readonly isClean?: boolean;
  /** Faults that every run tries: those that something was found by. */
  readonly always?: readonly Fault[];
  /** The command refuses to do again what is done. */
  readonly isOnce?: boolean;
}

interface Summary {
  readonly calls: number;
  readonly points: number;
  readonly tried: number;
  /** Commands that failed, and those that came to their end all the same. */
  readonly refused: number;
  readonly overcome: number;
  readonly problems: readonly string[];
}

interface Trial {
  readonly box: Tree;
  readonly shim: string;
  readonly host: Host;
  readonly verb: Verb;
  readonly job: Job;
  readonly before: State;
  readonly after: State;
}

/** The folder in which commands run, the same for all: paths are in what they write. */
const WORK = 'work';

async function restore({ box }: Pick<Trial, 'box'>): Promise<void> {
  await rm(box.at(WORK), { recursive: true, force: true });
  // Folder stores know files by their times to the nanosecond.
  await run('cp', ['-a', box.at('start'), box.at(WORK)]);
}

/** What is wrong with what a command says about a fault; undefined if nothing is. */
function complaint(
  { exitCode, stderr }: Pick<JobEnd, 'exitCode' | 'stderr'>,
  { cwd }: Job,
  fault: Fault,
): string | undefined {
  if (/this is a bug|^ +at .*:\d+:\d+\)?$/im.test(stderr)) return `is taken for a bug: ${stderr}`;
  if (exitCode === 0) return undefined;
  if (stderr.match(/^error /gm)?.length !== 1) return `status ${exitCode}, and not one error: ${stderr}`;
  const told = TOLD[fault.kind.replace('+', '')];
  if (told !== undefined && !told.test(stderr)) return `does not say what happened: ${stderr}`;
  const [, path = ''] = /^\S+ (.*)#\d+$/.exec(fault.at) ?? [];
  const names = path.split('/').filter((name) => name !== '.' && !name.includes('*'));
  const isNamed = names.length === 0 || [cwd, ...names].some((name) => stderr.includes(name));
  return isNamed ? undefined : `does not say where: ${stderr}`;
}

async function stopped({ shim, host, job }: Trial, fault: Fault): Promise<string | undefined> {
  const child = startFaulty(shim, { ...job, fault });
  const isStopped = async (): Promise<boolean> =>
    child.exitCode !== null ||
    /^State:\tT/m.test(await readFile(`/proc/${child.pid ?? 0}/status`, 'utf8').catch(() => ''));
  await until(isStopped);
  const beside = child.exitCode === null ? await host.run(job) : undefined;
  child.kill('SIGCONT');
  const { exitCode = 255, stderr } = await child;
  for (const end of [{ exitCode, stderr }, ...(beside === undefined ? [] : [beside])]) {
    const wrong = complaint(end, job, fault);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

/** Runs the command with the fault, as a process or inside of the host. */
async function struck(
  trial: Trial,
  fault: Fault,
  isProcess: boolean,
): Promise<{ readonly end: string; readonly wrong?: string | undefined }> {
  const job = { ...trial.job, fault };
  if (fault.kind === 'stop') return { end: 'stopped', wrong: await stopped(trial, fault) };
  if (!isProcess) {
    const end = await trial.host.run(job);
    const kind = !end.isHit ? 'missed' : end.exitCode === 0 ? 'overcome' : 'refused';
    return { end: kind, wrong: complaint(end, job, fault) };
  }
  const { exitCode = 255, stderr, signal } = await startFaulty(trial.shim, job);
  if (signal === 'SIGKILL') return { end: 'killed' };
  return { end: exitCode === 0 ? 'overcome' : 'refused', wrong: complaint({ exitCode, stderr }, job, fault) };
}

interface Tried {
  readonly end: string;
  readonly wrong: string | undefined;
}

async function tryFault(trial: Trial, fault: Fault, isProcess: boolean): Promise<Tried> {
  const { box, host, shim, verb, job, before, after } = trial;
  await restore(trial);
  const { end, wrong } = await struck(trial, fault, isProcess);
  if (wrong !== undefined) return { end, wrong };
  const found = await stateOf(box.at(WORK), verb.settle);
  const half = halfDone(before, after, found, verb.between);
  if (half.length > 0) return { end, wrong: `is half done:\n    ${half.join('\n    ')}` };
  const isDone = differences(after, found, verb.isOnce === true ? UNFINISHED : undefined).length === 0;
  if (end === 'overcome' && !isDone) return { end, wrong: differing('came to another end', after, found) };
  if (isDone && verb.isOnce === true) return { end, wrong: undefined };
  const again = isProcess ? await startFaulty(shim, job) : await host.run(job);
  if (again.exitCode !== 0) return { end, wrong: `the same command failed: ${again.stderr}` };
  const reached = await stateOf(box.at(WORK), verb.settle);
  const isSame = differences(after, reached).length === 0;
  return { end, wrong: isSame ? undefined : differing('the same command came to another end', after, reached) };
}

function differing(what: string, expected: State, found: State): string {
  return `${what}:\n    ${differences(expected, found).join('\n    ')}`;
}

const NEEDS_PROCESS = /^(?:kill|stop)/;

/** Locks and partial files of a host that goes on are those of a running process: only a process of its own decides. */
async function problemOf(trial: Trial, fault: Fault): Promise<Tried> {
  const isProcess = NEEDS_PROCESS.test(fault.kind);
  const first = await tryFault(trial, fault, isProcess);
  return first.wrong === undefined || isProcess ? first : tryFault(trial, fault, true);
}

function isWords(step: readonly string[] | Files): step is readonly string[] {
  return Array.isArray(step);
}

async function openTrial(
  box: Tree,
  host: Host,
  shim: string,
  verb: Verb,
): Promise<Trial & { readonly labels: readonly string[] }> {
  const job = { words: verb.words, cwd: box.at(WORK), env: { TMPDIR: box.at(WORK, 'tmp'), ...verb.env } };
  await rename(box.at('start'), box.at(WORK));
  for (const words of verb.before ?? []) {
    if (!isWords(words)) {
      await writeTree(box.at(WORK), words);
      continue;
    }
    const made = await host.run({ ...job, words });
    assert.is(made.exitCode, 0, `${words.join(' ')}: ${made.stderr}`);
  }
  await rename(box.at(WORK), box.at('start'));
  const before = await stateOf(box.at('start'), verb.settle);
  await restore({ box });
  const log = box.at('calls');
  const whole = await host.run({ ...job, log });
  assert.is(whole.exitCode, 0, whole.stderr);
  const labels = (await readFile(log, 'utf8')).trimEnd().split('\n');
  const after = await stateOf(box.at(WORK), verb.settle);
  assert.ok(verb.isOnce === true || (await host.run(job)).exitCode === 0, 'the same command again');
  return { box, shim, host, verb, job, before, after, labels };
}

let made: Promise<string> | undefined;

/** Tries this run's sample of the faults of a verb, or all. */
export async function tryVerb(verb: Verb, { signal }: { readonly signal: AbortSignal }): Promise<Summary> {
  await using box = await tree(
    Object.fromEntries(
      Object.entries({ 'tmp/.keep': '', ...verb.files }).map(([path, data]) => [join('start', path), data]),
    ),
  );
  const shim = await (made ??= makeShim());
  await using host = openHost(shim);
  const { labels, ...trial } = await openTrial(box, host, shim, verb);
  const points = faultsOf(labels);
  const always = (verb.always ?? []).filter(({ at, kind }) => {
    assert.ok(
      points.some((point) => point.at === at && point.kind === kind),
      `${verb.title} has no ${kind} at ${at}`,
    );
    return true;
  });
  const sampled = sampleOf(points, Math.ceil(points.length / SAMPLE));
  const sample = [...always, ...(verb.isClean === true || sampled.length === points.length ? sampled : [])];
  assert.ok(sample.length > 0, `${verb.title} has no fault to try`);
  const ends: Record<string, number> = {};
  const problems: string[] = [];
  for (const fault of sample) {
    signal.throwIfAborted();
    const { end, wrong } = await problemOf(trial, fault);
    ends[end] = (ends[end] ?? 0) + 1;
    if (wrong === undefined) continue;
    problems.push(`${fault.kind} at ${fault.at}: ${wrong}`);
    // A soak takes hours.
    console.error(problems.at(-1));
  }
  console.log(
    `${verb.title}: ${sample.length} of ${points.length} faults at ${labels.length} calls: ${JSON.stringify(ends)}`,
  );
  return {
    calls: labels.length,
    points: points.length,
    tried: sample.length,
    refused: ends['refused'] ?? 0,
    overcome: ends['overcome'] ?? 0,
    problems,
  };
}
