/** Release strings: kURL's `vYYYY.MM.DD-N`, UTC, by default. Pure. */
import { isRelease } from '../../core/catalogue.ts';
import { CurlewError } from '../../core/errors.ts';

/** The part of a release string that a day's releases share: `v2026.11.20-`. */
function releaseOfDay(now: Date): string {
  return `v${now.toISOString().slice(0, 10).replaceAll('-', '.')}-`;
}

const MOST_OF_A_DAY = 1_000_000;

/** Number of a release of the day; undefined for any other. */
function numberOf(now: Date, release: string): number | undefined {
  const day = releaseOfDay(now);
  const digits = release.startsWith(day) ? /^\d{1,6}$/.exec(release.slice(day.length))?.[0] : undefined;
  return digits === undefined ? undefined : Number(digits);
}

/** The strings to publish under when none was given, in this order: those of the day behind the current release. */
export function* releasesToTry(now: Date, current: string | undefined): Generator<string, void, undefined> {
  const before = current === undefined ? undefined : numberOf(now, current);
  for (let number = (before ?? -1) + 1; number < MOST_OF_A_DAY; number += 1) yield `${releaseOfDay(now)}${number}`;
}

/** Checks a release string from outside; `from` names where it came from. */
export function checkedRelease(text: string, from: string): string {
  if (isRelease(text)) return text;
  throw new CurlewError('USAGE', `${from}: ${JSON.stringify(text.slice(0, 100))} is not a release string`, {
    hint: 'use letters, digits, ".", "-", "_" and "+", such as v2026.11.20-0',
  });
}
