/** The nodes of a parsed document, before they become data: checks keys, and reads parts again by the rules of Kubernetes. */
import { isMap, isScalar, isSeq, type Pair, type Scalar } from 'yaml';
import { goScalar, goTagged } from './go-scalar.ts';

/** The same type as in yaml.ts, which imports this file. */
type Path = readonly (string | number)[];

type Range = Scalar['range'];

export interface SettleRules {
  /** Whether the part at this path is read as the tools of Kubernetes read it. */
  readonly kubernetes: (path: Path) => boolean;
  readonly complain: (code: string, message: string, range: Range) => void;
}

/** Reports duplicate keys and keys that are not plain words; parts of Kubernetes get its values. */
export function checkTree(node: unknown, path: Path, rules: SettleRules): void {
  if (isScalar(node) && rules.kubernetes(path)) readAgain(node, rules);
  if (isSeq(node)) for (const [index, item] of node.items.entries()) checkTree(item, [...path, index], rules);
  if (!isMap(node)) return;
  const seen = new Set<string>();
  for (const pair of node.items) {
    const name = settleKey(pair, { path, range: node.range }, rules);
    if (name === undefined) continue;
    if (seen.has(name) && isScalar(pair.key)) {
      rules.complain('duplicate', `"${name}" is listed twice`, pair.key.range);
    }
    seen.add(name);
    checkTree(pair.value, [...path, name], rules);
  }
}

/** The name of a key; undefined for a merge, and for what cannot be a key. */
function settleKey(
  { key, value }: Pair,
  { path, range }: { readonly path: Path; readonly range: Range },
  rules: SettleRules,
): string | undefined {
  const isKubernetes = rules.kubernetes([...path, '']);
  if (!isScalar(key)) {
    rules.complain('key', 'a key must be a plain word', range);
    return undefined;
  }
  if (typeof key.value === 'symbol') {
    if (isKubernetes) mergeInOrder(key);
    // It contains a map, or a list of maps, of the same place.
    if (isSeq(value)) for (const item of value.items) checkTree(item, path, rules);
    else checkTree(value, path, rules);
    return undefined;
  }
  if (isKubernetes) readAgain(key, rules);
  const name = typeof key.value === 'string' ? key.value : nameOf(key.value, isKubernetes);
  if (name === undefined) rules.complain('key', 'a key must be a plain word', key.range ?? range);
  else if (isKubernetes) key.value = name;
  return name;
}

/** Go writes fractions with seven digits or more in another way: these must be in quotes. */
function nameOf(value: unknown, isKubernetes: boolean): string | undefined {
  const name = String(value);
  if (!isKubernetes) return typeof value === 'number' ? name : undefined;
  if (typeof value === 'boolean' || typeof value === 'bigint' || Number.isSafeInteger(value)) return name;
  return typeof value === 'number' && /^-?(?=[\d.]{3,7}$)\d+\.\d+$/.test(name) ? name : undefined;
}

function readAgain(scalar: Scalar, { complain }: SettleRules): void {
  const { type, tag, source = '' } = scalar;
  if (tag === undefined && type !== 'PLAIN') return;
  const value = tag === undefined ? goScalar(source) : goTagged(tag, source);
  if (value === undefined) complain('value', `this is not a value of the type ${tag}`, scalar.range);
  scalar.value = value;
}

/** A merge in go-yaml overrides the keys before it, not only those after it. */
function mergeInOrder(key: Scalar): void {
  const { addToJSMap: merge } = key;
  key.addToJSMap = (context, map, source) => {
    const merged = {};
    merge?.(context, merged, source);
    for (const [name, value] of Object.entries<unknown>(merged)) {
      if (map instanceof Map) map.set(name, value);
      // Not an assignment, which would set the prototype of the map for the key __proto__.
      else Object.defineProperty(map, name, { value, writable: true, enumerable: true, configurable: true });
    }
  };
}
