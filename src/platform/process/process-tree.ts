/** Processes as /proc shows them: who they are, which belong to a hook, and how all of them are ended. */
import { existsSync, readdirSync, readFileSync, statSync, type Stats } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { CurlewError, errnoOf } from '../../core/errors.ts';

export interface ProcessInfo {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks since boot at which it started: with the pid it names a process, also after the pid was reused. */
  readonly start: string;
  /** The program's name as the kernel keeps it: at most 15 characters. */
  readonly name: string;
}

/** Facts about a process that runs; undefined when there is none, or only what is left of one (a zombie). */
export function processInfo(pid: number): ProcessInfo | undefined {
  const text = readProc(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // proc(5): the name stands in parentheses and may hold any character, so the fields count from the last one.
  const open = text.indexOf('(');
  const close = text.lastIndexOf(')');
  const fields = text.slice(close + 2).split(' ');
  const [state] = fields;
  if (state === 'Z' || state === 'X') return undefined;
  const [group, session] = [Number(fields[2]), Number(fields[3])];
  return { pid, group, session, start: fields[19] ?? '', name: text.slice(open + 1, close) };
}

/** Names the time since this machine was started. Without /proc, as in a bare chroot, that is `UNSUPPORTED`. */
export async function bootId(path = '/proc/sys/kernel/random/boot_id'): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new CurlewError('UNSUPPORTED', `read ${path}: /proc is not mounted here, or not as Linux has it`, {
      hint: 'mount it, as in: mount -t proc proc /proc; runs and their hooks need it',
      cause: error,
    });
  }
}

/** What binds processes to a hook: its session, and a `NAME=value` in the environment of those that left it. */
export interface Family {
  readonly session: number;
  readonly marker: string;
  /** Start of the first of them: whatever runs longer is none of them, and its environment is not read. */
  readonly since?: string | undefined;
}

export interface Members {
  readonly inSession: readonly ProcessInfo[];
  /** Started by the hook, but in a session of their own. */
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

/** True when a process prints to this file: other descriptors of a node are too many to look at after each hook. */
export function isHeld({ dev, ino }: { readonly dev: number; readonly ino: number }): boolean {
  return pids()
    .flatMap((pid) => [`/proc/${pid}/fd/1`, `/proc/${pid}/fd/2`])
    .some((path) => {
      const found = look(path);
      return found !== undefined && found.dev === dev && found.ino === ino;
    });
}

/** What a path leads to, where it does and where it is ours to see. */
function look(path: string): Stats | undefined {
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
 * The text of a file that may vanish, or not be ours to read, at any moment. Synchronous: the kernel answers from
 * memory, and hundreds of turns of the event loop would cost more than the reading.
 */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
}

const GRACE_MS = 10_000;
const LOOK_MS = 25;
/** Rounds of SIGKILL: a process between two forks shows up in the next one. */
const KILL_ROUNDS = 400;

/**
 * Ends whatever `find` finds: SIGTERM, ten seconds, SIGKILL until nothing is left. Returns what there was at first. This
 * is how an abort is carried out, so it takes no signal itself.
 */
export async function endProcesses<Process extends Pick<ProcessInfo, 'pid'>>(
  find: () => readonly Process[],
  { graceMs = GRACE_MS }: { readonly graceMs?: number } = {},
): Promise<readonly Process[]> {
  const first = find();
  if (first.length === 0) return first;
  send(first, 'SIGTERM');
  // A stopped process takes no SIGTERM before it goes on.
  send(first, 'SIGCONT');
  const deadline = performance.now() + graceMs;
  while (performance.now() < deadline) {
    await wait(LOOK_MS);
    const left = find();
    if (left.length === 0) return first;
    // Just forked by a shell with a trap, it took the signal in the shell's place and lost it with the next program.
    send(
      left.filter(({ pid }) => diesOfTerm(pid)),
      'SIGTERM',
    );
  }
  for (let round = 0; round < KILL_ROUNDS; round += 1) {
    const left = find();
    if (left.length === 0) break;
    send(left, 'SIGKILL');
    await wait(LOOK_MS);
  }
  return first;
}

/**
 * Ends every process of a group in the same way. Those that only root may end, or nobody, stay: this resolves nevertheless.
 */
export async function endGroup(leader: number, { graceMs }: { readonly graceMs: number }): Promise<void> {
  // kill(2): a negative number is a whole group.
  await endProcesses(() => (isRunning(leader) ? [{ pid: -leader }] : []), { graceMs });
}

/** Kills a group at once, as a process does that ends itself. */
export function killGroup(leader: number): void {
  send([{ pid: -leader }], 'SIGKILL');
}

/** False once a group holds nothing but zombies, for which their parent may take its time. */
function isRunning(leader: number): boolean {
  try {
    process.kill(-leader, 0);
  } catch (error) {
    // Anything else: of another user, and there.
    if (errnoOf(error) === 'ESRCH') return false;
  }
  return !existsSync('/proc/self') || pids().some((pid) => processInfo(pid)?.group === leader);
}

/** True for a process that neither catches nor ignores SIGTERM, and so has never got one as it is now. */
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
