/** Values of a template: their truth, text and order. Pure. */

export type Value = string | number | boolean | undefined | readonly Value[] | ValueMap;
export interface ValueMap {
  readonly [key: string]: Value;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

export function isValueMap(value: Value): value is ValueMap {
  return typeof value === 'object' && !isList(value);
}

/** Go's truth: false, 0, an empty text, list or map, and unset values are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isValueMap(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** A value as Go prints it; unset values print nothing. */
export function shown(value: Value): string {
  if (value === undefined) return '';
  if (isList(value)) return `[${value.map(shown).join(' ')}]`;
  if (!isValueMap(value)) return String(value);
  const keys = Object.keys(value).toSorted();
  return `map[${keys.map((key) => `${key}:${shown(value[key])}`).join(' ')}]`;
}

/** Cost of an entry of a list or map, or of a value, without its characters. */
const ENTRY = 16;
const weights = new WeakMap<object, number>();

/** About how long looking at a whole value takes. A list that another one contains several times counts each time, as if printed. */
export function weightOf(value: Value): number {
  if (typeof value !== 'object') return ENTRY + (typeof value === 'string' ? value.length : 0);
  const known = weights.get(value);
  if (known !== undefined) return known;
  const parts = isList(value) ? value : Object.entries(value).flat();
  const weight = parts.reduce<number>((sum, part) => sum + weightOf(part), ENTRY);
  weights.set(value, weight);
  return weight;
}

export function valueKind(value: Value): string {
  if (value === undefined) return 'nothing';
  if (isList(value)) return 'a list';
  if (isValueMap(value)) return 'a map';
  if (typeof value === 'string') return 'a string';
  return typeof value === 'number' ? 'a number' : 'true or false';
}

export class UnfitValue extends Error {}

/**
 * Order of two plain values: negative, 0 or positive. An unset setting counts as the zero value of the other's type, like the
 * fields of kURL's structures. Values of different types are an {@link UnfitValue}.
 */
export function compareValues(a: Value, b: Value): number {
  const [left, right] = [a ?? zeroLike(b), b ?? zeroLike(a)];
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left === 'string' && typeof right === 'string') return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  throw new UnfitValue(`${valueKind(a)} and ${valueKind(b)} cannot be compared`);
}

function zeroLike(value: Value): Value {
  if (typeof value === 'number') return 0;
  if (typeof value === 'boolean') return false;
  return '';
}
