/** What applying or updating an object makes of it and of the managers of its fields, as k8s.io/apimachinery's managedfields does. */
import {
  compare,
  decodeFields,
  encodeFields,
  fieldsOf,
  fieldTitle,
  isMap,
  isSame,
  merge,
  parentsOf,
  textOf,
  valueAt,
  without,
  type FieldSet,
  type Json,
  type JsonObject,
  type Manager,
} from './fields.ts';

/** An object, and who owns its fields; its `managedFields` are those of `managers`. */
export interface Owned {
  readonly document: JsonObject;
  readonly managers: readonly Manager[];
}

export type Writer = Omit<Manager, 'fields'>;

export interface Conflict {
  readonly field: string;
  readonly manager: Manager;
}

export function ownedOf(object: JsonObject): Owned {
  const metadata = isMap(object['metadata']) ? object['metadata'] : {};
  const { managedFields, ...others } = metadata;
  const entries = (Array.isArray(managedFields) ? managedFields : []) as readonly Readonly<Record<string, Json>>[];
  const managers = entries.flatMap((entry): readonly Manager[] => {
    const { manager, operation, apiVersion, subresource, time, fieldsV1 } = entry;
    if (manager === undefined || !isMap(fieldsV1)) return [];
    const isApply = operation === 'Apply';
    const texts = {
      manager: textOf(manager),
      apiVersion: textOf(apiVersion),
      subresource: textOf(subresource),
      time: textOf(time),
    };
    return [{ ...texts, operation: isApply ? 'Apply' : 'Update', fields: decodeFields(fieldsV1) }];
  });
  return { document: { ...object, metadata: others }, managers };
}

export function objectOf({ document, managers }: Owned): JsonObject {
  const metadata = isMap(document['metadata']) ? document['metadata'] : {};
  const managedFields = managers
    .toSorted((a, b) => sortKey(a).localeCompare(sortKey(b)))
    .map(({ manager, operation, apiVersion, subresource, time, fields }): JsonObject => {
      const entry = { manager, operation, apiVersion, time, fieldsType: 'FieldsV1', fieldsV1: encodeFields(fields) };
      return subresource === '' ? entry : { ...entry, subresource };
    });
  return { ...document, metadata: managedFields.length === 0 ? metadata : { ...metadata, managedFields } };
}

function sortKey({ operation, time, manager }: Manager): string {
  return `${operation} ${time} ${manager}`;
}

function minus(fields: FieldSet, others: FieldSet): FieldSet {
  return new Set([...fields].filter((path) => !others.has(path)));
}

function isBy({ manager, operation, subresource }: Manager, by: Writer): boolean {
  return manager === by.manager && operation === by.operation && subresource === by.subresource;
}

/** Managers without fields are dropped; the time of `by` moves only if its fields have changed. */
function withFields(managers: readonly Manager[], by: Writer, fields: FieldSet): readonly Manager[] {
  const before = managers.find((one) => isBy(one, by));
  const isEqual = before !== undefined && before.fields.size === fields.size && minus(fields, before.fields).size === 0;
  const own = isEqual ? { ...before, fields } : { ...by, fields };
  return [...managers.filter((one) => !isBy(one, by)), own].filter((one) => one.fields.size > 0);
}

/** Server-side apply. The conflicts are the fields that others own and that the document would change; `force` takes them. */
export function applied(
  live: Owned,
  config: JsonObject,
  by: Writer,
  force: boolean,
): Owned | { readonly conflicts: readonly Conflict[] } {
  const fields = fieldsOf(config);
  const laid = merge(live.document, config) as JsonObject;
  const isChanged = (path: string): boolean => !isSame(valueAt(live.document, path), valueAt(laid, path));
  const parents = parentsOf(fields);
  const taken = new Set([...fields].filter((path) => !parents.has(path) && isChanged(path)));
  const others = live.managers.filter((one) => !isBy(one, by));
  const conflicts = others.flatMap((manager) =>
    [...manager.fields].filter((path) => taken.has(path)).map((path) => ({ field: fieldTitle(path), manager })),
  );
  if (conflicts.length > 0 && !force) return { conflicts };
  const remaining = others.map((one) => ({ ...one, fields: minus(one.fields, taken) }));
  const own = live.managers.filter((one) => isBy(one, by));
  const before = own[0]?.fields ?? new Set<string>();
  const sets = [...remaining.flatMap((one) => [one.fields, parentsOf(one.fields)]), parents];
  const isOwned = (path: string): boolean => sets.some((set) => set.has(path));
  const dropped = new Set([...before].filter((path) => !fields.has(path) && !isOwned(path)));
  return { document: without(laid, dropped), managers: withFields([...remaining, ...own], by, fields) };
}

/** A create, update or patch: what it changes becomes its own, and is lost to others. */
export function updated(live: Owned | undefined, next: Owned, by: Writer): Owned {
  const { changed, removed } = compare(live?.document ?? {}, next.document);
  const lost = new Set([...changed, ...removed]);
  const managers = next.managers.map((one) => (isBy(one, by) ? one : { ...one, fields: minus(one.fields, lost) }));
  const before = managers.find((one) => isBy(one, by))?.fields ?? new Set<string>();
  return {
    document: next.document,
    managers: withFields(managers, by, new Set([...minus(before, removed), ...changed])),
  };
}
