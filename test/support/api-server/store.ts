/** The objects of the server, each change with a version of its own, and what watches of them see. */
import { isMap, textOf, type Json, type JsonObject } from './fields.ts';
import { apiVersionOf, type ServedKind } from './kinds.ts';

/** A response that is no success. */
export class StatusError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: JsonObject;
  constructor(code: number, reason: string, message: string, details: JsonObject = {}) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get body(): JsonObject {
    const { code, reason, details, message } = this;
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, details, code };
  }
}

export interface StoredObject {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly name: string;
  readonly value: JsonObject;
}

export interface Change {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredObject;
  /** Before a change. */
  readonly before: StoredObject | undefined;
}

export function metadataOf(value: JsonObject): JsonObject {
  return isMap(value['metadata']) ? value['metadata'] : {};
}

function keyOf({ group, plural }: ServedKind, namespace: string, name: string): string {
  return [group, plural, namespace, name].join('\n');
}

export class Store {
  readonly #objects = new Map<string, StoredObject>();
  readonly #changes: Change[] = [];
  readonly #listeners = new Set<() => void>();
  /** Lists and watches that begin before this version have expired. */
  #oldest = 0;
  #version = 100;

  get version(): number {
    return this.#version;
  }

  get(kind: ServedKind, namespace: string, name: string): StoredObject | undefined {
    return this.#objects.get(keyOf(kind, namespace, name));
  }

  /** Objects in the order of namespace and name; an empty namespace means all. */
  list(kind: ServedKind, namespace: string): readonly StoredObject[] {
    const matching = [...this.#objects].filter(
      ([, one]) =>
        one.kind.group === kind.group &&
        one.kind.plural === kind.plural &&
        (namespace === '' || one.namespace === namespace),
    );
    return matching.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
  }

  /** Stores an object under a new version, which its metadata gets. */
  put(kind: ServedKind, namespace: string, name: string, value: JsonObject): StoredObject {
    this.#version += 1;
    const metadata = { ...metadataOf(value), resourceVersion: String(this.#version) };
    const stored = {
      kind,
      namespace,
      name,
      value: { ...value, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata },
    };
    const before = this.get(kind, namespace, name);
    this.#objects.set(keyOf(kind, namespace, name), stored);
    this.#note({ version: this.#version, type: before === undefined ? 'ADDED' : 'MODIFIED', object: stored, before });
    return stored;
  }

  remove(object: StoredObject): void {
    this.#version += 1;
    this.#objects.delete(keyOf(object.kind, object.namespace, object.name));
    const metadata = { ...metadataOf(object.value), resourceVersion: String(this.#version) };
    const last = { ...object, value: { ...object.value, metadata } };
    this.#note({ version: this.#version, type: 'DELETED', object: last, before: object });
  }

  #note(change: Change): void {
    this.#changes.push(change);
    for (const listener of this.#listeners) listener();
  }

  /** Forgets all changes so far, as etcd's compaction does. */
  compact(): void {
    this.#oldest = this.#version;
    this.#changes.length = 0;
  }

  /** Returns what puts back all objects as they are now, under their versions, as from a backup of etcd. */
  backUp(): () => void {
    const [objects, version] = [[...this.#objects], this.#version];
    return () => {
      this.#objects.clear();
      for (const [key, one] of objects) this.#objects.set(key, one);
      this.#changes.length = 0;
      this.#listeners.clear();
      this.#version = version;
    };
  }

  /** `Expired` for a version that was compacted. */
  requireVersion(version: number): void {
    if (version >= this.#oldest) return;
    throw new StatusError(410, 'Expired', `The resourceVersion for the provided watch is too old.`);
  }

  changesAfter(version: number): readonly Change[] {
    return this.#changes.filter((change) => change.version > version);
  }

  /** Returns what ends the subscription. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** `a=b,c!=d,e in (f,g),!h,i`: a test of labels. */
export function labelSelector(selector: string): (object: StoredObject) => boolean {
  const tests = (selector.match(/(?:[^,(]|\([^)]*\))+/g) ?? []).map((part) => {
    const [, not, key = '', operator, rest = ''] =
      /^(!?)([^\s=!]+)\s*(==?|!=|in\b|notin\b)?\s*(.*)$/.exec(part.trim()) ?? [];
    const values = rest.replaceAll(/[()\s]/g, '').split(',');
    return (labels: JsonObject): boolean => {
      const value = labels[key];
      if (operator === undefined) return (value === undefined) === (not === '!');
      return (value !== undefined && values.includes(textOf(value))) !== /^(?:!=|notin)$/.test(operator);
    };
  });
  return ({ value }) => {
    const { labels } = metadataOf(value);
    return tests.every((test) => test(isMap(labels) ? labels : {}));
  };
}

/** `metadata.name=a,type!=b` */
export function fieldSelector(selector: string): (object: StoredObject) => boolean {
  const tests = (selector.match(/[^,]+/g) ?? []).map((part) => {
    const [path = '', wanted = ''] = part.split(/!?==?/);
    return (value: JsonObject): boolean => {
      const field = path.split('.').reduce<Json | undefined>((at, name) => (isMap(at) ? at[name] : undefined), value);
      return (textOf(field) === wanted) !== part.includes('!=');
    };
  });
  return ({ value }) => tests.every((test) => test(value));
}
