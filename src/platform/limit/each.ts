/** Bounded concurrency with one rule: no work is still running when an error is thrown. */
import { CurlewError } from '../../core/errors.ts';

export interface Limits {
  readonly width: number;
  readonly signal: AbortSignal;
}

/**
 * Runs `work` over `items`, at most `width` at a time. The first failure aborts the signal of the others, waits for them to
 * stop, and is thrown.
 */
export async function eachLimited<Item>(
  items: Iterable<Item> | AsyncIterable<Item>,
  work: (item: Item, context: { readonly signal: AbortSignal }) => Promise<void>,
  { width, signal }: Limits,
): Promise<void> {
  const failed = new AbortController();
  let first: { readonly error: unknown } | undefined;
  const both = AbortSignal.any([signal, failed.signal]);
  const queue = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  const takeItems = async (): Promise<void> => {
    for (let next = await queue.next(); next.done !== true; next = await queue.next()) {
      both.throwIfAborted();
      await work(next.value, { signal: both });
    }
  };
  const workers = Array.from({ length: Math.max(1, width) }, async () => {
    try {
      await takeItems();
    } catch (error) {
      first ??= { error };
      // The others have not failed: they must not be reported with the error of this one.
      failed.abort(new CurlewError('CANCELLED', 'stopped because another operation failed', { cause: error }));
    }
  });
  await Promise.all(workers);
  if (first !== undefined) throw first.error;
  signal.throwIfAborted();
}

/** Like {@link eachLimited}, with the results in the order of the items. */
export async function mapLimited<Item, Result>(
  items: readonly Item[],
  work: (item: Item, context: { readonly signal: AbortSignal }) => Promise<Result>,
  limits: Limits,
): Promise<Result[]> {
  const results: Result[] = Array.from({ length: items.length });
  await eachLimited(
    items.entries(),
    async ([index, item], context) => {
      results[index] = await work(item, context);
    },
    limits,
  );
  return results;
}
