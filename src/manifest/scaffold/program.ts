/** Runs a program in a process group of its own, which ends with it, whatever it started. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { keepLastLines, linesOf, plainLine } from '../../platform/process/program-lines.ts';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';

export interface ProgramOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called with each line that it prints on either stream; on standard error only when `capture` is given. */
  readonly line: (text: string) => void;
  /** Keep standard output, at most so many bytes. */
  readonly capture?: number;
  /** How long it may take to end after SIGTERM. */
  readonly graceMs?: number;
  readonly signal: AbortSignal;
}

export interface Ended {
  /** Undefined when a signal ended it. */
  readonly status: number | undefined;
  readonly endedBy: string | undefined;
  /** Standard output, if it was to be kept. */
  readonly output: string;
  readonly lastLines: readonly string[];
}

const GRACE_MS = 10_000;
/** What has left the group may still hold the pipes. */
const LATE_MS = 2000;

/**
 * Waits for the end of a program, whatever its status. An abort sends SIGTERM to its group, SIGKILL after the grace, and
 * throws the reason when all are gone. Throws `NOT_FOUND` when the program is not installed.
 */
export async function runProgram(program: string, args: readonly string[], options: ProgramOptions): Promise<Ended> {
  const { cwd, env, line, capture, graceMs = GRACE_MS, signal } = options;
  signal.throwIfAborted();
  const child = spawn(program, [...args], { cwd, env: { ...env }, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  const last = keepLastLines();
  const read = async (stream: Readable): Promise<void> => {
    for await (const text of linesOf(untilEnd(stream, child))) {
      last.add(plainLine(text));
      line(plainLine(text));
    }
  };
  const stop = endOnAbort(child, graceMs, signal);
  try {
    const [output] = await Promise.all([
      capture === undefined
        ? read(child.stdout).then(() => '')
        : captured(untilEnd(child.stdout, child), program, capture),
      read(child.stderr),
      endGroupAfter(child, closed),
      closed,
    ]);
    signal.throwIfAborted();
    const { exitCode, signalCode } = child;
    return {
      status: exitCode ?? undefined,
      endedBy: signalCode ?? undefined,
      output,
      lastLines: last.lines(),
    };
  } catch (error) {
    endGroup(child, 'SIGKILL');
    signal.throwIfAborted();
    if (errnoOf(error) === 'ENOENT') throw new CurlewError('NOT_FOUND', `run ${program}: it is not installed`);
    throw fileError(`run ${program}`, error);
  } finally {
    stop();
  }
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // Nobody of the group is left.
    if (errnoOf(error) !== 'ESRCH' && errnoOf(error) !== 'EPERM') throw error;
  }
}

/** Hands back what takes the listening away. */
function endOnAbort(child: ChildProcess, graceMs: number, signal: AbortSignal): () => void {
  let timer: NodeJS.Timeout | undefined;
  const end = (): void => {
    endGroup(child, 'SIGTERM');
    timer = setTimeout(() => {
      endGroup(child, 'SIGKILL');
    }, graceMs);
  };
  signal.addEventListener('abort', end, { once: true });
  return () => {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  };
}

/** The program itself has ended: what it left in its group ends too, and nobody waits for pipes that others hold. */
async function endGroupAfter(child: ChildProcess, closed: Promise<unknown>): Promise<void> {
  if (child.pid === undefined) return;
  await once(child, 'exit');
  endGroup(child, 'SIGKILL');
  const late = setTimeout(() => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  }, LATE_MS);
  try {
    await closed;
  } finally {
    clearTimeout(late);
  }
}

/** The bytes of a pipe; that it was closed on this side after the program ended is no failure. */
async function* untilEnd(stream: Readable, child: ChildProcess): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
  } catch (error) {
    if (child.exitCode === null && child.signalCode === null) throw error;
  }
}

async function captured(stream: AsyncIterable<Uint8Array>, program: string, limit: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > limit) throw new CurlewError('FILE_UNUSABLE', `read from ${program}: more than ${limit} bytes`);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString();
}
