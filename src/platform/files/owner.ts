/** The process that owns a lock or a partial file, identified so that other processes can check whether it still runs. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
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
  const self = attempt(() => readlinkSync('/proc/self'));
  if (self === undefined) return hashOf(hostname());
  // A /proc of another pid namespace would show other processes under these pids.
  if (self !== String(process.pid)) return undefined;
  const boot = attempt(() => readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim());
  return boot === undefined ? undefined : placeOf(boot);
}

function placeOf(boot: string): string | undefined {
  const namespace = attempt(() => readlinkSync('/proc/self/ns/pid'));
  return namespace === undefined ? undefined : hashOf(`${boot} ${namespace}`);
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}

let own: Owner | undefined;

/** This process. With a /proc of other processes its place is random, so no other process can check whether it runs. */
export function ownOwner(): Owner {
  own ??= {
    place: findPlace() ?? randomBytes(6).toString('hex'),
    pid: process.pid,
    start: processInfo(process.pid)?.start ?? '0',
  };
  return own;
}

/** The one written form of an owner: this process. */
export function ownerText(): string {
  const { place, pid, start } = ownOwner();
  return `${place}-${pid}-${start}`;
}

/**
 * The owner at the start of a text; undefined for anything else, such as a file that a power failure has cut. Reads the JSON that
 * curlew 0.1 writes into the lock of a node, too: a node may still run it when a newer curlew starts there.
 */
export function parseOwner(text: string): Owner | undefined {
  const [, oldPid, oldStart, boot = ''] =
    /^\{"pid":(\d{1,10}),"start":"(\d{1,20})","boot":"([0-9a-f-]{36})"/.exec(text) ?? [];
  const written = oldPid === undefined ? text : `${placeOf(boot) ?? ''}-${oldPid}-${oldStart ?? ''}`;
  const [, place, pid, start] = /^([0-9a-f]{12})-(\d{1,10})-(\d{1,20})(?!\d)/.exec(written) ?? [];
  if (place === undefined || pid === undefined || start === undefined) return undefined;
  return { place, pid: Number(pid), start };
}

/** Whether a process runs. Undefined if this process cannot see the place where it runs or ran. */
export function isOwnerRunning({ place, pid, start }: Owner): boolean | undefined {
  return place === ownOwner().place ? isProcessRunning(pid, start) : undefined;
}
