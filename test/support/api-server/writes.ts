/** What the server makes of a request that writes: create, replace, patch, apply, delete; all of it also as a dry run. */
import { randomUUID } from 'node:crypto';
import { isMap, isSame, textOf, valueAt, type Json, type JsonObject } from './fields.ts';
import { apiVersionOf, bySchema, customKinds, WITHOUT_GENERATION, type ServedKind } from './kinds.ts';
import { applied, objectOf, ownedOf, updated, type Conflict, type Owned, type Writer } from './ownership.ts';
import { metadataOf, StatusError, type Store, type StoredObject } from './store.ts';

/** Where a request goes. */
export interface Target {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

export interface WriteOptions {
  readonly manager: string;
  readonly force: boolean;
  readonly dryRun: boolean;
}

export type PatchType = 'merge' | 'json' | 'strategic';

const NAME = /^[a-z0-9]([-a-z0-9.:]*[a-z0-9])?$/;
const CHANGED = 'the object has been modified; please apply your changes to the latest version and try again';

type Place = Pick<Target, 'kind' | 'name'>;

function problem(
  code: number,
  reason: string,
  { kind, name }: Place,
  what: string,
  causes?: readonly Json[],
): StatusError {
  const title = `${kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`} "${name}"`;
  const details = { name, kind: kind.plural, ...(causes === undefined ? {} : { causes }) };
  return new StatusError(code, reason, what.replace('{}', title), details);
}

export function notFound(place: Place): StatusError {
  return problem(404, 'NotFound', place, '{} not found');
}

function conflict(place: Place, why: string): StatusError {
  return problem(409, 'Conflict', place, `Operation cannot be fulfilled on {}: ${why}`);
}

function hasFinalizers({ finalizers }: JsonObject): boolean {
  return Array.isArray(finalizers) && finalizers.length > 0;
}

export class Writes {
  readonly #store: Store;
  constructor(store: Store) {
    this.#store = store;
  }

  create(given: Target, body: JsonObject, options: WriteOptions): JsonObject {
    const { name, generateName } = metadataOf(body);
    const target = {
      ...given,
      name: textOf(name) || `${textOf(generateName).slice(0, 58)}${randomUUID().slice(0, 5)}`,
    };
    const { kind, namespace } = target;
    if (this.#store.get(kind, namespace, target.name) !== undefined)
      throw problem(409, 'AlreadyExists', target, '{} already exists');
    return this.#commit(
      target,
      undefined,
      updated(undefined, ownedOf(body), writer(target, 'Update', options)),
      options,
    );
  }

  #live({ kind, namespace, name }: Target): StoredObject {
    const live = this.#store.get(kind, namespace, name);
    if (live === undefined) throw notFound({ kind, name });
    return live;
  }

  replace(target: Target, body: JsonObject, options: WriteOptions): JsonObject {
    const live = this.#live(target);
    const metadata = metadataOf(live.value);
    const requested = metadataOf(body);
    if ((requested['resourceVersion'] ?? metadata['resourceVersion']) !== metadata['resourceVersion'])
      throw conflict(target, CHANGED);
    const managedFields = requested['managedFields'] ?? metadata['managedFields'] ?? [];
    const next = ownedOf(within(target, live, { ...body, metadata: { ...requested, managedFields } }));
    return this.#commit(target, live, updated(ownedOf(live.value), next, writer(target, 'Update', options)), options);
  }

  patch(target: Target, type: PatchType, body: Json, options: WriteOptions): JsonObject {
    const { value } = this.#live(target);
    const next = type === 'json' ? jsonPatched(target, value, body) : mergePatched(value, body);
    return this.replace(target, next as JsonObject, options);
  }

  apply(target: Target, body: JsonObject, options: WriteOptions): JsonObject {
    const { kind, namespace, name, subresource } = target;
    const live = this.#store.get(kind, namespace, name);
    if (live === undefined && subresource !== '') throw notFound(target);
    const { status, ...others } = encodeSecret(kind, body);
    const config =
      subresource === '' && kind.hasStatus ? others : { ...others, ...(status === undefined ? {} : { status }) };
    const owned = live === undefined ? { document: {}, managers: [] } : ownedOf(live.value);
    const result = applied(owned, config, writer(target, 'Apply', options), options.force);
    if ('conflicts' in result) throw ownerConflict(target, result.conflicts);
    return this.#commit(target, live, result, options);
  }

  delete(target: Target, { preconditions }: JsonObject, { dryRun }: WriteOptions): JsonObject {
    const live = this.#live(target);
    const metadata = metadataOf(live.value);
    for (const [field, wanted] of Object.entries(isMap(preconditions) ? preconditions : {})) {
      if (wanted !== metadata[field])
        throw conflict(target, `the ${field} in the precondition does not match the record`);
    }
    const isNamespace = target.kind.kind === 'Namespace';
    const isHeld = isNamespace || hasFinalizers(metadata);
    if (dryRun || (isHeld && metadata['deletionTimestamp'] !== undefined)) return live.value;
    if (!isHeld) {
      this.#drop(live);
      return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' };
    }
    const status = isNamespace ? { status: { phase: 'Terminating' } } : {};
    const value = { ...live.value, ...status, metadata: { ...metadata, deletionTimestamp: seconds() } };
    return this.#store.put(live.kind, live.namespace, live.name, value).value;
  }

  #drop(object: StoredObject): void {
    this.#store.remove(object);
    if (object.kind.kind !== 'CustomResourceDefinition') return;
    for (const kind of customKinds(object.value)) for (const one of this.#store.list(kind, '')) this.#store.remove(one);
  }

  /** Checks, completes and stores the result of a write; nothing is written if nothing has changed. */
  #commit(target: Target, live: StoredObject | undefined, result: Owned, { dryRun }: WriteOptions): JsonObject {
    const { kind, namespace, name } = target;
    if (live === undefined && kind.namespaced) this.#requireNamespace(target);
    const { dropped, ...known } =
      kind.schema === undefined ? { ...result, dropped: [], problems: [] } : bySchema(kind.schema, result.document);
    const document = completed(target, live, known.document);
    // A real server drops them in silence: who writes a status would write it again and again.
    const unknown = target.subresource === 'status' ? dropped.map((path) => [path, 'unknown field']) : [];
    validate(target, live, document, [...known.problems, ...unknown]);
    const value = objectOf({ ...result, document });
    if (dryRun || (live !== undefined && isSame(live.value, value))) return value;
    const isDeleted = metadataOf(value)['deletionTimestamp'] !== undefined && kind.kind !== 'Namespace';
    if (live === undefined || !isDeleted || hasFinalizers(metadataOf(value)))
      return this.#store.put(kind, namespace, name, value).value;
    this.#drop(live);
    return value;
  }

  #requireNamespace(target: Target): void {
    const kind = { ...target.kind, group: '', plural: 'namespaces' };
    const namespace = this.#store.get(kind, '', target.namespace);
    if (namespace === undefined) throw notFound({ kind, name: target.namespace });
    if (metadataOf(namespace.value)['deletionTimestamp'] === undefined) return;
    const message = `namespace ${target.namespace} is being terminated`;
    const what = `{} is forbidden: unable to create new content in namespace ${target.namespace} because it is being terminated`;
    throw problem(403, 'Forbidden', target, what, [
      { reason: 'NamespaceTerminating', message, field: 'metadata.namespace' },
    ]);
  }
}

function writer({ kind, subresource }: Target, operation: Writer['operation'], { manager }: WriteOptions): Writer {
  return { manager, operation, apiVersion: apiVersionOf(kind), subresource, time: seconds() };
}

function seconds(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}

function ownerConflict(place: Place, conflicts: readonly Conflict[]): StatusError {
  const causes = conflicts.map(({ field, manager: { manager, operation, apiVersion, subresource, time } }) => {
    const part = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
    const using = operation === 'Apply' ? '' : ` using ${apiVersion} at ${time}`;
    const message = `conflict with ${JSON.stringify(manager)}${part}${using}`;
    return { reason: 'FieldManagerConflict', message, field };
  });
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`;
  const list = causes.map(({ message, field }) => `${message}: ${field}`).join('\n');
  return problem(409, 'Conflict', place, `Apply failed with ${count}: ${list}`, causes);
}

/** The document with what a request to this path may write; the rest stays as it is. */
function within({ kind, subresource }: Target, live: StoredObject, body: JsonObject): JsonObject {
  const { status, ...others } = encodeSecret(kind, body);
  const otherStatus = subresource === '' && kind.hasStatus ? live.value['status'] : status;
  const managedFields = metadataOf(body)['managedFields'] ?? [];
  const rest = subresource === '' ? others : { ...live.value, metadata: { ...metadataOf(live.value), managedFields } };
  return otherStatus === undefined ? rest : { ...rest, status: otherStatus };
}

/** A name, a schema, or a change of what cannot change. */
function validate(
  { kind, name }: Target,
  live: StoredObject | undefined,
  document: JsonObject,
  known: readonly string[][],
): void {
  const problems = [
    ...known,
    ...(NAME.test(name) ? [] : [['metadata.name', `Invalid value: ${JSON.stringify(name)}`]]),
  ];
  const fixed = live?.value['immutable'] === true ? ['data', 'binaryData', 'immutable'] : kind.immutable;
  for (const field of live === undefined ? [] : fixed) {
    const path = `f:${field.replaceAll('.', '\nf:')}`;
    const [before, after] = [valueAt(live?.value ?? {}, path), valueAt(document, path)];
    if (before !== undefined && !isSame(before, after))
      problems.push([field, `Invalid value: ${JSON.stringify(after ?? null)}: field is immutable`]);
  }
  if (problems.length === 0) return;
  const causes = problems.map(([field = '', message = '']) => ({ reason: 'FieldValueInvalid', message, field }));
  const list = causes.map(({ field, message }) => `${field}: ${message}`).join(', ');
  const title = kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  const what = `${title} "${name}" is invalid: ${causes.length === 1 ? list : `[${list}]`}`;
  throw problem(422, 'Invalid', { kind, name }, what, causes);
}

const OF_SERVER = ['uid', 'creationTimestamp', 'resourceVersion', 'deletionTimestamp', 'generation'];

/** With what the server adds itself. */
function completed(
  { kind, namespace, name }: Target,
  live: StoredObject | undefined,
  document: JsonObject,
): JsonObject {
  const before: JsonObject =
    live === undefined ? { uid: randomUUID(), creationTimestamp: seconds() } : metadataOf(live.value);
  const entries = Object.entries(metadataOf(document)).filter(([key]) => !OF_SERVER.includes(key));
  const own = Object.entries(before).filter(([key]) => OF_SERVER.includes(key));
  const hasGeneration = (kind.hasStatus || kind.schema !== undefined) && !WITHOUT_GENERATION.has(kind.kind);
  const generation = Number(before['generation'] ?? 0) + (isSame(live?.value['spec'], document['spec']) ? 0 : 1);
  const metadata = {
    ...Object.fromEntries([...entries, ...own]),
    name,
    ...(kind.namespaced ? { namespace } : {}),
    ...(hasGeneration ? { generation: Math.max(generation, 1) } : {}),
  };
  const whole = { ...document, apiVersion: apiVersionOf(kind), kind: kind.kind, metadata };
  return live === undefined ? withDefaults(kind, whole) : whole;
}

/** Fields of new objects that the server sets and that clients look for. */
function withDefaults({ group, kind }: ServedKind, object: JsonObject): JsonObject {
  if (group === '' && kind === 'Namespace')
    return { ...object, spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } };
  if (group === '' && kind === 'Secret') return { type: 'Opaque', ...encodeSecret({ group, kind }, object) };
  if (kind !== 'CustomResourceDefinition') return object;
  const conditions = ['NamesAccepted', 'Established'].map((type) => ({ type, status: 'True' }));
  return { ...object, status: { conditions } };
}

/** `stringData` is written into `data`. */
function encodeSecret({ group, kind }: Pick<ServedKind, 'group' | 'kind'>, object: JsonObject): JsonObject {
  const { stringData, data, ...others } = object;
  if (group !== '' || kind !== 'Secret' || !isMap(stringData)) return object;
  const encode = ([key, value]: [string, Json]): [string, Json] => [key, Buffer.from(textOf(value)).toString('base64')];
  const encoded = Object.fromEntries(Object.entries(stringData).map(encode));
  return { ...others, data: { ...(isMap(data) ? data : {}), ...encoded } };
}

/** RFC 7386. */
function mergePatched(value: Json | undefined, patch: Json): Json {
  if (!isMap(patch)) return patch;
  const base = isMap(value) ? value : {};
  const unchanged = Object.entries(base).filter(([key]) => patch[key] !== null);
  const set = Object.entries(patch).filter(([, child]) => child !== null);
  const changed = set.map(([key, child]): [string, Json] => [key, mergePatched(base[key], child)]);
  return Object.fromEntries([...unchanged, ...changed]);
}

/** RFC 6902, of fields of objects: add, replace, remove and test; and the end of a list, to which something is added. */
function jsonPatched(place: Place, value: Json, patch: Json): Json {
  const copy = structuredClone(value) as Record<string, Json>;
  for (const { op, path, value: given = null } of Array.isArray(patch) ? (patch as readonly JsonObject[]) : []) {
    const [last = '', ...parents] = textOf(path).split('/').slice(1).toReversed();
    const name = last.replaceAll('~1', '/').replaceAll('~0', '~');
    const parent = parents.reduceRight<Json | undefined>((at, part) => (isMap(at) ? at[part] : undefined), copy);
    if (op === 'add' && name === '-' && Array.isArray(parent)) {
      (parent as Json[]).push(given);
      continue;
    }
    const isMissing = !isMap(parent) || (op !== 'add' && parent[name] === undefined);
    if (isMissing || (op === 'test' && !isSame(parent[name], given)))
      throw problem(
        422,
        'Invalid',
        place,
        `the server rejected our request due to an error in our request: ${textOf(path)}`,
      );
    if (op === 'remove') delete (parent as Record<string, Json>)[name];
    else if (op !== 'test') (parent as Record<string, Json>)[name] = given;
  }
  return copy;
}
