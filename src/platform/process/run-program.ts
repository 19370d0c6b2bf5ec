/** Runs a program to its end, with limits on time and output, and also ends every process that it started. */
import type { ChildProcess } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Bytes } from '../../core/bytes.ts';
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { hiding, type Secret } from '../../core/secret.ts';
import { endGroup, killGroup } from './process-tree.ts';
import { createLineSplitter, keepLastLines, plainLine, quoteLines } from './program-lines.ts';
import { searchPath } from './search-path.ts';

export interface ProgramOptions {
  /** The whole environment, with the PATH of {@link searchPath}: nothing is inherited. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string | undefined;
  /** Standard input; default: empty. An error of an iterable closes it, and is thrown once the program has ended. */
  readonly input?: string | AsyncIterable<Uint8Array> | undefined;
  /** Called with each line of both outputs, without colors. Output is then neither kept nor limited. */
  readonly line?: ((text: string) => void) | undefined;
  /** Limit of the bytes kept of standard output and of standard error; default 8 MiB. */
  readonly outputLimit?: number | undefined;
  /** The consequence if a program prints more: it is ended, or the rest is dropped. */
  readonly excess?: 'end' | 'drop' | undefined;
  /** Time limit in milliseconds. */
  readonly limitMs?: number | undefined;
  /** Milliseconds between SIGTERM and SIGKILL; default 5 s. */
  readonly graceMs?: number | undefined;
  /** Standard error, lines and messages show `[secret]` where the program prints one of these. */
  readonly secrets?: readonly Secret[] | undefined;
  /** The text that lines and messages show instead of a line. */
  readonly clean?: ((text: string) => string) | undefined;
  /** The program is killed if this process is killed. It then has no standard input. */
  readonly bound?: boolean | undefined;
  /** Begins the message of the error, such as `render the chart web`; default: `run <file>`. */
  readonly doing?: string | undefined;
  readonly signal: AbortSignal;
}

/** `missing`: not installed; `unusable`: cannot be started; `late`, `output`: over a limit; `signal`, `status`: how it ended. */
export type ProgramProblem = 'missing' | 'unusable' | 'late' | 'output' | 'signal' | 'status';

/** Why a program failed. The message contains its last lines of output. */
export class ProgramError extends CurlewError {
  readonly problem: ProgramProblem;
  /** The reason alone, such as `status 3`, `ended by SIGKILL`, `not finished after 60 s`. */
  readonly reason: string;
  constructor(problem: ProgramProblem, reason: string, message: string, cause?: unknown) {
    super(problem === 'missing' ? 'NOT_FOUND' : 'PROGRAM_FAILED', message, { cause });
    this.problem = problem;
    this.reason = reason;
  }
}

export interface ProgramResult {
  /** Undefined if `error` is not about a status. */
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** Last lines of standard error; of both outputs if `line` is given. */
  readonly lastLines: readonly string[];
  /** Undefined for status 0. */
  readonly error: ProgramError | undefined;
  /** Set if the program ended before it read all of its input. */
  readonly inputError: Error | undefined;
}

const OUTPUT_LIMIT = 8 << 20;
const GRACE_MS = 5000;
/** Processes that left the group may still hold the pipes open. */
const LATE_MS = 2000;

/**
 * Runs a program in the place of a shell, next to a process of its group that kills the group when the standard input ends: when
 * this process has ended in whatever way.
 */
const BOUND = 'exec 3<&0 </dev/null; (read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 & exec "$0" "$@" 3<&-';

/** The same as {@link tryProgram} for a program that must succeed: throws a {@link ProgramError} unless it ends with status 0. */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<Pick<ProgramResult, 'stdout' | 'stderr'>> {
  return tryProgram(file, args, options, ({ stdout, stderr, error }) => {
    if (error !== undefined) throw error;
    return { stdout, stderr };
  });
}

/**
 * Runs a program without a shell, in its own process group and session. When it ends, for any reason, the rest of the group
 * gets SIGTERM, and SIGKILL after the grace period. Only `judge` gets how it ended, so that no caller takes a failure for a success;
 * returns what that returns. Once the group has ended, throws the signal's reason or an error of `input` or `line`.
 */
export async function tryProgram<Verdict>(
  file: string,
  args: readonly string[],
  options: ProgramOptions,
  judge: (ended: ProgramResult) => Verdict | Promise<Verdict>,
): Promise<Verdict> {
  return judge(await endOf(file, args, options));
}

async function endOf(file: string, args: readonly string[], options: ProgramOptions): Promise<ProgramResult> {
  const { cwd, env, input, limitMs, outputLimit = OUTPUT_LIMIT, bound = false, signal } = options;
  // Loaded on use: most commands run no program.
  const { ChildProcess: Unstarted, spawn } = await import('node:child_process');
  signal.throwIfAborted();
  const stdin = input === undefined && !bound ? 'ignore' : 'pipe';
  const [launched, launchArgs] = bound ? ['sh', ['-c', BOUND, file, ...args]] : [file, args];
  const { child, ended: end } = started(Unstarted, () =>
    spawn(launched, launchArgs, {
      env: { ...env, PATH: searchPath(env) },
      cwd,
      detached: true,
      stdio: [stdin, 'pipe', 'pipe'],
    }),
  );
  const group = holdGroup(child, options);
  const failures: unknown[] = [];
  let cut: readonly [ProgramProblem, string] | undefined;
  const stop = (problem: ProgramProblem, reason: string): void => {
    cut ??= [problem, reason];
    group.end();
  };
  const outputs = readOutputs(child, { ...options, outputLimit }, (error) => {
    if (error === undefined) return stop('output', `more than ${outputLimit} bytes of output`);
    failures.push(error);
    group.end();
  });
  const late = (): void => stop('late', `not finished after ${(limitMs ?? 0) / 1000} s`);
  const timer = limitMs === undefined ? undefined : setTimeout(late, limitMs);
  signal.addEventListener('abort', group.end, { once: true });
  try {
    const [cause, inputError] = await Promise.all([Promise.race([end, group.lost]), feed(child, input, failures)]);
    await group.gone();
    signal.throwIfAborted();
    const read = outputs();
    for (const failure of failures) throw failure;
    const why = cut ?? problemOf(child, errnoOf(cause), bound);
    if (why === undefined) return { ...read, status: 0, error: undefined, inputError };
    const [problem, reason] = why;
    const message = `${options.doing ?? `run ${file}`}: ${reason}${quoteLines(read.lastLines)}`;
    const error = new ProgramError(problem, reason, message, cause);
    return { ...read, status: problem === 'status' ? (child.exitCode ?? undefined) : undefined, error, inputError };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', group.end);
  }
}

type Child = Pick<ChildProcess, 'pid' | 'exitCode' | 'signalCode' | 'once' | 'unref' | 'stdin' | 'stdout' | 'stderr'>;

/** A child, and a promise of its end with that of its outputs, or of the error with which it could not be started. */
function started(
  Unstarted: new () => ChildProcess,
  start: () => ChildProcess,
): { readonly child: Child; readonly ended: Promise<unknown> } {
  try {
    const child = start();
    // How it ended says more than a broken pipe.
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.on('error', () => undefined);
    const ended = new Promise<unknown>(
      (resolve) => void child.once('error', resolve).once('close', () => resolve(undefined)),
    );
    return { child, ended };
  } catch (error) {
    // Some errors, such as arguments that are too long, are thrown at once.
    return { child: new Unstarted(), ended: Promise.resolve(error) };
  }
}

function problemOf(
  { pid, exitCode, signalCode }: Child,
  code: string | undefined,
  bound: boolean,
): readonly [ProgramProblem, string] | undefined {
  if ((pid === undefined && code === 'ENOENT') || (bound && exitCode === 127))
    return ['missing', 'it is not installed'];
  if (bound && exitCode === 126) return ['unusable', 'it cannot be started'];
  if (pid === undefined) return ['unusable', `it cannot be started (${code})`];
  if (exitCode === null) return ['signal', `terminated by ${signalCode}`];
  return exitCode === 0 ? undefined : ['status', `status ${exitCode}`];
}

/** Leaders of the running groups: if this process exits immediately, as on a second Ctrl-C, it kills them. */
const running = new Set<number>();

function killRunning(): void {
  for (const leader of running) killGroup(leader);
}

interface Group {
  readonly end: () => void;
  /** Resolves when the group has ended; call it after `end` or after the leader has ended. */
  readonly gone: () => Promise<void>;
  /** Resolves if waiting is futile: other processes hold the pipes, or a process cannot be ended. */
  readonly lost: Promise<undefined>;
}

function holdGroup(child: Child, { graceMs = GRACE_MS }: Pick<ProgramOptions, 'graceMs'>): Group {
  const { pid: leader } = child;
  if (leader === undefined)
    return { end: () => undefined, gone: async () => undefined, lost: new Promise(() => undefined) };
  if (running.size === 0) process.on('exit', killRunning);
  running.add(leader);
  let ending: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let giveUp: (value: undefined) => void = () => undefined;
  const lost = new Promise<undefined>((resolve) => {
    giveUp = resolve;
  });
  const endAll = async (): Promise<void> => {
    await endGroup(leader, { graceMs });
    timer = setTimeout(() => {
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy();
      child.unref();
      giveUp(undefined);
    }, LATE_MS);
  };
  const end = (): void => {
    ending ??= endAll();
  };
  child.once('exit', end);
  const gone = async (): Promise<void> => {
    await ending;
    clearTimeout(timer);
    running.delete(leader);
    if (running.size === 0) process.off('exit', killRunning);
  };
  return { end, gone, lost };
}

type Outputs = Pick<ProgramResult, 'stdout' | 'stderr' | 'lastLines'>;

/** Reads both outputs; calls `stop` without an error at the limit. Call the result once the outputs have ended. */
function readOutputs(
  { stdout, stderr }: Child,
  {
    line,
    outputLimit,
    excess,
    secrets = [],
    clean = (text) => text,
  }: ProgramOptions & { readonly outputLimit: number },
  stop: (error?: unknown) => void,
): () => Outputs {
  const last = keepLastLines();
  const hide = hiding(secrets);
  const addLines = (texts: readonly string[]): void => {
    for (const text of texts) {
      const shown = plainLine(clean(hide(text)));
      last.add(shown);
      line?.(shown);
    }
  };
  const read = (stream: Readable | null, isLogged: boolean): (() => string) => {
    const lines = createLineSplitter();
    const parts: Uint8Array[] = [];
    let remaining = outputLimit;
    const take = (chunk: Uint8Array): void => {
      if (isLogged) addLines(lines.add(chunk));
      if (line !== undefined) return;
      if (remaining > 0) parts.push(chunk.subarray(0, remaining));
      remaining -= chunk.byteLength;
      if (remaining < 0 && excess !== 'drop') stop();
    };
    stream?.on('data', (chunk: Uint8Array) => {
      try {
        take(chunk);
      } catch (error) {
        stop(error);
      }
    });
    return () => {
      if (isLogged) addLines(lines.rest());
      return Buffer.concat(parts).toString();
    };
  };
  const [out, err] = [read(stdout, line !== undefined), read(stderr, true)];
  return () => ({ stdout: out(), stderr: hide(err()), lastLines: last.lines() });
}

/** Returns why the program did not read all of its input, if so. Errors of the input itself go to `failures`. */
async function feed(
  { pid, stdin }: Child,
  input: ProgramOptions['input'],
  failures: unknown[],
): Promise<Error | undefined> {
  if (pid === undefined || stdin === null || input === undefined) return undefined;
  const watched = async function* watched(bytes: AsyncIterable<Uint8Array>): Bytes {
    let isOurs = true;
    try {
      for await (const chunk of bytes) {
        // A broken pipe is thrown into the generator at its yield.
        isOurs = false;
        yield chunk;
        isOurs = true;
      }
    } catch (error) {
      if (isOurs) failures.push(error);
      throw error;
    }
  };
  try {
    await pipeline(Readable.from(typeof input === 'string' ? [input] : watched(input)), stdin);
    return undefined;
  } catch (error) {
    return asError(error);
  }
}
