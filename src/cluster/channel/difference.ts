/** Differences of two objects of a cluster, field by field. Pure. */
import { exactJson, isObject } from '../../core/json.ts';

export interface FieldChange {
  /** `.spec.template.spec.containers[name="web"].image`, as in managed fields. */
  readonly field: string;
  /** JSON of the value; undefined if the field does not exist. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Fields of `metadata` that the server writes. */
const SERVER_FIELDS = new Set([
  'managedFields',
  'resourceVersion',
  'generation',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
]);
/** By which items of lists are matched, so that an inserted item is one change. */
const ITEM_KEYS = ['name', 'key', 'type', 'containerPort', 'port', 'ip', 'mountPath'];
const MAX_LENGTH = 200;
const MAX_FIELDS = 1000;

/**
 * The fields that differ, sorted as they are in the objects. `status` and what the server writes into `metadata` do not count. Of a
 * Secret, no value is shown: kubectl keeps a copy of all data in an annotation.
 */
export function fieldChanges(before: unknown, after: unknown): readonly FieldChange[] {
  const isSecret = [before, after].some((object) => isObject(object) && object['kind'] === 'Secret');
  const [a, b] = [before, after].map((object) => (isObject(object) ? compared(object) : undefined));
  return differences(a, b, MAX_FIELDS).map((one) => {
    return { field: one.field, before: shown(one.before, isSecret), after: shown(one.after, isSecret) };
  });
}

/** A place where two values differ; undefined on a side that does not have it. */
interface Difference {
  readonly field: FieldChange['field'];
  readonly before: unknown;
  readonly after: unknown;
}

/** The first `most` places where two values differ, as deep as both are maps or lists. */
export function differences(before: unknown, after: unknown, most: number): readonly Difference[] {
  const collected: Difference[] = [];
  collect(before, after, '', { differences: collected, most });
  return collected;
}

function compared(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { status: _status, metadata, ...others } = object;
  if (!isObject(metadata)) return others;
  const own = Object.entries(metadata).filter(([key]) => !SERVER_FIELDS.has(key));
  return { ...others, metadata: Object.fromEntries(own) };
}

interface Into {
  readonly differences: Difference[];
  readonly most: number;
}

function collect(before: unknown, after: unknown, field: string, into: Into): void {
  if (into.differences.length >= into.most || Object.is(before, after)) return;
  if (isObject(before) && isObject(after)) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      collect(own(before, key), own(after, key), `${field}.${key}`, into);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const [a, b] = [items(before), items(after)];
    for (const key of new Set([...a.keys(), ...b.keys()])) collect(a.get(key), b.get(key), `${field}${key}`, into);
    return;
  }
  into.differences.push({ field, before, after });
}

/** Not what each object inherits: a key may be `constructor`. */
function own(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function items(list: readonly unknown[]): ReadonlyMap<string, unknown> {
  const key = ITEM_KEYS.find((name) => {
    const values = list.map((item) => (isObject(item) ? item[name] : undefined));
    return values.every((value) => value !== undefined) && new Set(values).size === list.length;
  });
  return new Map(
    list.map((item, index) => {
      if (key === undefined || !isObject(item)) return [`[${index}]`, item] as const;
      return [`[${key}=${exactJson(item[key])}]`, item] as const;
    }),
  );
}

function shown(value: unknown, isHidden: boolean): string | undefined {
  if (value === undefined) return undefined;
  if (isHidden) return '(hidden)';
  const text = exactJson(value);
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}

type Step = string | number | Readonly<Record<string, unknown>>;

/** `.a.b[name="x"][0]`, and `[="x"]` in sets, as {@link FieldChange.field}; undefined if it cannot be read. */
function stepsOf(field: string): readonly Step[] | undefined {
  const steps: Step[] = [];
  const pattern = /\.([^.[\]]+)|\[(\d+)\]|\[((?:[^"\]]|"(?:[^"\\]|\\.)*")*)\]/gy;
  let at = 0;
  for (let match = pattern.exec(field); match !== null; match = pattern.exec(field)) {
    at = pattern.lastIndex;
    const [, name, index, keys] = match;
    if (name !== undefined) steps.push(name);
    else if (index !== undefined) steps.push(Number(index));
    else {
      const pairs = [...(keys ?? '').matchAll(/([^=,]*)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)];
      if (pairs.length === 0) return undefined;
      steps.push(Object.fromEntries(pairs.map(([, key = '', text = '']) => [key, parsed(text)])));
    }
  }
  return at === field.length && steps.length > 0 ? steps : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/**
 * The object without a field, so that an apply leaves that to its other manager; undefined if the object has no such field. The
 * keys by which list items are matched remain.
 */
export function withoutField<T>(value: T, field: string): T | undefined {
  const steps = stepsOf(field);
  return steps === undefined ? undefined : (without(value, steps) as T | undefined);
}

function without(value: unknown, steps: readonly Step[]): unknown {
  const [step, ...rest] = steps;
  if (step === undefined) return undefined;
  if (typeof step === 'string') return withoutKey(value, step, rest);
  if (!Array.isArray(value)) return undefined;
  const index =
    typeof step === 'number'
      ? step
      : (value as readonly unknown[]).findIndex((item) =>
          Object.entries(step).every(
            ([key, wanted]) => (key === '' ? item : isObject(item) ? item[key] : undefined) === wanted,
          ),
        );
  if (index < 0 || index >= value.length) return undefined;
  const inner = rest.length === 0 ? undefined : without(value[index], rest);
  if (rest.length > 0 && inner === undefined) return undefined;
  return rest.length === 0 ? value.toSpliced(index, 1) : value.with(index, inner);
}

/** Keys may contain dots, such as those of labels: the path is split at each. */
function withoutKey(value: unknown, step: string, rest: readonly Step[]): unknown {
  if (!isObject(value)) return undefined;
  if (!Object.hasOwn(value, step)) {
    const [next, ...others] = rest;
    return typeof next === 'string' ? withoutKey(value, `${step}.${next}`, others) : undefined;
  }
  const { [step]: child, ...others } = value;
  if (rest.length === 0) return others;
  const inner = without(child, rest);
  return inner === undefined ? undefined : { ...value, [step]: inner };
}
