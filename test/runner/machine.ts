/** The machine that tests run on: what they have used of it, and load beside them. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

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
