/** What is recorded of an add-on in its cluster: its state, its objects, and the annotation that says what is installed. */
import { objectKey } from '../channel/objects.ts';
import {
  annotationKey,
  encodeAnnotation,
  encodeRecords,
  decodeRecords,
  recordKey,
  type AddonRecord,
  type RecordedKind,
  type Revision,
} from '../channel/record.ts';
import { CurlewError, redact } from '../../core/errors.ts';
import { CHANNEL_RECORDS } from '../../core/layout.ts';
import { mergeObject, type LiveObject } from '../kube/objects.ts';
import type { Resource } from '../kube/resources.ts';
import type { Addon, Task } from './addon.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { valuesDigest } from './observe.ts';
import { NAMESPACES } from '../kube/core-kinds.ts';

/** The add-on as it is installed. */
export function recordRevision(
  { kubernetes }: Pick<ChannelCluster, 'kubernetes'>,
  { origin, version, id }: Addon,
  hash: string,
): Revision {
  return {
    channel: redact(origin),
    ...(version === undefined ? {} : { version }),
    ...(id === '' ? {} : { id }),
    ...(hash === '' ? {} : { hash }),
    kubernetes,
  };
}

/** Changes the full record; what was applied before goes to its history. Other writers' records are kept. */
export async function recordState(
  { maps, api }: Pick<ChannelCluster, 'maps' | 'api'>,
  { addon: { name: addon, namespace, owner }, record }: Pick<Task, 'addon' | 'record'>,
  change: Partial<AddonRecord> & Pick<AddonRecord, 'state' | 'reason'>,
): Promise<void> {
  const now = api.now().toISOString();
  const before = record?.applied;
  const { applied } = change;
  const isOther = before?.hash !== applied?.hash || before?.id !== applied?.id;
  const isNew = applied !== undefined && before !== undefined && isOther;
  const history = [...(isNew ? [{ revision: before, until: now }] : []), ...(record?.history ?? [])];
  const next = { ...record, addon, namespace, owner, since: now, ...change, history };
  await maps.change(CHANNEL_RECORDS, (data = {}) => ({ ...data, ...encodeRecords([next]) }));
}

/** Only the first line of the reason: the others may be logs of pods, which whoever reads the record may not read. */
export function failedState({ message }: Pick<CurlewError, 'message'>): Pick<AddonRecord, 'state' | 'reason'> {
  return { state: 'Failed', reason: message.split('\n')[0] ?? '' };
}

/**
 * Notes a failure in the record of the add-on, which also has what was begun. Nothing is in the cluster of an add-on without a
 * record, and it gets none; the record of another owner stays.
 */
export async function recordFailure(
  { maps, api }: Pick<ChannelCluster, 'maps' | 'api'>,
  { namespace, name, owner }: Pick<Addon, 'namespace' | 'name' | 'owner'>,
  error: CurlewError,
): Promise<void> {
  await maps.change(CHANNEL_RECORDS, (data = {}) => {
    const record = decodeRecords(data).records.get(recordKey(namespace, name));
    if (record?.owner !== owner) return data;
    return { ...data, ...encodeRecords([{ ...record, ...failedState(error), since: api.now().toISOString() }]) };
  });
}

type Named = Pick<Addon, 'namespace' | 'name'>;

/** Removes the full record. */
export async function forgetRecord({ maps }: Pick<ChannelCluster, 'maps'>, { namespace, name }: Named): Promise<void> {
  if ((await maps.read(CHANNEL_RECORDS)) === undefined) return;
  await maps.change(CHANNEL_RECORDS, ({ [`${namespace}.${name}`]: _before, ...others } = {}) => others);
}

/** The annotation that says what is installed: written last, and removed first. */
export async function annotate(
  { call }: Pick<ChannelCluster, 'call'>,
  { namespace, name, compat }: Named & Pick<Addon, 'compat'>,
  installed: Revision | undefined,
): Promise<void> {
  const value = installed === undefined ? null : encodeAnnotation(installed, compat);
  const change = { metadata: { annotations: { [annotationKey(name)]: value } } };
  const merged = await mergeObject(call, NAMESPACES, { name: namespace }, change);
  if (merged !== undefined || value === null) return;
  throw new CurlewError('CLUSTER_FAILED', `cannot record ${name}: namespace ${namespace} does not exist`, {
    hint: `create the namespace, or correct namespace in the channel, then run the same command again`,
  });
}

/** An object, with how it is requested. */
export interface ObjectRef {
  readonly resource: Resource;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** An object that was applied. */
export interface AppliedObject {
  readonly resource: Resource;
  readonly live: LiveObject;
}

/** An object as records have it: without `owned`, what its manager owns is not known. */
type RecordedObject = ObjectRef & { readonly owned?: string };

/** By kind, for a record. Of two that are the same object, the first counts. */
export function kindsOf(objects: readonly RecordedObject[]): readonly RecordedKind[] {
  const kinds = new Map<string, RecordedKind & { readonly objects: RecordedKind['objects'][number][] }>();
  const seen = new Set<string>();
  for (const object of objects) {
    const { resource, namespace, name, owned = '' } = object;
    const { apiVersion, kind, plural, namespaced } = resource;
    const key = `${apiVersion} ${plural}`;
    const known = kinds.get(key) ?? { apiVersion, kind, plural, namespaced, objects: [] };
    if (!seen.has(keyOf(object)))
      known.objects.push({ ...(namespace === undefined ? {} : { namespace }), name, owned });
    seen.add(keyOf(object));
    if (known.objects.length > 0) kinds.set(key, known);
  }
  return [...kinds.values()];
}

/** With the digests of what `manager` owns. */
export function recordedKinds(applied: readonly AppliedObject[], manager: string): readonly RecordedKind[] {
  const recorded = applied.map(({ resource, live }) => {
    const { namespace, name } = live.metadata;
    return { resource, namespace, name, owned: valuesDigest(live, manager, resource) };
  });
  return kindsOf(recorded);
}

/** Objects that both have are those of `first`. */
export function joinKinds(first: readonly RecordedKind[], second: readonly RecordedKind[]): readonly RecordedKind[] {
  return kindsOf([...recordedObjects(first).values(), ...recordedObjects(second).values()]);
}

/** Recorded objects by what identifies them in the cluster. */
export function recordedObjects(kinds: readonly RecordedKind[]): ReadonlyMap<string, RecordedObject> {
  const objects = kinds.flatMap((resource) => resource.objects.map((one) => ({ resource, ...one })));
  return new Map(objects.map((one) => [keyOf(one), one]));
}

function keyOf({ resource, namespace, name }: ObjectRef): string {
  return objectKey({ ...resource, namespace, name });
}
