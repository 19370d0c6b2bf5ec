/** When what has failed may be tried again. */

const FIRST_MS = 1000;
const MAX_MS = 300_000;
/** Others that fail for the same reason do not come back at the same time. */
const JITTER = 0.2;

/** For each key 1 second after the first failure, twice as long after each further one, up to 5 minutes; all ± 20 %. */
export class Backoff {
  readonly #failed = new Map<string, { readonly waitMs: number; readonly until: number }>();
  readonly #now: () => number;
  readonly #random: () => number;

  /** `now`: a clock in milliseconds. */
  constructor({ now = () => performance.now(), random = Math.random } = {}) {
    this.#now = now;
    this.#random = random;
  }

  /** Returns the milliseconds after which it may be tried again. */
  failed(key = ''): number {
    const before = this.#failed.get(key)?.waitMs;
    const waitMs = before === undefined ? FIRST_MS : Math.min(before * 2, MAX_MS);
    const ms = waitMs * (1 - JITTER + 2 * JITTER * this.#random());
    this.#failed.set(key, { waitMs, until: this.#now() + ms });
    return ms;
  }

  succeeded(key = ''): void {
    this.#failed.delete(key);
  }

  mayBegin(key = ''): boolean {
    return (this.#failed.get(key)?.until ?? 0) <= this.#now();
  }

  /** Forgets all keys but these, and returns the milliseconds until the first of them may begin; infinite if all may. */
  keep(keys: ReadonlySet<string>): number {
    let least = Infinity;
    for (const [key, { until }] of this.#failed) {
      if (!keys.has(key)) this.#failed.delete(key);
      else if (until > this.#now()) least = Math.min(least, until - this.#now());
    }
    return least;
  }
}
