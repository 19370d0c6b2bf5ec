/**
 * Runs one hook in a bash process: environment, output, termination, remaining processes. Output and control records go to
 * files, so a hook survives the death of this process, unlike programs of platform/process, which use pipes and end with it.
 * Daemons of a hook may stay, too.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { open, rm, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Reporting } from '../../core/cancellable.ts';
import { visible } from '../../core/diagnostic.ts';
import { CurlewError, fileError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { followControl, withoutName, type ControlRecord } from './control.ts';
import { hookMarker } from '../plan/action-id.ts';
import { hookFailure, noticeRecord, type FailedHook, type HookNotes } from './hook-failure.ts';
import { requireOwnLinks } from './confine.ts';
import { capLog, type LogCap } from './log-cap.ts';
import { seenPath, type NodePlace } from '../node/node-place.ts';
import type { Ask } from '../../core/context.ts';
import { answerQuestions, type Questions } from './questions.ts';
import {
  commandLine,
  endProcesses,
  membersOf,
  processInfo,
  type Family,
  type ProcessInfo,
} from '../../platform/process/process-tree.ts';
import { searchPath } from '../../platform/process/search-path.ts';

/** Settings that all hooks of a run share. All paths are absolute paths of this process. */
export interface HookShell {
  readonly place: NodePlace;
  readonly run: string;
  /** Folder of the run, for logs and control files. */
  readonly folder: string;
  /** Folder that hooks may also write to in a sandbox: carried variables, and answers that they remove. */
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

export interface HookStart {
  readonly addon: string;
  /** Name of the shell function, and of the log. */
  readonly function: string;
  /** Arguments of the function. */
  readonly args?: readonly string[] | undefined;
  /** install.sh that is sourced again just before the call. */
  readonly own?: string | undefined;
  /** 1 for the first attempt; more if earlier attempts did not finish. */
  readonly attempt: number;
  /** The caller reads its output at its end, so its log lines are not reported. */
  readonly returnsOutput?: boolean | undefined;
  /** No limit if absent. */
  readonly limitMs?: number | undefined;
}

export interface HookOptions extends Reporting {
  /** Answers the questions of a hook; absent if there is no terminal. */
  readonly ask?: Ask | undefined;
  /** Silence after which a running hook is reported; default: 60 s. */
  readonly heartbeatMs?: number;
  readonly graceMs?: number;
  /** Size limit of its log. */
  readonly logCap?: LogCap;
}

export interface HookOutcome {
  readonly seconds: number;
  readonly log: string;
  /** From its control records. */
  readonly notes: HookNotes;
  /** Names of processes in its session that curlew ended. */
  readonly ended: readonly string[];
  /** Names of processes that keep running in their own sessions. */
  readonly daemons: readonly string[];
}

const HEARTBEAT_MS = 60_000;
/** Checks of the log in that time. */
const CHECKS = 4;
/** Variables that change bash before the runner's first line; `BASH_FUNC_…` are exported functions of the caller. */
const SHELL_VARIABLES = /^(?:BASH_ENV|ENV|SHELLOPTS|BASHOPTS|POSIXLY_CORRECT|BASH_FUNC_.*|CURLEW_.*)$/s;
const EXTRA_PATH = '/usr/local/bin';

function logPath({ folder }: Pick<HookShell, 'folder'>, hook: Pick<HookStart, 'function'>): string {
  return join(folder, `${hook.function}.log`);
}

function controlPath({ folder }: HookShell, hook: HookStart): string {
  return join(folder, `${hook.function}.control`);
}

/**
 * Runs hook-runner.sh with these arguments to its end. `HOOK_FAILED` if it fails or exceeds its limit; an abort ends all
 * processes that it started.
 */
export async function runShell(
  shell: HookShell,
  request: HookStart,
  options: HookOptions,
  args: readonly string[],
): Promise<HookOutcome> {
  const { signal, report, graceMs } = options;
  signal.throwIfAborted();
  const started = performance.now();
  const log = logPath(shell, request);
  const control = controlPath(shell, request);
  const notes: HookNotes = {};
  const onRecord = (record: ControlRecord): void => {
    noticeRecord(notes, record);
    if (record.kind === 'question') questions?.take(record);
    if (record.kind === 'log' && request.returnsOutput !== true) reportLog(report, request, record);
  };
  const limit = request.limitMs === undefined ? undefined : AbortSignal.timeout(request.limitMs);
  const stop = AbortSignal.any([signal, ...(limit === undefined ? [] : [limit])]);
  const answers = join(shell.exchange, `${request.function}.answer`);
  const over = new AbortController();
  const source = { addon: request.addon, log, answers, report, signal: AbortSignal.any([stop, over.signal]) };
  const questions = options.ask === undefined ? undefined : answerQuestions({ ...source, ask: options.ask });
  // Before the process starts: a failure here must not leave a process behind.
  await (await openFresh(control, 'w')).close();
  const follower = await followControl(control, onRecord);
  const asked = questions === undefined ? undefined : answers;
  const { child, output } = await start(shell, request, args, asked).catch(async (error: unknown) => {
    await follower.finish();
    throw error;
  });
  const settleLog = capLog(log, output, { scripts: shell.scripts, path: searchPath(shell.env), cap: options.logCap });
  const since = child.pid === undefined ? undefined : processInfo(child.pid)?.start;
  const family: Family = { session: child.pid ?? -1, marker: hookMarker(shell.run, request.function), since };
  const all = (): readonly ProcessInfo[] => {
    const { inSession, outside } = membersOf(family);
    return [...inSession, ...outside];
  };
  const heartbeat = watchSilence(request, log, options, questions, () => membersOf(family).inSession);
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
    const members = membersOf(family);
    const ended = members.inSession.length === 0 ? [] : await endProcesses(() => membersOf(family).inSession, grace);
    await follower.finish();
    // The log must be complete before its end is quoted.
    await settleLog();
    const failed = { ...request, log, notes, node: shell.place, trial: trialOf(shell) };
    if (signal.aborted) throw await hookFailure({ ...failed, exit: 'cancelled', cause: signal.reason });
    if (limit?.aborted === true) throw await hookFailure({ ...failed, exit: 'limit' });
    if (exit !== 0) throw await hookFailure({ ...failed, exit });
    if (shell.place.confined) await requireOwnLinks(shell.place.directory);
    const names = (processes: readonly ProcessInfo[]): readonly string[] => processes.map(({ name }) => name);
    const outcome = { seconds: (performance.now() - started) / 1000, log, notes };
    return { ...outcome, ended: names(ended), daemons: names(members.outside) };
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

function trialOf({ place, env }: HookShell): FailedHook['trial'] {
  if (!place.confined) return undefined;
  return env['KUBECONFIG'] === undefined ? 'without cluster' : 'with cluster';
}

/** `answers` is the path prefix of the answer files; undefined if there is no terminal. */
async function start(
  shell: HookShell,
  request: HookStart,
  runnerArgs: readonly string[],
  answers: string | undefined,
): Promise<{ readonly child: ChildProcess; /** The log, open. */ readonly output: FileHandle }> {
  const { place } = shell;
  const [command, ...args] = place.wrap(['bash', '--noprofile', '--norc', ...runnerArgs]);
  const output = await openFresh(logPath(shell, request), 'a');
  const records = await openFresh(controlPath(shell, request), 'a');
  try {
    const child = spawn(command, args, {
      cwd: place.directory,
      env: {
        ...hookEnvironment(shell, request),
        ...(answers === undefined
          ? {}
          : { CURLEW_ANSWER: seenPath(place, answers), CURLEW_ASKER: place.confined ? 'self' : String(process.pid) }),
      },
      // Its own session: no terminal, and all its processes can be ended together.
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
    throw new CurlewError('UNSUPPORTED', `${request.addon}: cannot start ${command}`, { cause: error });
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

function hookEnvironment({ env, run }: HookShell, { function: called, attempt }: HookStart): Record<string, string> {
  const variables = Object.entries(env).filter(([name]) => !SHELL_VARIABLES.test(name));
  return {
    ...Object.fromEntries(variables.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
    PATH: searchPath(env, EXTRA_PATH),
    CURLEW_RUN: run,
    CURLEW_HOOK: `${run}/${called}`,
    CURLEW_ATTEMPT: String(attempt),
  };
}

/** The exit status, or the signal that ended it. */
async function exited(child: ChildProcess): Promise<number | NodeJS.Signals> {
  if (child.exitCode !== null) return child.exitCode;
  if (child.signalCode !== null) return child.signalCode;
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve(code ?? signal ?? 1);
    });
  });
}

function reportLog(report: Report, { addon }: HookStart, record: Extract<ControlRecord, { kind: 'log' }>): void {
  const level = record.level === 'warning' || record.level === 'failure' ? 'warning' : 'info';
  report({ type: 'note', level, text: `${addon}: ${withoutName(addon, record.text.trimEnd())}` });
}

/** Reports that a hook is still running, and which programs, if its log has not grown for a while. */
function watchSilence(
  request: HookStart,
  log: string,
  { report, heartbeatMs = HEARTBEAT_MS }: HookOptions,
  questions: Questions | undefined,
  processes: () => readonly ProcessInfo[],
): NodeJS.Timeout {
  const checkMs = heartbeatMs / CHECKS;
  let size = 0;
  let silent = 0;
  const check = async (): Promise<void> => {
    const stats = await stat(log).catch(() => undefined);
    if (stats === undefined) return;
    silent = stats.size === size ? silent + 1 : 0;
    size = stats.size;
    if (silent === 0 || silent % CHECKS !== 0 || questions?.isOpen() === true) return;
    const seconds = Math.round((silent * checkMs) / 1000);
    report({
      type: 'note',
      level: 'info',
      text: `${request.addon}: ${request.function} is running; no output for ${seconds} s${waitsFor(processes())}`,
    });
  };
  return setInterval(() => {
    void check();
  }, checkMs);
}

/** kubectl commands whose arguments are shown: they may wait forever, and have no secrets. */
const WAITING = /^(?:\S+ )?\S*kubectl (?:\S+ )*?(?:delete|drain|rollout|wait)\b/;
const SHOWN_WORDS = 160;

/** Names the programs that a hook waits for. Arguments of others may have secrets. */
function waitsFor(processes: readonly ProcessInfo[]): string {
  const parents = new Set(processes.map(({ parent }) => parent));
  const names = processes
    .filter(({ pid }) => !parents.has(pid))
    .map(({ pid, name }) => {
      const words = commandLine(pid);
      return WAITING.test(words) ? visible(words.slice(0, SHOWN_WORDS)) : name;
    });
  return names.length === 0 ? '' : `; it waits for ${[...new Set(names)].join(', ')}`;
}
