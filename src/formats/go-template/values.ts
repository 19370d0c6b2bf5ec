/** Values of a template: what they are worth as a condition, as text, beside each other. Pure. */

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

/** Go's truth: false, 0, an empty text, list or map, and what is not set, are false. */
export function isTrue(value: Value): boolean {
  if (isList(value)) return value.length > 0;
  if (isValueMap(value)) return Object.keys(value).length > 0;
  return Boolean(value);
}

/** As Go prints it; what is not set prints nothing. */
export function shown(value: Value): string {
  if (value === undefined) return '';
  if (isList(value)) return `[${value.map(shown).join(' ')}]`;
  if (!isValueMap(value)) return String(value);
  const keys = Object.keys(value).toSorted();
  return `map[${keys.map((key) => `${key}:${shown(value[key])}`).join(' ')}]`;
}

export function kindOf(value: Value): string {
  if (value === undefined) return 'nothing';
  if (isList(value)) return 'a list';
  if (isValueMap(value)) return 'a map';
  if (typeof value === 'string') return 'a text';
  return typeof value === 'number' ? 'a number' : 'true or false';
}

export class UnfitValue extends Error {}

/**
 * Order of two plain values: negative, 0 or positive. A setting that is not set counts as the zero of the other's kind,
 * as the fields of kURL's structures do. Values of two kinds are an {@link UnfitValue}.
 */
export function compareValues(a: Value, b: Value): number {
  const [left, right] = [a ?? zeroLike(b), b ?? zeroLike(a)];
  if (typeof left === 'number' && typeof right === 'number') return left - right;
  if (typeof left === 'string' && typeof right === 'string') return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  throw new UnfitValue(`${kindOf(a)} and ${kindOf(b)} cannot be compared`);
}

function zeroLike(value: Value): Value {
  if (typeof value === 'number') return 0;
  if (typeof value === 'boolean') return false;
  return '';
}
