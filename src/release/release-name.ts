/** Release strings: kURL's `vYYYY.MM.DD-N`, UTC, by default. Pure. */
import { isRelease } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';

/** The part of a release string that a day's releases share: `v2026.11.20-`. */
export function releaseOfDay(now: Date): string {
  return `v${now.toISOString().slice(0, 10).replaceAll('-', '.')}-`;
}

/** Number of a release of the day; undefined for any other. */
function numberOf(now: Date, release: string): number | undefined {
  const day = releaseOfDay(now);
  const digits = release.startsWith(day) ? /^\d{1,6}$/.exec(release.slice(day.length))?.[0] : undefined;
  return digits === undefined ? undefined : Number(digits);
}

/**
 * The strings to publish under when none was given, best first: the day's newest release if something was put there and it
 * is not current, for then its publisher was stopped; then the next free number, counted from 0.
 */
export function releasesToTry(now: Date, existing: Iterable<string>, current: string | undefined): readonly string[] {
  let newest = -1;
  for (const release of existing) newest = Math.max(newest, numberOf(now, release) ?? -1);
  const [begun, next] = [`${releaseOfDay(now)}${newest}`, `${releaseOfDay(now)}${newest + 1}`];
  return newest === -1 || begun === current ? [next] : [begun, next];
}

/** Checks a release string from outside; `from` names where it came from. */
export function checkedRelease(text: string, from: string): string {
  if (isRelease(text)) return text;
  throw new CurlewError('USAGE', `${from}: ${JSON.stringify(text.slice(0, 100))} is not a release string`, {
    hint: 'use letters, digits, ".", "-", "_" and "+", such as v2026.11.20-0',
  });
}
