/** What was found out once and may be asked again: bounded, the oldest goes first, and nobody makes it twice at a time. */

export interface Shelf<Value> {
  /** The value of this key, made when there is none. What fails is not kept. */
  readonly take: (key: string, make: () => Promise<Value>) => Promise<Value>;
  readonly drop: (key: string) => void;
  readonly size: () => number;
  /** Of all values together. */
  readonly weight: () => number;
}

interface ShelfOptions<Value> {
  /** Weight that all values together may have; one is kept whatever it weighs. */
  readonly most: number;
  readonly weigh: (value: Value) => number;
}

export function createShelf<Value>({ most, weigh }: ShelfOptions<Value>): Shelf<Value> {
  const kept = new Map<string, { readonly made: Promise<Value>; weight: number }>();
  let total = 0;
  const drop = (key: string): void => {
    total -= kept.get(key)?.weight ?? 0;
    kept.delete(key);
  };
  const makeRoom = (): void => {
    for (const key of kept.keys()) {
      if (total <= most || kept.size <= 1) return;
      drop(key);
    }
  };
  return {
    take: async (key, make) => {
      const found = kept.get(key);
      if (found !== undefined) {
        // The last in the order of insertion is the youngest.
        kept.delete(key);
        kept.set(key, found);
        return found.made;
      }
      const made = make();
      const entry = { made, weight: 0 };
      kept.set(key, entry);
      try {
        const value = await made;
        if (kept.get(key) === entry) {
          entry.weight = weigh(value);
          total += entry.weight;
          makeRoom();
        }
        return value;
      } catch (error) {
        if (kept.get(key) === entry) drop(key);
        throw error;
      }
    },
    drop,
    size: () => kept.size,
    weight: () => total,
  };
}

/** Asks at most once in so many milliseconds, and once for all who ask at the same time. What fails is asked again. */
export function createGlance<Value>(
  look: () => Promise<Value>,
  { freshMs, now }: { readonly freshMs: number; readonly now: () => number },
): () => Promise<Value> {
  let last: { readonly at: number; readonly value: Promise<Value>; settled: boolean } | undefined;
  return async () => {
    if (last !== undefined && (!last.settled || now() - last.at < freshMs)) return last.value;
    const seen = { at: now(), value: look(), settled: false };
    last = seen;
    try {
      return await seen.value;
    } catch (error) {
      if (last === seen) last = undefined;
      throw error;
    } finally {
      seen.settled = true;
    }
  };
}
