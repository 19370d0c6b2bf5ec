/** Work that costs: a little of it at once, no endless queue, and none that nobody waits for. */
import { asError, CurlewError } from '../core/errors.ts';

interface TurnsOptions {
  /** Works that run at once. */
  readonly atOnce: number;
  /** Works that wait for their turn; for one more it is `BUSY`. */
  readonly waiting: number;
}

/** Runs work when it is its turn; work whose signal fires before does not begin. */
export type Turns = <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;

export function createTurns({ atOnce, waiting }: TurnsOptions): Turns {
  const queue = new Set<() => void>();
  let taken = 0;
  /** Hands the place over to the one who has waited longest. */
  const free = (): void => {
    const [next] = queue;
    if (next === undefined) taken -= 1;
    else next();
  };
  const place = async (signal: AbortSignal): Promise<void> => {
    if (taken < atOnce) {
      taken += 1;
      return;
    }
    if (queue.size >= waiting) throw new CurlewError('BUSY', `${taken} run and ${queue.size} wait already`);
    await new Promise<void>((resolve, reject) => {
      const go = (): void => {
        queue.delete(go);
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        queue.delete(go);
        reject(asError(signal.reason));
      };
      queue.add(go);
      signal.addEventListener('abort', leave, { once: true });
    });
  };
  return async (work, signal) => {
    signal.throwIfAborted();
    await place(signal);
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      free();
    }
  };
}

/** Runs `work` with a signal that fires when all who wait for the same key have gone. */
export type Audience = <Result>(
  key: string,
  gone: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>;

/** Whoever comes while work on a key is under way shares its signal; `onEmpty` is called before that fires. */
export function createAudience({ onEmpty }: { readonly onEmpty: (key: string) => void }): Audience {
  const rooms = new Map<string, { readonly empty: AbortController; present: number }>();
  return async (key, gone, work) => {
    gone.throwIfAborted();
    const room = rooms.get(key) ?? { empty: new AbortController(), present: 0 };
    rooms.set(key, room);
    room.present += 1;
    let isIn = true;
    const leave = (): boolean => {
      if (!isIn) return false;
      isIn = false;
      room.present -= 1;
      if (room.present === 0 && rooms.get(key) === room) rooms.delete(key);
      return room.present === 0;
    };
    const give = (): void => {
      if (!leave()) return;
      onEmpty(key);
      room.empty.abort(gone.reason);
    };
    gone.addEventListener('abort', give, { once: true });
    try {
      return await work(room.empty.signal);
    } finally {
      gone.removeEventListener('abort', give);
      leave();
    }
  };
}
