/** Template functions: Go's built-in ones, and those of the sprig library (masterminds.github.io/sprig) that specs use. Pure. */
import { row, SPRIG_FUNCTIONS, type FunctionRow } from './sprig.ts';
import { compareValues, isList, isTrue, isValueMap, valueKind, shown, UnfitValue, type Value } from './values.ts';

function lengthOf(value: Value): number {
  if (value === undefined) return 0;
  if (typeof value === 'string') return Buffer.byteLength(value);
  if (isList(value)) return value.length;
  if (isValueMap(value)) return Object.keys(value).length;
  throw new UnfitValue(`${valueKind(value)} has no length`);
}

function index(value: Value, ...keys: readonly Value[]): Value {
  return keys.reduce((at, key) => {
    if (isValueMap(at)) return Object.hasOwn(at, shown(key)) ? at[shown(key)] : undefined;
    if (!isList(at) || typeof key !== 'number') throw new UnfitValue(`${valueKind(at)} has no entry ${shown(key)}`);
    if (key < 0 || key >= at.length) throw new UnfitValue(`no entry ${key}: the list has ${at.length} entries`);
    return at[key];
  }, value);
}

function slice(value: Value, from: Value = 0, to?: Value): Value {
  if (typeof value !== 'string' && !isList(value)) throw new UnfitValue(`${valueKind(value)} cannot be sliced`);
  const end = to ?? value.length;
  if (typeof from !== 'number' || typeof end !== 'number' || from < 0 || end > value.length || from > end) {
    throw new UnfitValue(`the range from ${shown(from)} to ${shown(end)} is not valid`);
  }
  return value.slice(from, end);
}

/** The verbs of Go's fmt that specs use: %s %v %d %q %t %f %x %%, with width and precision. */
function printf(format: Value, ...values: readonly Value[]): string {
  if (typeof format !== 'string') throw new UnfitValue('the format must be a string');
  let next = 0;
  return format.replaceAll(
    /%([-0+ ]*)(\d{0,3})(?:\.(\d{1,2}))?([a-z%])/g,
    (verb, flags: string, width: string, precision: string | undefined, kind: string) => {
      if (kind === '%') return '%';
      if (next >= values.length) throw new UnfitValue(`no value for ${verb}`);
      const text = formatted(values[next], kind, precision === undefined ? undefined : Number(precision));
      next += 1;
      const size = Number(width);
      if (flags.includes('-')) return text.padEnd(size);
      if (!flags.includes('0')) return text.padStart(size);
      const sign = kind !== 's' && text.startsWith('-') ? '-' : '';
      return sign + text.slice(sign.length).padStart(size - sign.length, '0');
    },
  );
}

function formatted(value: Value, kind: string, precision: number | undefined): string {
  if (kind === 's' || kind === 'v' || kind === 't') return shown(value).slice(0, precision);
  if (kind === 'q') return JSON.stringify(shown(value));
  const number = value ?? 0;
  if (typeof number !== 'number') throw new UnfitValue(`%${kind} requires a number`);
  if (kind === 'd') return String(Math.trunc(number));
  if (kind === 'x') return Math.trunc(number).toString(16);
  if (kind === 'f') return number.toFixed(precision ?? 6);
  throw new UnfitValue(`the verb %${kind} is not supported`);
}

function equals(first: Value, ...others: readonly Value[]): boolean {
  return others.some((other) => compareValues(first, other) === 0);
}

/** `print` separates two values by a blank if neither is a text. */
function print(...values: readonly Value[]): string {
  return values.reduce<string>((text, value, at) => {
    const gap = at > 0 && typeof value !== 'string' && typeof values[at - 1] !== 'string' ? ' ' : '';
    return text + gap + shown(value);
  }, '');
}

/** The evaluator implements `and` and `or`, which stop at the first value that decides. */
const GO_FUNCTIONS: Readonly<Record<string, FunctionRow>> = {
  not: row(1, 1, (value) => !isTrue(value)),
  len: row(1, 1, lengthOf),
  index: row(1, undefined, index),
  slice: row(1, 3, slice),
  print: row(0, undefined, print),
  println: row(0, undefined, (...values) => `${values.map(shown).join(' ')}\n`),
  printf: row(1, undefined, printf),
  eq: row(2, undefined, equals),
  ne: row(2, 2, (a, b) => compareValues(a, b) !== 0),
  lt: row(2, 2, (a, b) => compareValues(a, b) < 0),
  le: row(2, 2, (a, b) => compareValues(a, b) <= 0),
  gt: row(2, 2, (a, b) => compareValues(a, b) > 0),
  ge: row(2, 2, (a, b) => compareValues(a, b) >= 0),
};

export const FUNCTIONS: ReadonlyMap<string, FunctionRow> = new Map(
  Object.entries({ ...SPRIG_FUNCTIONS, ...GO_FUNCTIONS }),
);
