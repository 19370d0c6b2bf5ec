/** A bounded cache that never computes a value twice at the same time. */

export interface SingleFlightCache<Value> {
  /** The value of this key, computed if it is missing or old. Concurrent callers share it. Failures are not cached. */
  readonly get: (key: string, make: () => Promise<Value>) => Promise<Value>;
  /** Removes a value; callers that wait for it still get it. */
  readonly drop: (key: string) => void;
  /** Removes all values, and returns them once those in progress are computed; omits failures. */
  readonly drain: () => Promise<readonly Value[]>;
  readonly size: () => number;
  /** Total weight of all values. */
  readonly weight: () => number;
}

export interface CacheOptions<Value> {
  /** Limit of the total weight: the least recently used values are removed first; one value always stays. */
  readonly most?: number;
  /** Default: 1 for each value. */
  readonly weigh?: (value: Value) => number;
  /** Age in milliseconds, from the start of its computation, at which a value is old; default: never. */
  readonly freshMs?: number;
  /** Clock for `freshMs`, in milliseconds. */
  readonly now?: () => number;
  /**
   * The outcome for callers that wait for a value that fails: `shared` gives them the failure; `own` lets each try itself, for
   * failures that concern only the first caller, such as its cancellation.
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
      const entry = entries.get(key);
      if (entry === undefined || (entry.isSettled && now() - entry.at >= freshMs)) return start(key, make);
      // Insertion order is the order of use: the most recent one is last.
      entries.delete(key);
      entries.set(key, entry);
      return failures === 'shared' ? entry.made : entry.made.catch(async () => start(key, make));
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
