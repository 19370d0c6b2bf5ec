/** The `timeout` of a collector. Pure. */
import { CollectProblem } from './collector.ts';
import { parseDuration } from './go-notation.ts';
import type { Settings } from './settings.ts';

/** Milliseconds. Throws {@link CollectProblem} if it is not a duration. */
export function limitOf(settings: Settings, defaultMs: number): number {
  const text = settings.text('timeout');
  if (text === undefined) return defaultMs;
  const ns = parseDuration(text);
  if (ns === undefined || ns < 0)
    throw new CollectProblem(`timeout ${JSON.stringify(text)} is not a duration such as 30s`);
  return ns / 1e6;
}
