/** Lengths of time on the command line. */
import { CurlewError } from '../core/errors.ts';

const HOUR = 60 * 60 * 1000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR, w: 7 * 24 * HOUR };

/** `12h`, `30d` or `8w` in milliseconds; `option` names the value for the error, a USAGE. */
export function ageOf(text: string, option: string): number {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const size = UNITS[unit];
  if (count === undefined || size === undefined) {
    throw new CurlewError('USAGE', `${option} ${text}: not a length of time`, { hint: 'write 12h, 30d or 8w' });
  }
  return Number(count) * size;
}
