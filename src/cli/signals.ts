/** What an operator ends the command with. */
import { setMaxListeners } from 'node:events';
import { CurlewError, ERROR_CODES } from '../core/errors.ts';

/** Works that may wait for one signal: systems, blobs, parts. Node warns users of a leak from ten on. */
const LISTENERS = 1000;

/** A run goes on when its terminal has gone. */
export async function outlivingTerminal<Result>(run: () => Promise<Result>): Promise<Result> {
  const nothing = (): void => undefined;
  process.on('SIGHUP', nothing);
  try {
    return await run();
  } finally {
    process.off('SIGHUP', nothing);
  }
}

/** One owner of cancellation: the first signal stops everything in order, a second one leaves at once. */
export function listenForSignals(): AbortSignal {
  setMaxListeners(LISTENERS);
  const controller = new AbortController();
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(ERROR_CODES.CANCELLED);
    controller.abort(new CurlewError('CANCELLED', 'cancelled'));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return controller.signal;
}
