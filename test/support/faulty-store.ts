/** A store in front of another that breaks at one of its calls, before or after that call has taken effect. */
import type { Store } from '../../src/ship/store/store.ts';
import * as assert from './assert.ts';
import { sampleOf } from './sweep.ts';

/** One of so many points is tried in a run. */
export const CUTS_SHARE = 6;

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

/**
 * Breaks work at a sample of its calls, each in an `attempt` of its own, after one in which nothing breaks: that one must
 * make more than `least` calls. `attempt` lets the work run on what `breaking` makes of its store, and returns what it threw.
 */
export async function cutAtCalls(
  { when, least }: { readonly when: Fault['when']; readonly least: number },
  attempt: (breaking: (inner: Store) => Store) => Promise<unknown>,
): Promise<void> {
  let whole: FaultyStore | undefined;
  assert.is(await attempt((inner) => (whole = createFaultyStore(inner, { at: 0, when }))), undefined);
  const calls = whole?.calls() ?? 0;
  assert.ok(calls > least, `only ${calls} calls`);
  const points = Array.from({ length: calls }, (_, index) => index + 1);
  for (const at of sampleOf(points, CUTS_SHARE)) {
    const error = await attempt((inner) => createFaultyStore(inner, { at, when }));
    assert.instance(error, Cut, `at call ${at} of ${calls}: ${String(error)}`);
  }
}

/** What the promise is rejected with; undefined where it is not. */
export async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return error;
  }
}
