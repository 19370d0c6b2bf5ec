/** Time limits, and errors with the last lines of output. */
import { asError, CurlewError } from '../../core/errors.ts';
import { quoteLines } from '../../platform/process/program-lines.ts';

class OutOfTime extends CurlewError {}

/** Runs work with a signal that also aborts after a time limit; that is `CONTAINER_FAILED`. */
export async function withLimit<Result>(
  { doing, limitMs }: { readonly doing: string; readonly limitMs: number },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const limit = new AbortController();
  using _timer = setTimeout(() => {
    const time = limitMs >= 60_000 ? `${Math.round(limitMs / 60_000)} minutes` : `${limitMs / 1000} seconds`;
    const hint = 'it was stopped; if it needs more time, raise the time limit';
    limit.abort(new OutOfTime('CONTAINER_FAILED', `cannot ${doing}: still running after ${time}`, { hint }));
  }, limitMs);
  return await work(AbortSignal.any([signal, limit.signal]));
}

/** The reason of an abort takes precedence over its consequences; a timeout includes the last lines of output. */
export function withLastLines(error: unknown, lines: readonly string[], { aborted, reason }: AbortSignal): Error {
  if (!aborted) return asError(error);
  if (!(reason instanceof OutOfTime)) return asError(reason);
  return new CurlewError(reason.code, `${reason.message}${quoteLines(lines)}`, { hint: reason.hint });
}
