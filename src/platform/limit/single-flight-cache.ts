/** What was found out once and may be asked again: a bounded cache in which nobody makes a value twice at a time. */

export interface SingleFlightCache<Value> {
  /** The value of this key, made when there is none, or an old one; all who ask meanwhile get the same. No failure is kept. */
  readonly get: (key: string, make: () => Promise<Value>) => Promise<Value>;
  /** Forgets a value; whoever waits for it gets it nevertheless. */
  readonly drop: (key: string) => void;
  /** Forgets all values, and returns them when those that are being made are there; failures are left out. */
  readonly drain: () => Promise<readonly Value[]>;
  readonly size: () => number;
  /** Of all values together. */
  readonly weight: () => number;
}

export interface CacheOptions<Value> {
  /** Weight that all values together may have, the least recently used go first; one is kept whatever it weighs. */
  readonly most?: number;
  /** 1 for each value when left out. */
  readonly weigh?: (value: Value) => number;
  /** Milliseconds after the beginning of its making at which a value is old; never when left out. */
  readonly freshMs?: number;
  /** Milliseconds, for `freshMs`. */
  readonly now?: () => number;
  /**
   * What becomes of those who wait for a value that fails: `shared` gives them the failure; `own` lets each try for itself,
   * where the failure speaks of the first one, or is its cancellation.
   */
  readonly failures?: 'shared' | 'own';
}

interface Entry<Value> {
  readonly made: Promise<Value>;
  readonly at: number;
  isSettled: boolean;
  weight: number;
}

export function createSingleFlightCache<Value>({
  most = Number.POSITIVE_INFINITY,
  weigh = () => 1,
  freshMs = Number.POSITIVE_INFINITY,
  now = () => performance.now(),
  failures = 'shared',
}: CacheOptions<Value> = {}): SingleFlightCache<Value> {
  const entries = new Map<string, Entry<Value>>();
  let total = 0;
  const drop = (key: string): void => {
    total -= entries.get(key)?.weight ?? 0;
    entries.delete(key);
  };
  const keep = (key: string, entry: Entry<Value>, value: Value): void => {
    if (entries.get(key) !== entry) return;
    entry.weight = weigh(value);
    total += entry.weight;
    for (const oldest of entries.keys()) {
      if (total <= most || entries.size <= 1) return;
      drop(oldest);
    }
  };
  const start = async (key: string, make: () => Promise<Value>): Promise<Value> => {
    const entry: Entry<Value> = { at: now(), made: make(), isSettled: false, weight: 0 };
    drop(key);
    entries.set(key, entry);
    try {
      const value = await entry.made;
      keep(key, entry, value);
      return value;
    } catch (error) {
      if (entries.get(key) === entry) drop(key);
      throw error;
    } finally {
      entry.isSettled = true;
    }
  };
  return {
    get: async (key, make) => {
      const found = entries.get(key);
      if (found === undefined || (found.isSettled && now() - found.at >= freshMs)) return start(key, make);
      // The last in the order of insertion is the one that was used last.
      entries.delete(key);
      entries.set(key, found);
      return failures === 'shared' ? found.made : found.made.catch(async () => start(key, make));
    },
    drop,
    drain: async () => {
      const all = [...entries.values()];
      entries.clear();
      total = 0;
      const settled = await Promise.allSettled(all.map(({ made }) => made));
      return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    },
    size: () => entries.size,
    weight: () => total,
  };
}
