/** Functions of the sprig library that host preflights use, and related ones. Pure: no clock, no randomness, no I/O. */
import { goJson, isObject, shallowJson } from '../../core/json.ts';
import { satisfiesConstraint } from './constraint.ts';
import { isList, isTrue, isValueMap, valueKind, shown, UnfitValue, type Value, type ValueMap } from './values.ts';

const MAX_ITEMS = 10_000;
const MAX_TEXT = 1 << 20;

export type TemplateFunction = (...values: readonly Value[]) => Value;

export interface FunctionRow {
  readonly least: number;
  /** Undefined: any number of arguments. */
  readonly most: number | undefined;
  readonly run: TemplateFunction;
}

/** A function with `least` to `most` arguments. */
export function row(least: number, most: number | undefined, run: TemplateFunction): FunctionRow {
  return { least, most, run };
}

function list(value: Value): readonly Value[] {
  if (value === undefined) return [];
  if (!isList(value)) throw new UnfitValue(`${valueKind(value)} is not a list`);
  return value;
}

/** Sprig converts texts to numbers; any other value is 0. */
function whole(value: Value): number {
  const number = Math.trunc(Number(value ?? 0));
  return Number.isSafeInteger(number) ? number : 0;
}

function map(value: Value): ValueMap {
  if (value === undefined) return {};
  if (!isValueMap(value)) throw new UnfitValue(`${valueKind(value)} is not a map`);
  return value;
}

function own(value: ValueMap, key: string): Value {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Where a function makes more than it gets: the text, if it has at most this many characters. */
function bounded(length: number, make: () => string): string {
  if (length > MAX_TEXT) throw new UnfitValue(`the text would be too long: more than ${MAX_TEXT} characters`);
  return make();
}

function repeat(count: Value, value: Value): string {
  const [times, text] = [whole(count), shown(value)];
  if (times < 0) throw new UnfitValue('the count is negative');
  return bounded(times * text.length, () => text.repeat(times));
}

/** An empty part is found before each character, and at the end. */
function replace(from: Value, to: Value, value: Value): string {
  const [text, old, now] = [shown(value), shown(from), shown(to)];
  if (old === '' && text.length > MAX_ITEMS) throw new UnfitValue(`more than ${MAX_ITEMS} characters to replace`);
  const parts = old === '' ? ['', ...Array.from(text), ''] : text.split(old);
  return bounded(text.length + (parts.length - 1) * now.length, () => parts.join(now));
}

function join(gap: Value, value: Value): string {
  const [between, texts] = [shown(gap), (isList(value) ? value : [value]).map(shown)];
  const length = texts.reduce((sum, text) => sum + text.length + between.length, 0);
  return bounded(length, () => texts.join(between));
}

function steps(from: number, to: number, by: number): readonly number[] {
  if (by === 0) throw new UnfitValue('a step of 0 never ends');
  const count = Math.max(0, Math.ceil((to - from) / by));
  if (count > MAX_ITEMS) throw new UnfitValue(`${count} items, more than ${MAX_ITEMS}`);
  return Array.from({ length: count }, (_, at) => from + at * by);
}

function indent(by: Value, text: Value): string {
  const pad = ' '.repeat(Math.min(200, Math.max(0, whole(by))));
  return pad + replace('\n', `\n${pad}`, text);
}

function divide(a: Value, b: Value, by: (left: number, right: number) => number): number {
  if (whole(b) === 0) throw new UnfitValue('division by 0');
  return by(whole(a), whole(b));
}

function dict(...values: readonly Value[]): ValueMap {
  return Object.fromEntries(values.flatMap((key, at) => (at % 2 === 0 ? [[shown(key), values[at + 1]] as const] : [])));
}

function without(text: string, chars: string, ends: { readonly left: boolean; readonly right: boolean }): string {
  let [from, to] = [0, text.length];
  while (ends.left && from < to && chars.includes(text.charAt(from))) from += 1;
  while (ends.right && to > from && chars.includes(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

const BOTH = { left: true, right: true };

const TEXTS: Readonly<Record<string, FunctionRow>> = {
  trim: row(1, 1, (text) => shown(text).trim()),
  trimAll: row(2, 2, (chars, text) => without(shown(text), shown(chars), BOTH)),
  trimPrefix: row(2, 2, (start, text) =>
    shown(text).startsWith(shown(start)) ? shown(text).slice(shown(start).length) : shown(text),
  ),
  trimSuffix: row(2, 2, (end, text) =>
    shown(end) !== '' && shown(text).endsWith(shown(end)) ? shown(text).slice(0, -shown(end).length) : shown(text),
  ),
  lower: row(1, 1, (text) => shown(text).toLowerCase()),
  upper: row(1, 1, (text) => shown(text).toUpperCase()),
  title: row(1, 1, (text) => shown(text).replaceAll(/(?<![\p{L}\p{N}_'])\p{L}/gu, (letter) => letter.toUpperCase())),
  nospace: row(1, 1, (text) => shown(text).replaceAll(/\s/g, '')),
  contains: row(2, 2, (part, text) => shown(text).includes(shown(part))),
  hasPrefix: row(2, 2, (part, text) => shown(text).startsWith(shown(part))),
  hasSuffix: row(2, 2, (part, text) => shown(text).endsWith(shown(part))),
  replace: row(3, 3, replace),
  repeat: row(2, 2, repeat),
  trunc: row(2, 2, (count, text) =>
    whole(count) < 0 ? shown(text).slice(whole(count)) : shown(text).slice(0, whole(count)),
  ),
  quote: row(0, undefined, (...texts) =>
    texts
      .filter((one) => one !== undefined)
      .map((one) => JSON.stringify(shown(one)))
      .join(' '),
  ),
  squote: row(0, undefined, (...texts) =>
    texts
      .filter((one) => one !== undefined)
      .map((one) => `'${shown(one)}'`)
      .join(' '),
  ),
  cat: row(0, undefined, (...texts) =>
    texts
      .filter((one) => one !== undefined)
      .map(shown)
      .join(' '),
  ),
  indent: row(2, 2, indent),
  nindent: row(2, 2, (by, text) => `\n${indent(by, text)}`),
  toString: row(1, 1, shown),
  join: row(2, 2, join),
  splitList: row(2, 2, (gap, text) => shown(text).split(shown(gap)).slice(0, MAX_ITEMS)),
};

const CHOICES: Readonly<Record<string, FunctionRow>> = {
  default: row(1, 2, (other, value) => (isTrue(value) ? value : other)),
  empty: row(1, 1, (value) => !isTrue(value)),
  coalesce: row(0, undefined, (...values) => values.find(isTrue)),
  ternary: row(3, 3, (yes, no, which) => (which === true ? yes : no)),
  all: row(0, undefined, (...values) => values.every(isTrue)),
  any: row(0, undefined, (...values) => values.some(isTrue)),
  fail: row(1, 1, (message) => {
    throw new UnfitValue(shown(message));
  }),
  semverCompare: row(2, 2, (constraint, version) => satisfiesConstraint(shown(constraint), shown(version))),
};

const NUMBERS: Readonly<Record<string, FunctionRow>> = {
  int: row(1, 1, whole),
  int64: row(1, 1, whole),
  atoi: row(1, 1, whole),
  float64: row(1, 1, (value) => Number(value ?? 0) || 0),
  add: row(0, undefined, (...values) => values.reduce<number>((sum, value) => sum + whole(value), 0)),
  add1: row(1, 1, (value) => whole(value) + 1),
  sub: row(2, 2, (a, b) => whole(a) - whole(b)),
  mul: row(1, undefined, (...values) => values.reduce<number>((product, value) => product * whole(value), 1)),
  div: row(2, 2, (a, b) => divide(a, b, (left, right) => Math.trunc(left / right))),
  mod: row(2, 2, (a, b) => divide(a, b, (left, right) => left % right)),
  max: row(1, undefined, (...values) => Math.max(...values.map(whole))),
  min: row(1, undefined, (...values) => Math.min(...values.map(whole))),
  until: row(1, 1, (count) => steps(0, whole(count), whole(count) < 0 ? -1 : 1)),
  untilStep: row(3, 3, (from, to, by) => steps(whole(from), whole(to), whole(by))),
};

/** A value of JSON; null is unset. */
function plain(value: unknown): Value {
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return (value as Value | null) ?? undefined;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

/** Works like sprig's `mustFromJson`: a text that is not JSON is an error, not an empty value. */
function fromJson(text: Value): Value {
  try {
    return plain(shallowJson(shown(text)));
  } catch {
    throw new UnfitValue('the text is not JSON');
  }
}

const JSON_TEXTS: Readonly<Record<string, FunctionRow>> = { toJson: row(1, 1, goJson), fromJson: row(1, 1, fromJson) };

const LISTS: Readonly<Record<string, FunctionRow>> = {
  list: row(0, undefined, (...values) => values),
  first: row(1, 1, (values) => list(values)[0]),
  last: row(1, 1, (values) => list(values).at(-1)),
  rest: row(1, 1, (values) => list(values).slice(1)),
  initial: row(1, 1, (values) => list(values).slice(0, -1)),
  append: row(2, 2, (values, value) => [...list(values), value]),
  prepend: row(2, 2, (values, value) => [value, ...list(values)]),
  concat: row(0, undefined, (...values) => values.flatMap(list)),
  has: row(2, 2, (value, values) => list(values).includes(value)),
  uniq: row(1, 1, (values) => [...new Set(list(values))]),
  compact: row(1, 1, (values) => list(values).filter(isTrue)),
  without: row(1, undefined, (values, ...others) => {
    const excluded = new Set(others);
    return list(values).filter((value) => !excluded.has(value));
  }),
  sortAlpha: row(1, 1, (values) => list(values).map(shown).toSorted()),
  dict: row(0, undefined, dict),
  get: row(2, 2, (values, key) => own(map(values), shown(key)) ?? ''),
  hasKey: row(2, 2, (values, key) => Object.hasOwn(map(values), shown(key))),
  keys: row(1, 1, (values) => Object.keys(map(values))),
};

export const SPRIG_FUNCTIONS: Readonly<Record<string, FunctionRow>> = {
  ...TEXTS,
  ...CHOICES,
  ...NUMBERS,
  ...JSON_TEXTS,
  ...LISTS,
};
