/**
 * A limit for what a hook prints: scripts/cap-log.sh cuts its log, also when this process is gone. That is why it is no
 * program of platform/process, which end with this one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { isOutputOfProcess } from '../../platform/process/process-tree.ts';

export interface LogCap {
  /** Bytes from which on a log is cut. */
  readonly most: number;
  /** Bytes at its beginning and at its end that stay; together at most half of `most`. */
  readonly head: number;
  readonly tail: number;
}

const LOG_CAP: LogCap = { most: 64 << 20, head: 8 << 20, tail: 24 << 20 };

/** Most hooks end before: they need nobody beside them. */
const FIRST_LOOK_MS = 200;

export interface CapOptions {
  /** Folder with cap-log.sh. */
  readonly scripts: string;
  readonly path: string;
  readonly cap?: LogCap | undefined;
}

/**
 * Keeps a log that exists, open as `file`, at this size for as long as any process has it open. The returned function is to be
 * called when the hook has ended; when it resolves, the log has been cut for the last time unless something still writes to it,
 * and `file` is closed.
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
  const words = ['--noprofile', '--norc', join(scripts, 'cap-log.sh'), log, ...[most, head, tail].map(String)];
  // Of the hook's environment it gets nothing: by that the processes of a hook are found.
  const child = spawn('bash', words, { env: { PATH: path }, detached: true, stdio: ['pipe', 'pipe', 'ignore', fd] });
  // As long as it runs it has files open, so that their disk cannot be unmounted.
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
