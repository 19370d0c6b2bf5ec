/** The `timeout` of a collector. Pure. */
import { CollectProblem } from './collector.ts';
import { parseDuration } from './go-words.ts';
import type { Settings } from './settings.ts';

/** Milliseconds; what is no duration is a {@link CollectProblem}. */
export function limitOf(settings: Settings, usualMs: number): number {
  const text = settings.text('timeout');
  if (text === undefined) return usualMs;
  const ns = parseDuration(text);
  if (ns === undefined || ns < 0)
    throw new CollectProblem(`timeout ${JSON.stringify(text)} is no duration such as 30s`);
  return ns / 1e6;
}
