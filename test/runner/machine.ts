/** The machine that tests run on: what they have used of it, and load beside them. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';

/** Clock ticks a second in /proc, on every Linux that Node runs on. */
const TICKS = 100;

/** Processor seconds of this process and of every descendant that has ended and was waited for; 0 outside of Linux. */
export function cpuSeconds(): number {
  try {
    const text = readFileSync('/proc/self/stat', 'utf8');
    // After the name, which may hold blanks: utime, stime, cutime and cstime are the 12th to 15th.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
  } catch {
    return 0;
  }
}

/** Memory of a process; 0 where it has ended, and outside of Linux. */
export function residentBytes(pid = 0): number {
  try {
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return Number(kib) * 1024;
  } catch {
    return 0;
  }
}

/** What a machine has, has used and has left. */
export interface Usage {
  readonly processors: number;
  /** Seconds of any time before. */
  readonly now: () => number;
  /** Processor seconds of all processes, since the start of the machine. */
  readonly used: () => number;
  readonly freeBytes: () => number;
}

const MACHINE: Usage = {
  processors: availableParallelism(),
  now: () => performance.now() / 1000,
  used: () => cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0) / 1000,
  freeBytes: () => process.availableMemory(),
};

/** A shorter time says little: what files do comes in bursts. */
const LOOK_S = 2;
/** Memory of a test file with the servers that it starts. */
const FILE_BYTES = 2 * 2 ** 30;

/**
 * Whether a processor has been free, and there is memory for a further test file, since the machine was last looked at, which is some
 * seconds ago at least: what began with the last answer counts in the next.
 */
export function roomOn({ processors, now, used, freeBytes }: Usage = MACHINE): () => boolean {
  let last = { at: now(), used: used() };
  return () => {
    const seconds = now() - last.at;
    if (seconds < LOOK_S) return false;
    const busy = (used() - last.used) / seconds;
    last = { at: now(), used: used() };
    return busy <= processors - 1 && freeBytes() >= FILE_BYTES;
  };
}

/** Keeps this many processors busy until it is disposed of. */
export function busyLoops(processes: number): Disposable {
  const children = Array.from({ length: processes }, () =>
    spawn('/bin/sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
  return {
    [Symbol.dispose]: () => {
      for (const child of children) child.kill('SIGKILL');
    },
  };
}
