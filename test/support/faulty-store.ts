/** A store in front of another that breaks at one of its calls, before or after that call has taken effect. */
import type { Store } from '../../src/store/store.ts';

export class Cut extends Error {}

export interface FaultyStore extends Store {
  /** Calls so far. */
  readonly calls: () => number;
}

export interface Fault {
  /** The call to break, from 1; 0 breaks none. */
  readonly at: number;
  /** `after`: the call was carried out, its answer is lost. */
  readonly when: 'before' | 'after';
}

/** Every call after the broken one fails too: the process is gone. */
export function createFaultyStore(inner: Store, { at, when }: Fault): FaultyStore {
  let calls = 0;
  const through = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    calls += 1;
    const mine = calls;
    if (at > 0 && (mine > at || (mine === at && when === 'before'))) throw new Cut(`cut before call ${mine}`);
    const result = await work();
    if (mine === at) throw new Cut(`cut after call ${mine}`);
    return result;
  };
  return {
    address: inner.address,
    place: inner.place,
    calls: () => calls,
    head: async (...args) => through(() => inner.head(...args)),
    get: async (...args) => through(() => inner.get(...args)),
    read: async (...args) => through(() => inner.read(...args)),
    put: async (...args) => through(() => inner.put(...args)),
    copy: async (...args) => through(() => inner.copy(...args)),
    delete: async (...args) => through(() => inner.delete(...args)),
    async *list(...args) {
      await through(async () => undefined);
      yield* inner.list(...args);
    },
  };
}
