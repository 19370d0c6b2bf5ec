/** Whether a file is as it was, without reading it. */
import type { BigIntStats } from 'node:fs';

/**
 * Identifies a file state without reading it: inode, size, and mtime and ctime in nanoseconds. The kernel sets ctime from its
 * own clock whenever bytes, mode or owner change, and no system call sets it to another value.
 */
export function fileMark({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs, ctimeNs].join(' ');
}

/** Clocks of kernels tick at least 100 times a second. */
const TICK_MS = 20;
/** Some file systems keep whole seconds, FAT every second one. */
const COARSE_MS = 2000;

/** Whether a change after `now`, in milliseconds since 1970, would show in the mark: the file has not changed within the same tick. */
export function isSettled({ ctimeNs }: Pick<BigIntStats, 'ctimeNs'>, now: number): boolean {
  const grainMs = ctimeNs % 1_000_000_000n === 0n ? COARSE_MS : TICK_MS;
  return now - Number(ctimeNs / 1_000_000n) > grainMs;
}
