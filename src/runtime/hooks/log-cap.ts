/**
 * Limits the size of hook logs: scripts/cap-log.sh truncates a log, even after this process has ended. So it is not started
 * through platform/process, whose programs end with this process.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isOutputOfProcess } from '../../platform/process/process-tree.ts';

export interface LogCap {
  /** Maximum bytes; a larger log is truncated. */
  readonly most: number;
  /** Bytes at its start and end that are kept; together at most half of `most`. */
  readonly head: number;
  readonly tail: number;
}

const LOG_CAP: LogCap = { most: 64 << 20, head: 8 << 20, tail: 24 << 20 };

/** Most hooks end earlier and need no watcher. */
const FIRST_LOOK_MS = 200;

export interface CapOptions {
  /** Folder with cap-log.sh. */
  readonly scripts: string;
  readonly path: string;
  readonly cap?: LogCap | undefined;
}

/**
 * Limits the size of an existing log, open as `file`, while any process has it open. Call the returned function when the hook has
 * ended. When it resolves, `file` is closed and the log has its final size unless a process still writes to it.
 */
export function capLog(log: string, file: FileHandle, options: CapOptions): () => Promise<void> {
  const { most } = options.cap ?? LOG_CAP;
  let watcher: Watcher | undefined;
  const watch = (): Watcher => (watcher ??= startWatcher(log, file, options));
  const timer = setTimeout(watch, FIRST_LOOK_MS).unref();
  const settle = async (): Promise<void> => {
    clearTimeout(timer);
    const { size, dev, ino } = await file.stat();
    if (watcher !== undefined || size > most || isOutputOfProcess({ dev, ino })) await watch().settle();
    await file.close();
  };
  let settled: Promise<void> | undefined;
  return async () => (settled ??= settle());
}

interface Watcher {
  readonly settle: () => Promise<void>;
}

function startWatcher(log: string, { fd }: FileHandle, { scripts, path, cap = LOG_CAP }: CapOptions): Watcher {
  const { most, head, tail } = cap;
  const args = ['--noprofile', '--norc', join(scripts, 'cap-log.sh'), log, ...[most, head, tail].map(String)];
  // It does not get the hook's environment, which identifies the processes of a hook.
  const child = spawn('bash', args, { env: { PATH: path }, detached: true, stdio: ['pipe', 'pipe', 'ignore', fd] });
  // While it runs, its open files keep their disk from being unmounted.
  const looked = Promise.race([once(child, 'exit'), once(child.stdout as Readable, 'data')]);
  looked.catch(() => undefined);
  child.stdin?.on('error', () => undefined);
  child.unref();
  return {
    settle: async () => {
      child.ref();
      child.stdin?.end();
      await looked.catch(() => undefined);
      child.unref();
    },
  };
}
