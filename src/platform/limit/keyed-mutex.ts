/** A mutex per key; keys exist only while they are held or waited for. */
import type { Cancellable } from '../../core/cancellable.ts';
import { asError } from '../../core/errors.ts';

export interface KeyedMutex {
  /**
   * Runs `work` while no other work with any of its keys runs. Work with a common key runs in order of arrival; other work may
   * overtake. Takes all keys at once, so that there are no deadlocks. Waiting ends with the signal's reason if it aborts.
   */
  readonly run: <Result>(keys: readonly string[], work: () => Promise<Result>, options: Cancellable) => Promise<Result>;
}

interface Waiter {
  readonly keys: readonly string[];
  readonly start: () => void;
}

export function createKeyedMutex(): KeyedMutex {
  const held = new Set<string>();
  const waiting = new Set<Waiter>();
  const startNext = (): void => {
    for (const waiter of waiting) {
      if (waiter.keys.some((key) => held.has(key))) continue;
      waiting.delete(waiter);
      for (const key of waiter.keys) held.add(key);
      waiter.start();
    }
  };
  const acquire = async (keys: readonly string[], signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const leave = (): void => {
        waiting.delete(waiter);
        reject(asError(signal.reason));
      };
      const start = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const waiter: Waiter = { keys, start };
      signal.addEventListener('abort', leave, { once: true });
      waiting.add(waiter);
      startNext();
    });
  return {
    run: async (keys, work, { signal }) => {
      await acquire(keys, signal);
      try {
        return await work();
      } finally {
        for (const key of keys) held.delete(key);
        startNext();
      }
    },
  };
}
