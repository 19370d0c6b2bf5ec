/** The hash by which a change of configuration is found. Pure. */
import { digestOf, hexOf } from '../core/digest.ts';
import { exactJson, isObject } from '../core/json.ts';

const NOT_HASHED = new Set(['apiVersion', 'kind', 'metadata', 'status']);

/**
 * SHA-256, in hex, of the fields that a user sets in an object: all but `apiVersion`, `kind`, `metadata` and `status`. The text that
 * is hashed is JSON as Go writes it, with sorted keys. Integers beyond 2^53 are bigints.
 */
export function specHash(object: Readonly<Record<string, unknown>>): string {
  const fields = Object.entries(object).filter(([key]) => !NOT_HASHED.has(key));
  return hexOf(digestOf(goJson(Object.fromEntries(fields))));
}

function goJson(value: unknown): string {
  return exactJson(sorted(value)).replaceAll(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).toSorted();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}
