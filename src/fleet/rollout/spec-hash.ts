/** The hash by which a change of configuration is found. Pure. */
import { digestOf, hexOf } from '../../core/digest.ts';
import { goJson } from '../../core/json.ts';

const NOT_HASHED = new Set(['apiVersion', 'kind', 'metadata', 'status']);

/**
 * SHA-256, in hex, of the fields that a user sets in an object: all but `apiVersion`, `kind`, `metadata` and `status`. The text that
 * is hashed is JSON as Go writes it, with sorted keys. Integers beyond 2^53 are bigints.
 */
export function specHash(object: Readonly<Record<string, unknown>>): string {
  const fields = Object.entries(object).filter(([key]) => !NOT_HASHED.has(key));
  return hexOf(digestOf(goJson(Object.fromEntries(fields))));
}
