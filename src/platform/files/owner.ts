/** The process that writes a partial file, identified so that other processes can check whether it still runs. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { errnoOf } from '../../core/errors.ts';

export interface Owner {
  /** Scope of the pid: one boot of one machine, one pid namespace. 12 hex digits. */
  readonly place: string;
  readonly pid: number;
  /** Start time in clock ticks since boot, in digits: it differs when a pid is reused. */
  readonly start: string;
}

function attempt(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** proc(5), stat field 22. Undefined if the process does not exist or cannot be read. */
export function startTimeOf(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The name is in parentheses and may contain any character, so the fields count from the last one.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function findPlace(): string | undefined {
  // A /proc of another pid namespace would show other processes under these pids.
  if (attempt(() => readlinkSync('/proc/self')) !== String(process.pid)) return undefined;
  const boot = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim());
  const namespace = attempt(() => readlinkSync('/proc/self/ns/pid'));
  if (boot === undefined || namespace === undefined) return undefined;
  return createHash('sha256').update(`${boot} ${namespace}`).digest('hex').slice(0, 12);
}

let own: Owner | undefined;

/** This process. Without /proc its place is random, so no other process can check whether it runs. */
export function ownOwner(): Owner {
  own ??= {
    place: findPlace() ?? randomBytes(6).toString('hex'),
    pid: process.pid,
    start: startTimeOf(process.pid) ?? '0',
  };
  return own;
}

/** Whether a process runs; with `start`, the same one and not another that reuses its pid. */
export function isRunning(pid: number, start: string | undefined): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Any other error means that the process runs as another user.
    if (errnoOf(error) === 'ESRCH') return false;
  }
  const now = startTimeOf(pid);
  return now === undefined || start === undefined || now === start;
}

/** Whether a process runs. Undefined if this process cannot see the place where it runs or ran. */
export function isOwnerRunning({ place, pid, start }: Owner): boolean | undefined {
  return place === ownOwner().place ? isRunning(pid, start) : undefined;
}
