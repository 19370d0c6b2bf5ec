/** What is given only so much time, and what it said last. */
import { asError, CurlewError } from '../../core/errors.ts';
import { quoteLines } from '../../platform/process/program-lines.ts';

class OutOfTime extends CurlewError {}

/** Runs work with a signal that also ends it after its time; that is `CONTAINER_FAILED`. */
export async function withLimit<Result>(
  { doing, limitMs }: { readonly doing: string; readonly limitMs: number },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController();
  const timer = setTimeout(() => {
    const time = limitMs >= 60_000 ? `${Math.round(limitMs / 60_000)} minutes` : `${limitMs / 1000} seconds`;
    const hint = 'it was ended; if it only needs longer, give it a higher time limit';
    limit.abort(new OutOfTime('CONTAINER_FAILED', `${doing}: still running after ${time}`, { hint }));
  }, limitMs);
  try {
    return await work(AbortSignal.any([signal, limit.signal]));
  } finally {
    clearTimeout(timer);
  }
}

/** The reason of an abort, before what followed from it; what ran out of time is told with its last lines. */
export function withLastLines(error: unknown, lines: readonly string[], { aborted, reason }: AbortSignal): Error {
  if (!aborted) return asError(error);
  if (!(reason instanceof OutOfTime)) return asError(reason);
  return new CurlewError(reason.code, `${reason.message}${quoteLines(lines)}`, { hint: reason.hint });
}
