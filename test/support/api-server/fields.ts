/**
 * Server-side apply on JSON: which fields a document sets, who owns them, and what an apply or an update makes of both. A set of fields
 * is flat, one path per field; `fieldsV1` is its form in objects. Lists are atomic except those of {@link listKeys}.
 */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Paths of segments such as `f:spec` and `k:{"name":"web"}`, joined by newlines, which segments escape. */
export type FieldSet = ReadonlySet<string>;

export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly fields: FieldSet;
}

export function isMap(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A text as it is, nothing as an empty one, and the rest as JSON. */
export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** Fields by which items of a list are told apart; `set` for lists of texts; undefined: the list is one value. */
type ListKeys = 'set' | readonly string[] | undefined;

const LISTS: Readonly<Record<string, ListKeys>> = {
  containers: ['name'],
  initContainers: ['name'],
  ephemeralContainers: ['name'],
  env: ['name'],
  volumes: ['name'],
  volumeMounts: ['mountPath'],
  volumeDevices: ['devicePath'],
  imagePullSecrets: ['name'],
  hostAliases: ['ip'],
  topologySpreadConstraints: ['topologyKey', 'whenUnsatisfiable'],
  conditions: ['type'],
  ownerReferences: ['uid'],
  webhooks: ['name'],
  finalizers: 'set',
};

/** Maps that are one value. */
const ATOMIC = new Set(['selector', 'labelSelector', 'podSelector', 'namespaceSelector', 'nodeSelector', 'roleRef']);

/** Maps with keys of the user's choice; in the sets of updates, they are fields of their own. */
const OPEN_MAPS = /^f:(?:labels|annotations|data|binaryData|stringData|matchLabels)$/;

/** `parent` is the name of the field that holds the list's owner: ports of containers and of services differ. */
function listKeys(field: string, items: readonly Json[]): ListKeys {
  if (field !== 'ports') return LISTS[field];
  return items.some((item) => isMap(item) && item['containerPort'] !== undefined)
    ? ['containerPort', 'protocol']
    : ['port', 'protocol'];
}

function itemKey(keys: 'set' | readonly string[], item: Json): string {
  if (keys === 'set' || !isMap(item)) return `v:${JSON.stringify(item)}`;
  const values = keys.map((key): [string, Json] => [key, item[key] ?? (key === 'protocol' ? 'TCP' : null)]);
  return `k:${JSON.stringify(Object.fromEntries(values))}`;
}

const IDENTITY =
  /^(?:f:apiVersion|f:kind|f:metadata(?:\nf:(?:name|namespace|uid|resourceVersion|generation|creationTimestamp|deletionTimestamp|managedFields|selfLink)(?:\n[^]*)?)?)$/;

/** The fields that a document sets, identity apart. `isUpdate` also counts maps with free keys as fields. */
export function fieldsOf(document: JsonObject, isUpdate = false): FieldSet {
  const out = new Set<string>();
  collect(document, [], '', { out, isUpdate });
  return new Set([...out].filter((path) => !IDENTITY.test(path)));
}

function collect(
  value: Json,
  path: readonly string[],
  field: string,
  to: { readonly out: Set<string>; readonly isUpdate: boolean },
): void {
  const add = (): void => void (path.length > 0 && to.out.add(path.join('\n')));
  if (isMap(value) && !ATOMIC.has(field) && Object.keys(value).length > 0) {
    if (to.isUpdate && OPEN_MAPS.test(path.at(-1) ?? '')) add();
    for (const [key, child] of Object.entries(value)) collect(child, [...path, `f:${key}`], key, to);
    return;
  }
  const keys = isList(value) ? listKeys(field, value) : undefined;
  if (!isList(value) || keys === undefined || value.length === 0) return add();
  for (const item of value) {
    const at = [...path, itemKey(keys, item)];
    to.out.add(at.join('\n'));
    if (isMap(item)) collect(item, at, '', to);
  }
}

/** The form of a set in objects. */
export function encodeFields(fields: FieldSet): JsonObject {
  interface Node {
    [segment: string]: Node;
  }
  const root: Node = {};
  for (const path of [...fields].toSorted()) {
    let node = root;
    for (const segment of path.split('\n')) node = node[segment] ??= {};
  }
  const mark = (node: Node, path: string): JsonObject => {
    const children = Object.entries(node).map(([segment, child]): [string, JsonObject] => [
      segment,
      mark(child, path === '' ? segment : `${path}\n${segment}`),
    ]);
    return Object.fromEntries(children.length > 0 && fields.has(path) ? [['.', {}], ...children] : children);
  };
  return mark(root, '');
}

export function decodeFields(encoded: JsonObject): FieldSet {
  const out = new Set<string>();
  const walk = (node: JsonObject, path: readonly string[]): void => {
    const children = Object.entries(node);
    if (path.length > 0 && (children.length === 0 || node['.'] !== undefined)) out.add(path.join('\n'));
    for (const [segment, child] of children) if (segment !== '.' && isMap(child)) walk(child, [...path, segment]);
  };
  walk(encoded, []);
  return out;
}

/** `.spec.containers[name="web"].image` */
export function fieldTitle(path: string): string {
  return path
    .split('\n')
    .map((segment) => {
      const text = segment.slice(2);
      if (segment.startsWith('f:')) return `.${text}`;
      if (segment.startsWith('v:')) return `[=${text}]`;
      const keys = Object.entries(JSON.parse(text) as JsonObject);
      return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(',')}]`;
    })
    .join('');
}

/** The value at a path; undefined: none. */
export function valueAt(document: JsonObject, path: string): Json | undefined {
  let value: Json | undefined = document;
  let field = '';
  for (const segment of path.split('\n')) {
    if (segment.startsWith('f:')) {
      field = segment.slice(2);
      value = isMap(value) ? value[field] : undefined;
    } else {
      const keys: ListKeys = isList(value) ? listKeys(field, value) : undefined;
      value = isList(value) && keys !== undefined ? value.find((item) => itemKey(keys, item) === segment) : undefined;
      field = '';
    }
  }
  return value;
}

/** The document with another's fields laid over it; items of keyed lists keep their order, new ones come last. */
export function merge(live: Json | undefined, over: Json, field = ''): Json {
  if (isMap(live) && isMap(over) && !ATOMIC.has(field)) {
    const changed = Object.entries(over).map(([key, value]): [string, Json] => [key, merge(live[key], value, key)]);
    return { ...live, ...Object.fromEntries(changed) };
  }
  const keys = isList(over) ? listKeys(field, over) : undefined;
  if (!isList(live) || !isList(over) || keys === undefined) return over;
  const news = new Map(over.map((item) => [itemKey(keys, item), item]));
  const merged = live.map((item): Json => {
    const changed = news.get(itemKey(keys, item));
    news.delete(itemKey(keys, item));
    return changed === undefined ? item : merge(item, changed);
  });
  return [...merged, ...news.values()];
}

/** The document without these fields. A map or a list that they leave empty goes as well. */
export function without(document: JsonObject, paths: FieldSet): JsonObject {
  const strip = (value: Json, path: readonly string[], field: string): Json | undefined => {
    if (path.length > 0 && paths.has(path.join('\n'))) return undefined;
    if (isMap(value) && !ATOMIC.has(field)) {
      const entries = Object.entries(value).flatMap(([key, child]): [string, Json][] => {
        const left = strip(child, [...path, `f:${key}`], key);
        return left === undefined ? [] : [[key, left]];
      });
      return entries.length === 0 && Object.keys(value).length > 0 && path.length > 0
        ? undefined
        : Object.fromEntries(entries);
    }
    const keys = isList(value) ? listKeys(field, value) : undefined;
    if (!isList(value) || keys === undefined) return value;
    const items = value.flatMap((item) => strip(item, [...path, itemKey(keys, item)], '') ?? []);
    return items.length === 0 && value.length > 0 ? undefined : items;
  };
  return strip(document, [], '') as JsonObject;
}

export function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (isMap(a) && isMap(b)) {
    const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...keys].every((key) => isSame(a[key], b[key]));
  }
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, at) => isSame(item, b[at]));
  return a === b;
}

/** The paths that other paths of the set begin with. */
export function parentsOf(fields: FieldSet): FieldSet {
  const out = new Set<string>();
  for (const path of fields)
    for (let end = path.lastIndexOf('\n'); end > 0; end = path.lastIndexOf('\n', end - 1)) out.add(path.slice(0, end));
  return out;
}

/** Fields that the second document adds or changes, and those that it no longer has. */
export function compare(
  before: JsonObject,
  after: JsonObject,
): { readonly changed: FieldSet; readonly removed: FieldSet } {
  const [old, now] = [fieldsOf(before, true), fieldsOf(after, true)];
  // Items of keyed lists and open maps are the same while their fields differ.
  const parents = parentsOf(now);
  const isChanged = (path: string): boolean =>
    !old.has(path) || (!parents.has(path) && !isSame(valueAt(before, path), valueAt(after, path)));
  return {
    changed: new Set([...now].filter(isChanged)),
    removed: new Set([...old].filter((path) => !now.has(path))),
  };
}
