/** Release strings: kURL's `vYYYY.MM.DD-N`, UTC, by default. Pure. */
import { isRelease } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';

/** The part of a release string that a day's releases share: `v2026.11.20-`. */
export function releaseOfDay(now: Date): string {
  return `v${now.toISOString().slice(0, 10).replaceAll('-', '.')}-`;
}

/** The day's next free release: the number after the greatest that exists, from 0. */
export function nextRelease(now: Date, existing: Iterable<string>): string {
  const day = releaseOfDay(now);
  let next = 0;
  for (const release of existing) {
    const number = release.startsWith(day) ? /^\d{1,6}$/.exec(release.slice(day.length))?.[0] : undefined;
    if (number !== undefined) next = Math.max(next, Number(number) + 1);
  }
  return `${day}${next}`;
}

/** Checks a release string from outside; `from` names where it came from. */
export function checkedRelease(text: string, from: string): string {
  if (isRelease(text)) return text;
  throw new CurlewError('USAGE', `${from}: ${JSON.stringify(text.slice(0, 100))} is not a release string`, {
    hint: 'use letters, digits, ".", "-", "_" and "+", such as v2026.11.20-0',
  });
}
