/** Digests of what a manager owns in an object, as records have them. */
import { canonicalJson, digestOf, hexOf } from '../core/digest.ts';
import { withDigits } from '../core/json.ts';
import { valuesOf } from '../kube/managed-fields.ts';
import type { LiveObject } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';

/** Begins a digest of this form; one of names has no prefix. */
const VALUES = 'values:';

/** The digest of the names of a manager's fields, the first form in records; empty if it owns none. */
export function namesDigest(object: LiveObject, manager: string): string {
  const [first, second] = ownFields(object, manager);
  return first === undefined ? '' : shortDigest(second === undefined ? first : [first, second]);
}

/** The digest of a manager's fields and their values; empty if it owns none. */
export function valuesDigest(object: LiveObject, manager: string, { kind }: Pick<Resource, 'kind'>): string {
  const own = ownFields(object, manager);
  if (own.length === 0) return '';
  const { managedFields, uid } = object.metadata;
  const others = managedFields.filter((one) => one.manager !== manager).map(({ fieldsV1 }) => fieldsV1);
  // Whoever can read the record and not the Secret does not know its uid, and cannot try which value fits.
  const salt = kind === 'Secret' ? uid : '';
  return `${VALUES}${shortDigest([salt, own.map((fields) => valuesOf(object, fields, others))])}`;
}

function ownFields({ metadata }: LiveObject, by: string): readonly unknown[] {
  const own = metadata.managedFields.filter(({ manager, subresource }) => manager === by && subresource === '');
  return own.map(({ fieldsV1 }) => fieldsV1 ?? {});
}

function shortDigest(value: unknown): string {
  return hexOf(digestOf(canonicalJson(withDigits(value)))).slice(0, 16);
}
