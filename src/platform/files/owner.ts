/** The process that a half-written file belongs to, named so that other processes can tell whether it is still there. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { errnoOf } from '../../core/errors.ts';

export interface Owner {
  /** Where its pid means something: one boot of one machine, one pid namespace. 12 hex digits. */
  readonly place: string;
  readonly pid: number;
  /** Clock ticks since boot at which it started, in digits: a pid that is used again has another one. */
  readonly start: string;
}

function attempt(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** proc(5), stat field 22. Undefined when there is no such process, or none that may be looked at. */
function startOf(pid: number): string | undefined {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
  // The name stands in parentheses and may hold any character, so the fields count from the last one.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
}

function findPlace(): string | undefined {
  // A /proc of another pid namespace would tell of other processes under our numbers.
  if (attempt(() => readlinkSync('/proc/self')) !== String(process.pid)) return undefined;
  const boot = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim());
  const namespace = attempt(() => readlinkSync('/proc/self/ns/pid'));
  if (boot === undefined || namespace === undefined) return undefined;
  return createHash('sha256').update(`${boot} ${namespace}`).digest('hex').slice(0, 12);
}

let own: Owner | undefined;

/** This process. Where there is no /proc its place is a made-up one, and nobody can tell whether it is there. */
export function ownOwner(): Owner {
  own ??= {
    place: findPlace() ?? randomBytes(6).toString('hex'),
    pid: process.pid,
    start: startOf(process.pid) ?? '0',
  };
  return own;
}

/** Whether a process is there. Undefined when it lives, or lived, where this one cannot see. */
export function isThere({ place, pid, start }: Owner): boolean | undefined {
  if (place !== ownOwner().place) return undefined;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Any other answer comes from a process that is there and belongs to somebody else.
    if (errnoOf(error) === 'ESRCH') return false;
  }
  const now = startOf(pid);
  return now === undefined || now === start;
}
