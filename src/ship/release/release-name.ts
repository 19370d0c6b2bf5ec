/** Release strings; the default is kURL's format `vYYYY.MM.DD-N`, in UTC. Pure. */
import { isRelease } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';

/** The prefix of a day's release strings: `v2026.11.20-`. */
function releaseOfDay(now: Date): string {
  return `v${now.toISOString().slice(0, 10).replaceAll('-', '.')}-`;
}

const MAX_PER_DAY = 1_000_000;

/** N of a release of the day; undefined for other releases. */
function numberOf(now: Date, release: string): number | undefined {
  const day = releaseOfDay(now);
  const digits = release.startsWith(day) ? /^\d{1,6}$/.exec(release.slice(day.length))?.[0] : undefined;
  return digits === undefined ? undefined : Number(digits);
}

/** Default release strings, in the order to try: those of the day after the current release. */
export function* releasesToTry(now: Date, current: string | undefined): Generator<string, void, undefined> {
  const before = current === undefined ? undefined : numberOf(now, current);
  for (let number = (before ?? -1) + 1; number < MAX_PER_DAY; number += 1) yield `${releaseOfDay(now)}${number}`;
}

/** Validates a release string from outside; `from` names its source. */
export function checkedRelease(text: string, from: string): string {
  if (isRelease(text)) return text;
  throw new CurlewError('USAGE', `${from}: ${JSON.stringify(text.slice(0, 100))} is not a release string`, {
    hint: 'use letters, digits, ".", "-", "_" and "+", for example v2026.11.20-0',
  });
}
