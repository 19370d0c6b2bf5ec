/**
 * Managed fields: which fields of an object a manager owns, as the server keeps them (FieldsV1). A step is `f:` and a field, `k:` and
 * the keys of an item of a list, `v:` and an item of a set, `i:` and an index, or `.`, the field itself. Pure.
 */
import { isObject, jsonIn } from '../../core/json.ts';
import { shortened } from '../../core/shortened.ts';

export interface FieldsEntry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource: string;
  readonly fieldsV1?: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** Programs that apply manifests, under the names that they use themselves. */
const APPLIERS = new Set(['kops', 'kubectl', 'kubectl-client-side-apply', 'kubectl-create']);

/** The treatment of the fields of those who applied an object before: `first` only when curlew applies it for the first time. */
export type HandOver = 'never' | 'first' | 'always';

/**
 * The entries after `manager` has got the fields of those who applied the object before, its own last; undefined if nothing changes.
 * Like kops, and `kubectl apply --server-side`: otherwise fields that the next version drops would stay. kops also takes what people
 * have edited.
 */
export function handedOver<Entry extends FieldsEntry>(
  entries: readonly Entry[],
  manager: string,
  how: HandOver,
): readonly Entry[] | undefined {
  const whole = entries.filter(({ subresource }) => subresource === '');
  const own = whole.find((one) => one.manager === manager && one.operation === 'Apply');
  if (how === 'never' || (how === 'first' && own !== undefined)) return undefined;
  const isFormer = (one: Entry): boolean =>
    APPLIERS.has(one.manager) ||
    (one.manager === 'kubectl-edit' && how === 'always') ||
    (one.manager === manager && one.operation === 'Update');
  const former = whole.filter(isFormer);
  const [first] = former;
  if (first === undefined) return undefined;
  const fieldsV1 = former.reduce<unknown>((sum, one) => union(sum, one.fieldsV1), own?.fieldsV1);
  const others = entries.filter((one) => one !== own && !former.includes(one));
  return [...others, { ...(own ?? first), manager, operation: 'Apply', fieldsV1 }];
}

function union(a: unknown, b: unknown): unknown {
  if (!isObject(a) || !isObject(b)) return a ?? b;
  const [isLeafA, isLeafB] = [isLeaf(a), isLeaf(b)];
  const steps = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const joined = Object.fromEntries(steps.map((step) => [step, union(a[step], b[step])]));
  return isLeafA === isLeafB ? joined : { '.': {}, ...joined };
}

/** It owns the field with all that is in it. */
function isLeaf(fields: unknown): boolean {
  return isObject(fields) && Object.keys(fields).length === 0;
}

function stepsIn(fields: unknown): readonly (readonly [string, unknown])[] {
  return isObject(fields) ? Object.entries(fields).filter(([step]) => step !== '.') : [];
}

/** The value that fields have at a step. */
function inner(sets: readonly unknown[], step: string): readonly unknown[] {
  return sets.flatMap((set) => (isObject(set) && Object.hasOwn(set, step) ? [set[step]] : []));
}

/** Index of the item that a step names. */
function indexOf(list: readonly unknown[], step: string): number {
  const key = jsonIn(step.slice(2));
  if (step.startsWith('i:')) return Number(key);
  if (step.startsWith('v:')) return list.indexOf(key);
  return isObject(key) ? list.findIndex((item) => hasKeys(item, key)) : -1;
}

function hasKeys(item: unknown, keys: Fields): boolean {
  return isObject(item) && Object.entries(keys).every(([key, value]) => keyValue(item, key) === value);
}

/** The only key of lists of Kubernetes that has a default. */
function keyValue(item: Fields, key: string): unknown {
  return item[key] ?? (key === 'protocol' ? 'TCP' : undefined);
}

function childAt(value: unknown, step: string): unknown {
  if (Array.isArray(value)) return (value as readonly unknown[])[indexOf(value, step)];
  const name = step.slice(2);
  return isObject(value) && step.startsWith('f:') && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Others own keys of them. The server leaves them out while they are empty, and whoever fills one takes it. */
const OPEN_MAPS = new Set(['f:annotations', 'f:binaryData', 'f:data', 'f:labels', 'f:stringData']);

/**
 * The values of fields, for digests; undefined: none. What `others` own in a field that is owned with all that is in it does not
 * count, nor do maps with keys of the user's choice of which nothing else is owned.
 */
export function valuesOf(value: unknown, fields: unknown, others: readonly unknown[] = []): unknown {
  const steps = stepsIn(fields);
  if (steps.length > 0) {
    const inside = steps.flatMap(([step, field]) => {
      const owned = valuesOf(childAt(value, step), field, inner(others, step));
      return owned === undefined || (owned === null && OPEN_MAPS.has(step)) ? [] : [[step, owned]];
    });
    if (inside.length > 0) return inside;
    return isObject(fields) && Object.hasOwn(fields, '.') ? null : undefined;
  }
  if (value === undefined || !isLeaf(fields)) return null;
  const isShared = others.some((set) => stepsIn(set).length > 0);
  if (!isObject(value)) return isShared ? null : value;
  const own = Object.entries(value).filter(([key]) => inner(others, `f:${key}`).length === 0);
  // The server leaves out maps that are empty.
  return own.length === 0 ? null : Object.fromEntries(own);
}

/** Programs of Kubernetes that write into objects of all kinds: what they add is no one's change. */
const CONTROLLERS = new Set([
  'cloud-controller-manager',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-proxy',
  'kube-scheduler',
  'kubelet',
]);
const KEYED_MAPS = new Set([...OPEN_MAPS, 'f:limits', 'f:requests']);
const MAX_WORD = 80;

/** Levels of each object, of which paths in words say nothing. */
const LEVELS = new Set(['metadata', 'spec']);

/**
 * Items of lists, and keys of maps whose keys users choose, that others have added to those of `manager`: its applies leave them.
 * Each is a path in words and who added it, such as `port 81 of kubectl-patch`, without values. Left out are other fields, subresources,
 * and what Kubernetes itself adds.
 */
export function addedByOthers(entries: readonly FieldsEntry[], manager: string): readonly string[] {
  const whole = entries.filter(({ subresource }) => subresource === '');
  const own = whole.filter((one) => one.manager === manager).map(({ fieldsV1 }) => fieldsV1);
  const added = new Map<string, string>();
  for (const { manager: by, fieldsV1 } of whole) {
    if (by === manager || CONTROLLERS.has(by)) continue;
    for (const path of pathsBeside(fieldsV1, own)) if (!added.has(path)) added.set(path, by);
  }
  return [...added].map(([path, by]) => `${path} of ${by}`);
}

/** `above` is the name of the field that these are in, if `words` do not have it yet. */
function pathsBeside(fields: unknown, own: readonly unknown[], above = '', words = ''): readonly string[] {
  return stepsIn(fields).flatMap(([step, inside]) => {
    const isItem = !step.startsWith('f:') || KEYED_MAPS.has(`f:${above}`);
    const word = isItem ? `${above.replace(/s$/, '')} ${itemName(step)}` : LEVELS.has(above) ? '' : above;
    const path = [words, word].filter((one) => one !== '').join(' ');
    const known = inner(own, step);
    if (known.length > 0) return pathsBeside(inside, known, isItem ? '' : step.slice(2), path);
    return isItem && own.length > 0 ? [path] : [];
  });
}

function itemName(step: string): string {
  const text = step.slice(2);
  const key = step.startsWith('f:') ? text : (jsonIn(text) ?? text);
  const keys = isObject(key) ? Object.entries(key).filter((one) => one.join(' ') !== 'protocol TCP') : [[step, key]];
  return shortened(keys.map(([, value]) => String(value)).join(' '), MAX_WORD);
}

/**
 * The object as the server leaves it when the last manager of `entries` applies `wanted`: what it alone owned
 * goes. Predicted here, since no dry run knows of another one.
 */
export function appliedTo(object: Fields, wanted: Fields, entries: readonly FieldsEntry[]): Fields {
  const sets = entries.map(({ fieldsV1 }) => fieldsV1);
  const base = without(object, sets.at(-1), sets.slice(0, -1));
  return merged(base, wanted, sets) as Fields;
}

/** Undefined if nothing is left. */
function without(value: unknown, gone: unknown, keptSets: readonly unknown[]): unknown {
  const isOwn = isLeaf(gone) || (isObject(gone) && Object.hasOwn(gone, '.'));
  if (isOwn && keptSets.length === 0) return undefined;
  let result = value;
  for (const [step, fields] of stepsIn(gone)) {
    const child = childAt(result, step);
    if (child === undefined) continue;
    const others = inner(keptSets, step);
    const rest = without(child, fields, others);
    // Others may own parts of an item, and not its keys.
    const keys = step.startsWith('k:') && isObject(rest) ? jsonIn(step.slice(2)) : undefined;
    result = replaced(result, step, isObject(keys) && isObject(rest) ? { ...keys, ...rest } : rest);
  }
  return result;
}

function replaced(value: unknown, step: string, child: unknown): unknown {
  if (Array.isArray(value)) {
    const at = indexOf(value, step);
    return child === undefined ? value.toSpliced(at, 1) : value.with(at, child);
  }
  const { [step.slice(2)]: _before, ...others } = value as Fields;
  return child === undefined ? others : { ...others, [step.slice(2)]: child };
}

/** `sets` are what managers own at this place: they tell by which keys a list is merged. */
function merged(base: unknown, wanted: unknown, sets: readonly unknown[]): unknown {
  const steps = sets.flatMap((set) => stepsIn(set).map(([step]) => step));
  const isAtomic = steps.length === 0 && sets.some(isLeaf);
  if (isAtomic) return wanted;
  if (isObject(base) && isObject(wanted)) {
    const fields = Object.entries(wanted).map(([key, value]) => {
      return [key, merged(Object.hasOwn(base, key) ? base[key] : undefined, value, inner(sets, `f:${key}`))] as const;
    });
    return { ...base, ...Object.fromEntries(fields) };
  }
  if (!Array.isArray(base) || !Array.isArray(wanted)) return wanted;
  if (steps.some((step) => step.startsWith('v:')))
    return [...new Set([...(base as unknown[]), ...(wanted as unknown[])])];
  const keyed = steps.find((step) => step.startsWith('k:'));
  const keys = Object.keys(Object(keyed === undefined ? undefined : jsonIn(keyed.slice(2))) as object);
  return keys.length === 0 ? wanted : mergedItems(base, wanted, { keys, sets });
}

function mergedItems(
  base: readonly unknown[],
  wanted: readonly unknown[],
  { keys, sets }: { readonly keys: readonly string[]; readonly sets: readonly unknown[] },
): readonly unknown[] {
  const items = [...base];
  for (const item of wanted) {
    if (!isObject(item)) continue;
    const own = Object.fromEntries(keys.map((key) => [key, keyValue(item, key)]));
    const at = items.findIndex((one) => hasKeys(one, own));
    const named = sets.flatMap((set) =>
      stepsIn(set).filter(([step]) => step.startsWith('k:') && indexOf([own], step) === 0),
    );
    if (at === -1) items.push(item);
    else
      items[at] = merged(
        items[at],
        item,
        named.map(([, fields]) => fields),
      );
  }
  return items;
}
