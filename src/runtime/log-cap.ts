/** A limit for what a hook prints: scripts/cap-log.sh cuts its log, also when this process is gone. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

export interface LogCap {
  /** Bytes from which on a log is cut. */
  readonly most: number;
  /** Bytes at its beginning and at its end that stay; together at most half of `most`. */
  readonly head: number;
  readonly tail: number;
}

const LOG_CAP: LogCap = { most: 64 << 20, head: 8 << 20, tail: 24 << 20 };

/**
 * Keeps a log that exists at this size for as long as any process has it open. The returned function is to be called when
 * the hook has ended; when it resolves, the log has been cut for the last time unless something still writes to it.
 */
export function capLog(
  log: string,
  {
    scripts,
    path,
    cap = LOG_CAP,
  }: { readonly scripts: string; readonly path: string; readonly cap?: LogCap | undefined },
): () => Promise<void> {
  const { most, head, tail } = cap;
  const words = ['--noprofile', '--norc', join(scripts, 'cap-log.sh'), log, ...[most, head, tail].map(String)];
  // Of the hook's environment it gets nothing: by that the processes of a hook are found.
  const child = spawn('bash', words, { env: { PATH: path }, detached: true, stdio: ['pipe', 'pipe', 'ignore'] });
  // As long as it runs it has files open, so that their disk cannot be unmounted.
  const looked = Promise.race([once(child, 'exit'), once(child.stdout, 'data')]);
  looked.catch(() => undefined);
  child.stdin.on('error', () => undefined);
  child.unref();
  return async () => {
    child.ref();
    child.stdin.end();
    await looked.catch(() => undefined);
    child.unref();
  };
}
