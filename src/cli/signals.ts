/** Signals that end the command. */
import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { CurlewError, ERROR_CODES } from '../core/errors.ts';

/** Maximum listeners for one signal, for concurrent systems, blobs and parts. Node warns about a leak above ten. */
const LISTENERS = 1000;

/** Continues the run when its terminal closes. */
export async function outlivingTerminal<Result>(run: () => Promise<Result>): Promise<Result> {
  const nothing = (): void => undefined;
  process.on('SIGHUP', nothing);
  try {
    return await run();
  } finally {
    process.off('SIGHUP', nothing);
  }
}

/**
 * Handles signals: the first one cancels gracefully, a second one exits immediately. The result has aborted if `early` has, to
 * which earlier signals go.
 */
export async function listenForSignals(early: AbortSignal): Promise<AbortSignal> {
  setMaxListeners(LISTENERS);
  const controller = new AbortController();
  const stop = (): void => {
    if (controller.signal.aborted) exitNow();
    controller.abort(new CurlewError('CANCELLED', 'canceled'));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  // A signal that came while modules ran waits for the next turn of the event loop; the first may have begun before it.
  await setImmediate();
  await setImmediate();
  if (early.aborted && !controller.signal.aborted) stop();
  return controller.signal;
}

/** `process.exit` would wait for threads that are reading or writing, such as on a file server that does not answer. */
function exitNow(): void {
  process.emit('exit', ERROR_CODES.CANCELLED);
  process.removeAllListeners('SIGINT');
  // A shell reports this as 130, too.
  process.kill(process.pid, 'SIGINT');
  // The first process of a container gets no signal from itself.
  process.exit(ERROR_CODES.CANCELLED);
}
