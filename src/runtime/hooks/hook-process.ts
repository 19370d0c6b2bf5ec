/**
 * One bash process for one hook: its environment, its output, how it is stopped, and what it leaves behind. Output and
 * control records go to files, so a hook lives on when this process dies: unlike the programs of platform/process, which
 * are read through pipes and end with this process. Its daemons may stay, too.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { open, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { followControl, type ControlRecord } from './control.ts';
import { hookFailure, noticeRecord, type HookNotes } from './hook-failure.ts';
import { requireOwnLinks } from './confine.ts';
import { capLog, type LogCap } from './log-cap.ts';
import { seenPath, type NodePlace } from '../node/node-place.ts';
import { answerQuestions, type Ask, type Questions } from './questions.ts';
import {
  endProcesses,
  membersOf,
  processInfo,
  type Family,
  type ProcessInfo,
} from '../../platform/process/process-tree.ts';

/** What all hooks of a run have in common. All paths are absolute, as this process sees them. */
export interface HookShell {
  readonly place: NodePlace;
  readonly run: string;
  /** Folder of the run: logs, control files. */
  readonly folder: string;
  /** Folder that hooks may write to in a sandbox, too: what they hand on, and the answers that they take away. */
  readonly exchange: string;
  /** Folder with hook-runner.sh, cap-log.sh and lib/. */
  readonly scripts: string;
  readonly settings: string;
  /** Variables carried from hook to hook. */
  readonly carried: string;
  /** install.sh of every add-on of the run, in order. */
  readonly installScripts: readonly string[];
  /** The caller's environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface HookRequest {
  readonly addon: string;
  /** Name of the shell function; it names the log too. */
  readonly function: string;
  /** What it is called with. */
  readonly words?: readonly string[] | undefined;
  /** install.sh that is sourced once more just before the call. */
  readonly own?: string | undefined;
  /** 1 at the first try; more when an earlier try did not finish. */
  readonly attempt: number;
  /** What it says is read at its end by whoever runs it: nothing is reported line by line. */
  readonly toldAtEnd?: boolean | undefined;
  /** No deadline when absent. */
  readonly limitMs?: number | undefined;
}

export interface HookOptions {
  readonly report: Report;
  /** Who answers the questions of a hook; absent when nobody is there. */
  readonly ask?: Ask | undefined;
  /** How long a hook may be silent before a sign of life is given; 60 s unless a test says otherwise. */
  readonly heartbeatMs?: number;
  readonly graceMs?: number;
  /** How large a log may become; as usual unless a test says otherwise. */
  readonly logCap?: LogCap;
  readonly signal: AbortSignal;
}

export interface HookOutcome {
  readonly seconds: number;
  readonly log: string;
  /** What it has told on its way. */
  readonly notes: HookNotes;
  /** Names of processes of its session that had to be ended. */
  readonly ended: readonly string[];
  /** Names of processes that live on in sessions of their own. */
  readonly daemons: readonly string[];
}

const HEARTBEAT_MS = 60_000;
/** How often the log is looked at in that time. */
const LOOKS = 4;
/** Would change what bash is before the runner's first line: `BASH_FUNC_…` are functions that the caller has exported. */
const SHELL_VARIABLES = /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|POSIXLY_CORRECT|BASH_FUNC_.*|CURLEW_.*)$/s;
const EXTRA_PATH = '/usr/local/bin';

function logPath({ folder }: Pick<HookShell, 'folder'>, hook: Pick<HookRequest, 'function'>): string {
  return join(folder, `${hook.function}.log`);
}

/**
 * Runs hook-runner.sh with these words to its end. `HOOK_FAILED` when it fails or exceeds its limit; an abort ends
 * everything that it started.
 */
export async function runShell(
  shell: HookShell,
  request: HookRequest,
  options: HookOptions,
  words: readonly string[],
): Promise<HookOutcome> {
  const { signal, report, graceMs } = options;
  signal.throwIfAborted();
  const started = performance.now();
  const log = logPath(shell, request);
  const control = join(shell.folder, `${request.function}.control`);
  const notes: HookNotes = {};
  const onRecord = (record: ControlRecord): void => {
    noticeRecord(notes, record);
    if (record.kind === 'question') questions?.take(record);
    if (record.kind === 'log' && request.toldAtEnd !== true) reportLog(report, request, record);
  };
  const limit = request.limitMs === undefined ? undefined : AbortSignal.timeout(request.limitMs);
  const stop = AbortSignal.any([signal, ...(limit === undefined ? [] : [limit])]);
  const answers = join(shell.exchange, `${request.function}.answer`);
  const over = new AbortController();
  const asked = { addon: request.addon, log, answers, report, signal: AbortSignal.any([stop, over.signal]) };
  const questions = options.ask === undefined ? undefined : answerQuestions({ ...asked, ask: options.ask });
  const marker = `CURLEW_HOOK=${shell.run}/${request.function}`;
  // Followed before there is a process that a failure here would leave alone.
  await (await openFresh(control, 'w')).close();
  const follower = await followControl(control, onRecord);
  const { child, output } = await start(shell, request, {
    log,
    control,
    marker,
    words,
    answers: questions === undefined ? undefined : answers,
  }).catch(async (error: unknown) => {
    await follower.finish();
    throw error;
  });
  const settleLog = capLog(log, output, { scripts: shell.scripts, path: pathOf(shell.env), cap: options.logCap });
  const since = child.pid === undefined ? undefined : processInfo(child.pid)?.start;
  const family: Family = { session: child.pid ?? -1, marker, since };
  const all = (): readonly ProcessInfo[] => {
    const { inSession, outside } = membersOf(family);
    return [...inSession, ...outside];
  };
  const heartbeat = watchSilence(request, log, options, questions);
  const grace = graceMs === undefined ? {} : { graceMs };
  let ending: Promise<unknown> | undefined;
  const end = (): void => {
    ending ??= endProcesses(all, grace);
  };
  stop.addEventListener('abort', end, { once: true });
  try {
    if (stop.aborted) end();
    const exit = await exited(child);
    await ending;
    const left = membersOf(family);
    const ended = left.inSession.length === 0 ? [] : await endProcesses(() => membersOf(family).inSession, grace);
    await follower.finish();
    // Before its end is quoted.
    await settleLog();
    const failed = { ...request, log, notes };
    if (signal.aborted) throw await hookFailure({ ...failed, exit: 'cancelled', cause: signal.reason });
    if (limit?.aborted === true) throw await hookFailure({ ...failed, exit: 'limit' });
    if (exit !== 0) throw await hookFailure({ ...failed, exit });
    if (shell.place.confined) await requireOwnLinks(shell.place.directory);
    const names = (processes: readonly ProcessInfo[]): readonly string[] => processes.map(({ name }) => name);
    const outcome = { seconds: (performance.now() - started) / 1000, log, notes };
    return { ...outcome, ended: names(ended), daemons: names(left.outside) };
  } finally {
    stop.removeEventListener('abort', end);
    clearInterval(heartbeat);
    await follower.finish();
    await settleLog();
    over.abort();
    await questions?.finish();
    await rm(control, { force: true });
  }
}

interface StartWords {
  readonly log: string;
  readonly control: string;
  readonly marker: string;
  readonly words: readonly string[];
  /** Path of the answers to its questions; undefined when nobody can be asked. */
  readonly answers: string | undefined;
}

async function start(
  shell: HookShell,
  request: HookRequest,
  { log, control, marker, words, answers }: StartWords,
): Promise<{ readonly child: ChildProcess; /** The log, open. */ readonly output: FileHandle }> {
  const { place, env, run } = shell;
  const [command, ...args] = place.wrap(['bash', '--noprofile', '--norc', ...words]);
  const output = await openFresh(log, 'a');
  const records = await openFresh(control, 'a');
  try {
    const child = spawn(command, args, {
      cwd: place.directory,
      env: {
        ...hookEnvironment(env, { run, marker, attempt: request.attempt }),
        ...(answers === undefined
          ? {}
          : { CURLEW_ANSWER: seenPath(place, answers), CURLEW_ASKER: place.confined ? 'self' : String(process.pid) }),
      },
      // A session of its own: no terminal, and everything that stays in it can be ended together.
      detached: true,
      stdio: [place.confined ? 'pipe' : 'ignore', output.fd, output.fd, records.fd],
    });
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
    return { child, output };
  } catch (error) {
    await output.close();
    throw new CurlewError('UNSUPPORTED', `${request.addon}: ${command} could not be started`, { cause: error });
  } finally {
    await records.close();
  }
}

async function openFresh(path: string, flags: 'a' | 'w'): Promise<FileHandle> {
  try {
    return await open(path, flags, 0o600);
  } catch (error) {
    throw fileError(`write ${path}`, error);
  }
}

function pathOf(env: HookShell['env']): string {
  return env['PATH'] ?? '/usr/sbin:/usr/bin:/sbin:/bin';
}

function hookEnvironment(
  env: HookShell['env'],
  { run, marker, attempt }: { readonly run: string; readonly marker: string; readonly attempt: number },
): Record<string, string> {
  const given = Object.entries(env).filter(([name]) => !SHELL_VARIABLES.test(name));
  const path = pathOf(env);
  return {
    ...Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    PATH: path.split(':').includes(EXTRA_PATH) ? path : `${path}:${EXTRA_PATH}`,
    CURLEW_RUN: run,
    CURLEW_HOOK: marker.slice('CURLEW_HOOK='.length),
    CURLEW_ATTEMPT: String(attempt),
  };
}

/** The exit status, or the name of the signal that ended it. */
async function exited(child: ChildProcess): Promise<number | NodeJS.Signals> {
  if (child.exitCode !== null) return child.exitCode;
  if (child.signalCode !== null) return child.signalCode;
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(code ?? signal ?? 1);
    });
  });
}

function reportLog(report: Report, { addon }: HookRequest, record: Extract<ControlRecord, { kind: 'log' }>): void {
  const level = record.level === 'warning' || record.level === 'failure' ? 'warning' : 'info';
  report({ type: 'note', level, text: `${addon}: ${record.text.trimEnd()}` });
}

/** Says that a hook is still at work when its log has not grown for a while. */
function watchSilence(
  request: HookRequest,
  log: string,
  { report, heartbeatMs = HEARTBEAT_MS }: HookOptions,
  questions: Questions | undefined,
): NodeJS.Timeout {
  const lookMs = heartbeatMs / LOOKS;
  let size = 0;
  let looks = 0;
  const look = async (): Promise<void> => {
    const found = await stat(log).catch(() => undefined);
    if (found === undefined) return;
    looks = found.size === size ? looks + 1 : 0;
    size = found.size;
    if (looks === 0 || looks % LOOKS !== 0 || questions?.isOpen() === true) return;
    const seconds = Math.round((looks * lookMs) / 1000);
    report({
      type: 'note',
      level: 'info',
      text: `${request.addon}: ${request.function} is at work, silent for ${seconds} s`,
    });
  };
  return setInterval(() => {
    void look();
  }, lookMs);
}
