/** Objects of Kubernetes in data that was read from YAML. Pure; bounded, whatever aliases have made of the data. */

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: unknown;
}

type JsonObject = Readonly<Record<string, unknown>>;

/** What the aliases of one document may stand for. */
export const MOST_ALIASES = 100;
const MOST_VALUES = 200_000;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object itself, or the items of a list; undefined when it is neither. Lists stand in lists at most once. */
export function objectsIn(value: unknown, { deeper = 2 } = {}): readonly KubernetesObject[] | undefined {
  if (!isObject(value)) return undefined;
  const { apiVersion, kind, metadata, items } = value;
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || apiVersion === '' || kind === '') return undefined;
  if (!kind.endsWith('List') || !Array.isArray(items)) return [{ apiVersion, kind, metadata }];
  const objects: KubernetesObject[] = [];
  for (const item of items as readonly unknown[]) {
    const inner = deeper > 0 ? objectsIn(item, { deeper: deeper - 1 }) : undefined;
    if (inner === undefined) return undefined;
    objects.push(...inner);
  }
  return objects;
}

/** Every text that stands as an item of a list. */
export function stringsIn(value: unknown): readonly string[] {
  const found: string[] = [];
  const stack: unknown[] = [value];
  for (let count = 0; count < MOST_VALUES; count += 1) {
    if (stack.length === 0) break;
    const next = stack.pop();
    if (Array.isArray(next)) {
      for (const item of next as readonly unknown[]) if (typeof item === 'string') found.push(item);
      stack.push(...(next as readonly unknown[]).filter((item) => typeof item === 'object'));
    } else if (isObject(next)) {
      stack.push(...Object.values(next).filter((item) => typeof item === 'object'));
    }
  }
  return found;
}
