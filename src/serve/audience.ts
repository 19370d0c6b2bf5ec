/** Work that several clients wait for, and that is given up when none of them does any more. */

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
