/** Processes in /proc: their identity, which ones belong to a hook, and how to end all of them. */
import { existsSync, readdirSync, readFileSync, statSync, type Stats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { CurlewError, errnoOf } from '../../core/errors.ts';

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Start time in clock ticks since boot: with the pid it identifies a process even if the pid is reused. */
  readonly start: string;
  /** The program's name in the kernel: at most 15 characters. */
  readonly name: string;
}

/** Facts about a running process; undefined if it does not exist or is a zombie. */
export function processInfo(pid: number): ProcessInfo | undefined {
  const stat = readStat(pid);
  return stat?.ended === true ? undefined : stat;
}

/**
 * Whether a process runs; with `start`, the same one and not another that reuses its pid. A killed process that its parent
 * has not reaped does not run.
 */
export function isProcessRunning(pid: number, start: string | undefined): boolean {
  const stat = readStat(pid);
  if (stat !== undefined) return !stat.ended && (start === undefined || stat.start === start);
  // It does not exist, or /proc does not show it: it is not mounted, or hides the processes of other users.
  return exists(pid);
}

function readStat(pid: number): (ProcessInfo & { readonly ended: boolean }) | undefined {
  const text = readProc(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // proc(5): the name is in parentheses and may contain any character, so the fields count from the last one.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  const fields = text.slice(close + 2).split(' ');
  const [state] = fields;
  const [parent = 0, group = 0, session = 0] = fields.slice(1, 4).map(Number);
  const ended = state === 'Z' || state === 'X';
  return { pid, parent, group, session, start: fields[19] ?? '', name: text.slice(open + 1, close), ended };
}

/** True for a process, or with a negative number for a group (kill(2)). */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Any other error means that it runs as another user.
    return errnoOf(error) !== 'ESRCH';
  }
  return true;
}

/** The arguments of a process, separated by blanks; empty if it has ended. */
export function commandLine(pid: number): string {
  return (readProc(`/proc/${pid}/cmdline`) ?? '').split('\0').join(' ').trim();
}

/** Identifies the current boot of this machine. `UNSUPPORTED` without /proc, as in a bare chroot. */
export async function bootId(path = '/proc/sys/kernel/random/boot_id'): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new CurlewError('UNSUPPORTED', `cannot read ${path}: /proc is not mounted, or is not Linux's /proc`, {
      hint: 'mount it: mount -t proc proc /proc; runs and their hooks require it',
      cause: error,
    });
  }
}

/** Identifies the processes of a hook: its session, and a `NAME=value` in the environment of those that left the session. */
export interface Family {
  readonly session: number;
  readonly marker: string;
  /** Start of the first of them: a process that started earlier does not belong, and its environment is not read. */
  readonly since?: string | undefined;
}

export interface Members {
  readonly inSession: readonly ProcessInfo[];
  /** Started by the hook, but in another session. */
  readonly outside: readonly ProcessInfo[];
}

/** All processes of a family, but never this one. */
export function membersOf({ session, marker, since = '0' }: Family): Members {
  const inSession: ProcessInfo[] = [];
  const outside: ProcessInfo[] = [];
  for (const pid of pids()) {
    if (pid === process.pid) continue;
    const info = processInfo(pid);
    if (info === undefined) continue;
    if (info.session === session) inSession.push(info);
    else if (Number(info.start) >= Number(since) && hasMarker(pid, marker)) outside.push(info);
  }
  return { inSession, outside };
}

function pids(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

/** True if a process prints to this file. Checks only descriptors 1 and 2: a node has too many to check all after each hook. */
export function isOutputOfProcess({ dev, ino }: { readonly dev: number; readonly ino: number }): boolean {
  return pids()
    .flatMap((pid) => [`/proc/${pid}/fd/1`, `/proc/${pid}/fd/2`])
    .some((path) => {
      const stats = readableStat(path);
      return stats !== undefined && stats.dev === dev && stats.ino === ino;
    });
}

/** The target of a path, if it exists and is readable. */
function readableStat(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function hasMarker(pid: number, marker: string): boolean {
  const environment = readProc(`/proc/${pid}/environ`);
  return environment?.split('\0').includes(marker) ?? false;
}

/**
 * The text of a file that may vanish or be unreadable at any moment. Synchronous: the kernel answers from memory, and
 * hundreds of event-loop turns would cost more than the reads.
 */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

const GRACE_MS = 10_000;
const POLL_MS = 25;
/** Rounds of SIGKILL: a process between two forks shows up in the next one. */
const KILL_ROUNDS = 400;

/**
 * Ends all processes that `find` returns: SIGTERM, ten seconds, then SIGKILL until none is left. Returns the processes of
 * the first call. This carries out an abort, so it takes no signal itself.
 */
export async function endProcesses<Process extends Pick<ProcessInfo, 'pid'>>(
  find: () => readonly Process[],
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<readonly Process[]> {
  const first = find();
  if (first.length === 0) return first;
  send(first, 'SIGTERM');
  // A stopped process does not handle SIGTERM until it continues.
  send(first, 'SIGCONT');
  const deadline = performance.now() + graceMs;
  while (performance.now() < deadline) {
    await wait(POLL_MS);
    const processes = find();
    if (processes.length === 0) return first;
    // A process that a shell with a trap has just forked receives the signal with the shell's trap and loses it at exec.
    send(
      processes.filter(({ pid }) => diesOfTerm(pid)),
      'SIGTERM',
    );
  }
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const processes = find();
    if (processes.length === 0) break;
    send(processes, 'SIGKILL');
    await wait(POLL_MS);
  }
  return first;
}

/**
 * Ends every process of a group in the same way. Resolves even if some cannot be ended, such as those of root.
 */
export async function endGroup(leader: number, { graceMs }: { readonly graceMs: number }): Promise<void> {
  // kill(2): a negative number is a whole group.
  await endProcesses(() => (isRunning(leader) ? [{ pid: -leader }] : []), { graceMs });
}

/** Kills a group immediately. */
export function killGroup(leader: number): void {
  send([{ pid: -leader }], 'SIGKILL');
}

/** False once a group contains only zombies, which their parent may reap later. */
function isRunning(leader: number): boolean {
  if (!exists(-leader)) return false;
  return !existsSync('/proc/self') || pids().some((pid) => processInfo(pid)?.group === leader);
}

/** True for a process that neither catches nor ignores SIGTERM, so it has not received one since its last exec. */
function diesOfTerm(pid: number): boolean {
  const status = readProc(`/proc/${pid}/status`) ?? '';
  const masks = [...status.matchAll(/^Sig(?:Ign|Cgt):\t([0-9a-f]+)$/gm)].map(([, hex = '0']) => BigInt(`0x${hex}`));
  return masks.length === 2 && masks.every((mask) => ((mask >> 14n) & 1n) === 0n);
}

function send(processes: readonly Pick<ProcessInfo, 'pid'>[], signal: NodeJS.Signals): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (errnoOf(error) !== 'ESRCH' && errnoOf(error) !== 'EPERM') throw error;
    }
  }
}
