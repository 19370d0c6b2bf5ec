/** The process that writes a partial file, identified so that other processes can check whether it still runs. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { isProcessRunning, processInfo } from '../process/process-tree.ts';

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
    start: processInfo(process.pid)?.start ?? '0',
  };
  return own;
}

/** Whether a process runs. Undefined if this process cannot see the place where it runs or ran. */
export function isOwnerRunning({ place, pid, start }: Owner): boolean | undefined {
  return place === ownOwner().place ? isProcessRunning(pid, start) : undefined;
}
