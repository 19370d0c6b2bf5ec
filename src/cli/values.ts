/** Parsers for option values. All throw `USAGE` with the name of the option. */
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { isOsId, OS_IDS, type OsId } from '../core/os.ts';
import { archName, ARCHES, type Arch } from '../core/ref.ts';

type Read<Value> = (text: string, option: string) => Value;

/** One of several values. */
export function choice<const Value extends string>(...values: readonly Value[]): Read<Value> {
  return (text, option) => {
    const found = values.find((value) => value === text);
    if (found === undefined) throw new CurlewError('USAGE', `${option} ${text}: must be one of ${values.join(', ')}`);
    return found;
  };
}

/** Also as `uname -m` prints it. */
export const arch: Read<Arch> = (text, option) => choice(...ARCHES)(archName(text), option);

/** From 1 to 999,999. */
export const wholeNumber: Read<number> = (text, option) => {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new CurlewError('USAGE', `${option} ${text}: not a number from 1`);
  return Number(text);
};

const HOUR = 60 * 60 * 1000;
const UNITS: Readonly<Record<string, number>> = { h: HOUR, d: 24 * HOUR, w: 7 * 24 * HOUR };

/** `12h`, `30d` or `8w` in milliseconds. */
export const age: Read<number> = (text, option) => {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const size = UNITS[unit];
  if (count === undefined || size === undefined) {
    throw new CurlewError('USAGE', `${option} ${text}: not a duration`, { hint: 'write 12h, 30d or 8w' });
  }
  return Number(count) * size;
};

const SMALL_UNITS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: HOUR };

/** `90s`, `5m` or `2h` in milliseconds; from 1 second. */
export const duration: Read<number> = (text, option) => {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([smh])$/.exec(text) ?? [];
  const size = SMALL_UNITS[unit];
  if (count === undefined || size === undefined) {
    throw new CurlewError('USAGE', `${option} ${text}: not a duration`, { hint: 'write 90s, 5m or 2h' });
  }
  return Number(count) * size;
};

const POWERS = ['', 'K', 'M', 'G', 'T'];

/** `4480M`, `1.5G`, `512K`, `1000`: powers of 1024; `10MB`: powers of 1000. Never 0. */
export const size: Read<number> = (text, option) => {
  const [, digits = '', power = '', decimal] = /^(\d{1,15}(?:\.\d{1,3})?)(?:([KMGT])(?:(B)|iB)?|B)?$/i.exec(text) ?? [];
  const factor = (decimal === undefined ? 1024 : 1000) ** POWERS.indexOf(power.toUpperCase());
  const bytes = Math.floor(Number(digits) * factor);
  if (digits !== '' && bytes > 0 && Number.isSafeInteger(bytes)) return bytes;
  throw new CurlewError('USAGE', `${option} ${text}: not a size in bytes`, {
    hint: 'write it as 500K, 10M or 1.5G',
  });
};

/** `OS=IMAGE`, such as `rhel-8=rocky:8`. */
export const osImage: Read<{ readonly os: OsId; readonly image: string }> = (text, option) => {
  const [os = '', ...rest] = text.split('=');
  const image = rest.join('=');
  if (image === '') throw new CurlewError('USAGE', `${option} ${text}: not OS=IMAGE, such as rhel-8=rocky:8`);
  if (isOsId(os)) return { os, image };
  const near = nearest(os, OS_IDS);
  throw new CurlewError('USAGE', `${option} ${text}: ${os} is not a known operating system`, {
    hint: near === undefined ? `known: ${OS_IDS.join(', ')}` : `did you mean ${near}?`,
  });
};

/** Comma-separated folders. */
export const folders: Read<readonly string[]> = (text, option) => {
  const names = text.split(',');
  if (names.includes('')) throw new CurlewError('USAGE', `${option} ${text}: contains an empty name`);
  return names;
};
