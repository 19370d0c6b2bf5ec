/** The first answer of several that could give it. */
import { CurlewError } from '../../core/errors.ts';
import { pause } from './repeat.ts';

interface Answers<Item, Answer> {
  readonly found?: { readonly item: Item; readonly answer: Answer };
  /** The failures of those that were asked, in their order. */
  readonly failures: readonly { readonly item: Item; readonly error: CurlewError }[];
}

/**
 * Asks the first, and all others at once if it has failed, or has not answered after `patienceMs`. Who is asked no longer when there is an
 * answer has stopped before this returns.
 */
export async function firstAnswer<Item, Answer>(
  [first, ...others]: readonly Item[],
  ask: (item: Item, context: { readonly signal: AbortSignal }) => Promise<Answer>,
  { patienceMs, signal }: { readonly patienceMs: number; readonly signal: AbortSignal },
): Promise<Answers<Item, Answer>> {
  const failures: { readonly item: Item; readonly error: CurlewError }[] = [];
  if (first === undefined) return { failures };
  const [ended, tried] = [new AbortController(), new AbortController()];
  const both = AbortSignal.any([signal, ended.signal]);
  let bug: { readonly error: unknown } | undefined;
  let found: { readonly item: Item; readonly answer: Answer } | undefined;
  const attempt = async (item: Item): Promise<void> => {
    try {
      const answer = await ask(item, { signal: both });
      found ??= { item, answer };
      ended.abort();
    } catch (error) {
      if (both.aborted) return;
      if (error instanceof CurlewError) failures.push({ item, error });
      else bug ??= { error };
    }
  };
  const leader = attempt(first).finally(() => tried.abort());
  await pause(patienceMs, { signal: AbortSignal.any([signal, tried.signal]) }).catch(() => undefined);
  const rest = found === undefined && !signal.aborted ? others.map(attempt) : [];
  await Promise.all([leader, ...rest]);
  signal.throwIfAborted();
  if (bug !== undefined) throw bug.error;
  return found === undefined ? { failures } : { found, failures };
}
