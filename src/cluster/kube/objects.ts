/** Objects of a cluster: lists in pages, server-side apply, deletion. */
import * as v from 'valibot';
import { CurlewError } from '../../core/errors.ts';
import { exactJson } from '../../core/json.ts';
import { checked, parsed, type Read } from '../../core/schema.ts';
import type { Call } from './call.ts';
import { NAMESPACES } from './core-kinds.ts';
import { TooLong } from './exchange.ts';
import { apiPath, type ApiPath } from './path.ts';
import type { FieldConflict } from './problem.ts';
import { collectionPath, objectPath, withQuery, type Resource } from './resources.ts';

/** Which object of a kind. */
export interface Named {
  readonly namespace?: string | undefined;
  readonly name: string;
}

const texts = v.optional(v.record(v.string(), v.string()), {});
const metadataSchema = v.object({
  name: v.optional(v.string(), ''),
  generateName: v.optional(v.string()),
  namespace: v.optional(v.string()),
  creationTimestamp: v.optional(v.nullable(v.string())),
  uid: v.optional(v.string(), ''),
  resourceVersion: v.optional(v.string(), ''),
  generation: v.optional(v.number()),
  deletionTimestamp: v.optional(v.nullable(v.string())),
  labels: texts,
  annotations: texts,
  finalizers: v.optional(v.array(v.string()), []),
  ownerReferences: v.optional(
    v.array(
      v.object({
        apiVersion: v.optional(v.string(), ''),
        kind: v.string(),
        name: v.string(),
        uid: v.optional(v.string(), ''),
        controller: v.exactOptional(v.boolean()),
      }),
    ),
    [],
  ),
  managedFields: v.optional(
    v.array(
      v.object({
        manager: v.optional(v.string(), ''),
        operation: v.optional(v.string(), ''),
        apiVersion: v.optional(v.string()),
        fieldsType: v.optional(v.string()),
        subresource: v.optional(v.string(), ''),
        time: v.optional(v.string()),
        fieldsV1: v.optional(v.unknown()),
      }),
    ),
    [],
  ),
});
const objectSchema = v.looseObject({ metadata: metadataSchema });
const listSchema = v.object({
  metadata: v.optional(
    v.object({ continue: v.optional(v.string(), ''), resourceVersion: v.optional(v.string(), '') }),
    { continue: '', resourceVersion: '' },
  ),
  items: v.optional(v.nullable(v.array(v.unknown()))),
});

export type ApiMeta = Read<typeof metadataSchema>;

/** An object from the server; `metadata` has been checked. */
export interface LiveObject {
  readonly metadata: ApiMeta;
  readonly [field: string]: unknown;
}

export interface ListOptions {
  /** Only objects of this namespace; without it, of all. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Without spec, status and data. */
  readonly onlyMetadata?: boolean;
}

const PAGE = 500;
/** Page size of whole objects: a page of ordinary ones is a megabyte, which takes some twenty in memory. */
const WHOLE_PAGE = 100;
/** Page size of objects so large that a page is longer than a response may be. */
const SMALL_PAGE = 20;
/** A list whose pages cannot be continued begins again; the changes of a busy cluster must not make that endless. */
const MAX_STARTS = 5;
/** Maximum objects of one list. A cluster with more needs queries by namespace or label; a broken server never ends its list. */
export const MAX_OBJECTS = 100_000;
const MAX_BYTES = 256 << 20;
const JSON_TYPE = 'application/json';

function metadataType(kind: string): string {
  return `${JSON_TYPE};as=${kind};g=meta.k8s.io;v=v1,${JSON_TYPE}`;
}

/** The error for a response that does not fit its schema. */
export function unreadable(doing: string): (what: string) => CurlewError {
  return (what) => new CurlewError('CLUSTER_FAILED', `cannot ${doing}: the response has ${what}`);
}

/** `doing` begins the error for what is no object. */
export function readObject(value: unknown, doing: string): LiveObject {
  const metadata = checked(objectSchema, value, unreadable(doing));
  return { ...(value as object), metadata: v.parse(metadataSchema, metadata.metadata) };
}

/**
 * All objects of a kind, in pages. A list that expires between two pages (410) begins again. Undefined if the server does not
 * serve the kind.
 */
export async function listObjects(
  call: Call,
  resource: Resource,
  options: ListOptions = {},
): Promise<readonly LiveObject[] | undefined> {
  return mapObjects(call, resource, options, (object) => object);
}

/** {@link listObjects}, of which only what `look` returns is kept: whole objects may be large. */
export async function mapObjects<T>(
  call: Call,
  resource: Resource,
  options: ListOptions,
  look: (object: LiveObject) => T,
): Promise<readonly T[] | undefined> {
  return (await listVersion(call, resource, options, look))?.objects;
}

/** {@link mapObjects}, with the resource version at which the list is true. */
export async function listVersion<T>(
  call: Call,
  resource: Resource,
  { namespace, labelSelector, fieldSelector, onlyMetadata = false }: ListOptions,
  look: (object: LiveObject) => T,
): Promise<{ readonly objects: readonly T[]; readonly version: string } | undefined> {
  const doing = `list ${resource.plural}`;
  const path = collectionPath(resource, namespace);
  const accept = onlyMetadata ? metadataType('PartialObjectMetadataList') : JSON_TYPE;
  let limit = onlyMetadata ? PAGE : WHOLE_PAGE;
  for (let starts = 0; starts < MAX_STARTS; starts += 1) {
    const objects: T[] = [];
    let bytes = 0;
    let next: string | undefined;
    let version = '';
    do {
      const query = { limit, continue: next, labelSelector, fieldSelector };
      const answer = await call(doing, { verb: 'get', path: withQuery(path, query), accept }).catch(
        (error: unknown) => {
          if (error instanceof TooLong && limit > SMALL_PAGE) return { outcome: 'too long' } as const;
          throw error;
        },
      );
      if (answer.outcome === 'too long') limit = SMALL_PAGE;
      if (answer.outcome === 'too long') break;
      if (answer.outcome === 'expired') break;
      if (answer.outcome !== 'done') return undefined;
      const page = parsed(listSchema, answer.value, unreadable(doing));
      objects.push(...(page.items ?? []).map((item) => look(readObject(item, doing))));
      bytes += answer.bytes;
      const isStuck = page.metadata.continue !== '' && page.metadata.continue === next;
      if (isStuck || objects.length > MAX_OBJECTS || bytes > MAX_BYTES) throw endless(doing, isStuck);
      next = page.metadata.continue;
      version = page.metadata.resourceVersion;
    } while (next !== '');
    if (next === '') return { objects, version };
  }
  throw new CurlewError('CLUSTER_FAILED', `cannot ${doing}: the list expired ${MAX_STARTS} times before its end`, {
    hint: 'run the same command again',
  });
}

function endless(doing: string, isStuck: boolean): CurlewError {
  const limit = `the list has more than ${MAX_OBJECTS} objects or ${MAX_BYTES} bytes`;
  return new CurlewError(
    'CLUSTER_FAILED',
    `cannot ${doing}: ${isStuck ? 'the server returns the same page again' : limit}`,
    { hint: 'kubectl get with --chunk-size shows what the server returns' },
  );
}

export async function getObject(
  call: Call,
  resource: Resource,
  named: Named,
  { onlyMetadata = false }: Pick<ListOptions, 'onlyMetadata'> = {},
): Promise<LiveObject | undefined> {
  const doing = `read ${titleOf(resource, named)}`;
  const accept = onlyMetadata ? metadataType('PartialObjectMetadata') : JSON_TYPE;
  const answer = await call(doing, { verb: 'get', path: objectPath(resource, named), accept });
  return answer.outcome === 'done' ? readObject(answer.value, doing) : undefined;
}

/** `Deployment web/frontend` */
export function titleOf({ kind }: Pick<Resource, 'kind'>, { namespace, name }: Named): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}

const FIELD_MANAGER = 'curlew';

interface ApplyOptions {
  /** Name under which the fields of the object are owned; default: that of all that is no add-on. */
  readonly manager?: string;
  /** Takes fields from other managers. */
  readonly force?: boolean;
  /** The server checks and defaults the object, and stores nothing. */
  readonly dryRun?: boolean;
}

export type ApplyResult =
  | { readonly outcome: 'applied'; readonly object: LiveObject }
  | { readonly outcome: 'conflict'; readonly message: string; readonly fields: readonly FieldConflict[] }
  /** The namespace or the kind does not exist. */
  | { readonly outcome: 'not found' };

/** Server-side apply of one object. */
export async function applyObject(
  call: Call,
  resource: Resource,
  object: Named & { readonly value: object },
  { manager = FIELD_MANAGER, force = false, dryRun = false }: ApplyOptions,
): Promise<ApplyResult> {
  const doing = `apply ${titleOf(resource, object)}`;
  const query = { fieldManager: manager, force: String(force), dryRun: dryRun ? 'All' : undefined };
  const path = withQuery(objectPath(resource, object), query);
  const answer = await call(doing, { verb: 'apply', path, document: exactJson(object.value) });
  if (answer.outcome === 'done') return { outcome: 'applied', object: readObject(answer.value, doing) };
  if (answer.outcome === 'conflict') return answer;
  return { outcome: 'not found' };
}

/**
 * Deletes an object, and what it owns in the background. With a `uid`, only that object: one that was created again under the
 * same name stays. True if it was there.
 */
export async function deleteObject(
  call: Call,
  resource: Resource,
  object: Named & { readonly uid?: string | undefined },
): Promise<boolean> {
  const { uid } = object;
  const options = { propagationPolicy: 'Background', ...(uid === undefined ? {} : { preconditions: { uid } }) };
  const document = JSON.stringify({ kind: 'DeleteOptions', apiVersion: 'v1', ...options });
  const answer = await call(`delete ${titleOf(resource, object)}`, {
    verb: 'delete',
    path: objectPath(resource, object),
    document,
  });
  return answer.outcome === 'done';
}

/** Sets fields by a JSON merge patch; null removes one. Undefined if the object does not exist. */
export async function mergeObject(
  call: Call,
  resource: Resource,
  named: Named,
  change: object,
): Promise<LiveObject | undefined> {
  const doing = `change ${titleOf(resource, named)}`;
  const path = withQuery(objectPath(resource, named), { fieldManager: FIELD_MANAGER });
  const answer = await call(doing, { verb: 'merge', path, document: JSON.stringify(change) });
  return answer.outcome === 'done' ? readObject(answer.value, doing) : undefined;
}

export interface PatchOptions {
  readonly operations: readonly object[];
  readonly dryRun?: boolean;
  readonly subresource?: 'status' | 'approval' | undefined;
}

/** Creates an object, whose `value` is the rest of it. Undefined if it exists, or its namespace or kind does not. */
export async function createObject(
  call: Call,
  resource: Resource,
  { namespace, name, value }: Named & { readonly value: object },
): Promise<LiveObject | undefined> {
  const { apiVersion, kind } = resource;
  const document = exactJson({ apiVersion, kind, metadata: { namespace, name }, ...value });
  const doing = `create ${titleOf(resource, { namespace, name })}`;
  const path = withQuery(collectionPath(resource, namespace), { fieldManager: FIELD_MANAGER });
  const answer = await call(doing, { verb: 'create', path, document });
  return answer.outcome === 'done' ? readObject(answer.value, doing) : undefined;
}

/** Creates a namespace; what exists stays as it is. */
export async function createNamespace(call: Call, name: string): Promise<void> {
  await createObject(call, NAMESPACES, { name, value: {} });
}

/** Changes an object by a JSON patch. Undefined if it does not exist, or is no longer as the patch requires. */
export async function patchObject(
  call: Call,
  resource: Resource,
  named: Named,
  { operations, dryRun = false, subresource }: PatchOptions,
): Promise<LiveObject | undefined> {
  const doing = `${dryRun ? 'apply' : 'change'} ${titleOf(resource, named)}`;
  const query = { fieldManager: FIELD_MANAGER, dryRun: dryRun ? 'All' : undefined };
  const below = subresource === undefined ? '' : apiPath`/${subresource}`;
  const path = withQuery(`${objectPath(resource, named)}${below}` as ApiPath, query);
  const answer = await call(doing, { verb: 'patch', path, document: exactJson(operations) });
  return answer.outcome === 'done' ? readObject(answer.value, doing) : undefined;
}
