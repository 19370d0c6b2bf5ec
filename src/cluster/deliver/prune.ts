/** Objects that an add-on no longer has: which there are, and deleting them. */
import type { Compat, PruneKind } from '../channel/channel.ts';
import { inApplyOrder, objectKey } from '../channel/objects.ts';
import { DELETION_ORPHAN, isBare, protection, prune as selectObjects, type Prunable } from '../channel/prune.ts';
import { addonId, type AddonRecord, type RecordedKind } from '../channel/record.ts';
import { counted } from '../../core/counted.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import { Refused } from '../kube/call.ts';
import { deleteObject, getObject, listObjects, titleOf, type ListOptions, type ApiMeta } from '../kube/objects.ts';
import { groupOf, type ApiKind, type Resource, type Served } from '../kube/resources.ts';
import { repeatUntil } from '../../platform/limit/repeat.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { ADDON_LABEL, managerOf, type Addon } from './addon.ts';
import { AT_ONCE, type ChannelCluster } from './channel-cluster.ts';
import { kindsOf, recordedObjects, type ObjectRef } from './records.ts';

interface PruneRequest {
  readonly addon: { readonly namespace: string; readonly name: string };
  readonly compat: Compat;
  /** Keys of the objects that it has now. */
  readonly keptKeys: ReadonlySet<string>;
  /** Objects that it had, or left behind before. */
  readonly recorded: readonly RecordedKind[];
  /** The release of a chart, whose objects helm deletes. */
  readonly release?: AddonRecord['release'];
  readonly prune: Addon['prune'];
  /** Nothing was installed before. */
  readonly isFirst: boolean;
  /** Why another add-on needs the object with this key. */
  readonly movesTo: (key: string) => string | undefined;
  /** Whether also these are deleted; otherwise they are left, and reported. */
  readonly pruneNamespaces: boolean;
  readonly pruneCrds: boolean;
  readonly pruneClaims: boolean;
}

/** An object that is not in the manifest of its add-on. */
export interface Orphan extends ObjectRef {
  /** What identifies it in the cluster. */
  readonly key: string;
  readonly title: string;
  readonly kind: string;
  readonly uid: string;
  /** Why it is not deleted; undefined: it is. */
  readonly stays: string | undefined;
  /** The add-on has not done with it: the record keeps it until it is gone. */
  readonly isLeft: boolean;
  /** It has been deleted, and finalizers hold it. */
  readonly isGoing: boolean;
}

export interface Orphans {
  readonly orphans: readonly Orphan[];
  /** Objects and kinds that could not be read. */
  readonly errors: readonly CurlewError[];
  /** Recorded objects of which it is not known whether they are still there. */
  readonly unread: readonly ObjectRef[];
}

/**
 * Finds what the add-on has left behind. What is deleted is named by its record; by the rules of kops, the selectors of the channel
 * suffice. What merely has the label of the add-on is reported.
 */
export async function findOrphans(cluster: ChannelCluster, request: PruneRequest): Promise<Orphans> {
  const { keptKeys, prune } = request;
  const errors: CurlewError[] = [];
  const known = new Map([...recordedObjects(request.recorded)].filter(([key]) => !keptKeys.has(key)));
  const listed = await listCandidates(cluster, request, errors);
  const { looked, unread } = await lookAtKnown(cluster, [...known.values()], errors);
  const all = new Map([...looked, ...listed].map((object) => [objectKey(object), object]));
  const kinds = typeof prune === 'object' ? prune : [];
  const selected = new Set(selectObjects({ kinds, keptKeys }, listed).map(objectKey));
  const orphans = [...all].flatMap(([key, object]): readonly Orphan[] => {
    if (keptKeys.has(key)) return [];
    const facts = { isKnown: known.has(key), isSelected: typeof prune === 'string' || selected.has(key) };
    const { stays, isLeft = true } = verdictOf(object, facts, request);
    if (!facts.isKnown && stays !== undefined && !isReported(object, addonId(request.addon))) return [];
    const { metadata, resource, kind, namespace, name } = object;
    return [
      {
        key,
        title: titleOf(resource, object),
        kind,
        resource,
        namespace,
        name,
        uid: metadata.uid,
        stays,
        isLeft: isLeft && (facts.isKnown || stays === undefined),
        isGoing: isBeingDeleted(metadata),
      },
    ];
  });
  return { orphans: inApplyOrder(orphans).toReversed(), errors, unread };
}

interface Facts {
  /** The record names it. */
  readonly isKnown: boolean;
  /** `prune` of the channel means it. */
  readonly isSelected: boolean;
}

/** Why an object stays, and whether the add-on has not done with it. */
function verdictOf(
  { kind, labels, metadata, ...object }: Found,
  { isKnown, isSelected }: Facts,
  { addon, compat, prune, isFirst, movesTo, pruneNamespaces, pruneCrds, pruneClaims, release: own }: PruneRequest,
): { readonly stays: string | undefined; readonly isLeft?: boolean } {
  const id = addonId(addon);
  const label = labels[ADDON_LABEL];
  const [owner] = metadata.ownerReferences;
  if (isBeingDeleted(metadata)) return { stays: stillDeleted(metadata) };
  const release = metadata.annotations['meta.helm.sh/release-name'];
  if (own !== undefined) {
    const isOwn = release === own.name && metadata.annotations['meta.helm.sh/release-namespace'] === own.namespace;
    if (!isOwn) return { stays: `it no longer belongs to the release ${own.namespace}/${own.name}` };
    return { stays: metadata.annotations[KEPT] === 'keep' ? `its chart keeps it (${KEPT})` : undefined };
  }
  const next = movesTo(objectKey({ kind, ...object }));
  if (next !== undefined) return { stays: next, isLeft: label === id };
  if (owner !== undefined) return { stays: `it is deleted with its owner, ${owner.kind} ${owner.name}`, isLeft: false };
  if (label !== undefined && label !== id) return { stays: `it belongs to the add-on ${label}`, isLeft: false };
  if (release !== undefined) return { stays: `it belongs to the Helm release ${release}`, isLeft: false };
  const isSwept = compat !== 'native' && isSelected && typeof prune === 'object' && !isFirst;
  if (isSwept && !isKnown && labels['app.kubernetes.io/managed-by'] === 'Helm') return { stays: 'it belongs to Helm' };
  if (!isSwept) {
    if (!isKnown) return { stays: 'it has the label of this add-on, and the record does not name it' };
    if (label === undefined) return { stays: 'its label of this add-on was removed' };
    if (!metadata.managedFields.some(({ manager }) => manager === managerOf(id)))
      return { stays: 'another program created it again with the label of this add-on' };
  }
  if (metadata.annotations[DELETION_ORPHAN] !== undefined)
    return { stays: `its annotation ${DELETION_ORPHAN} keeps it`, isLeft: false };
  if (prune === undefined) return { stays: 'nothing prunes this add-on (prune)' };
  const reason = protection({ kind, labels, ...object });
  if (reason !== undefined) return { stays: reason };
  if (!isSelected) return { stays: 'prune in the channel does not select it' };
  const way = (option: string): string => (prune === 'recorded' ? 'kubectl delete' : option);
  if (kind === 'Namespace' && !pruneNamespaces)
    return { stays: `${way('--prune-namespaces')} deletes it, with all that is in it` };
  if (kind === 'CustomResourceDefinition' && !pruneCrds)
    return { stays: `${way('--prune-crds')} deletes it, with all of its objects` };
  if (kind === 'PersistentVolumeClaim' && !pruneClaims) return { stays: 'kubectl delete deletes it, with its data' };
  return { stays: undefined };
}

/** Controllers copy labels to what they make of an object. */
function isReported({ kind, labels, metadata }: Found, id: string): boolean {
  const isCopy = kind === 'Endpoints' || metadata.ownerReferences.length > 0 || isBeingDeleted(metadata);
  return labels[ADDON_LABEL] === id && !isCopy;
}

function isBeingDeleted({ deletionTimestamp }: ApiMeta): boolean {
  return (deletionTimestamp ?? null) !== null;
}

function stillDeleted({ finalizers }: ApiMeta): string {
  return `still being deleted${finalizers.length === 0 ? '' : ` (finalizers ${finalizers.join(', ')})`}`;
}

export interface Pruned {
  readonly deleted: readonly Orphan[];
  /** What is still there, and why. */
  readonly staying: readonly Orphan[];
  readonly errors: readonly CurlewError[];
  /** What the next pass must look at again. */
  readonly orphans: readonly ObjectRef[];
}

/** Helm keeps its objects. */
export const KEPT = 'helm.sh/resource-policy';

const MAX_LEFT = 500;

/** For the record. What it has no room for has been reported. */
export function leftKinds(
  { warnings }: Pick<ChannelCluster, 'warnings'>,
  { name }: PruneRequest['addon'],
  orphans: readonly ObjectRef[],
): readonly RecordedKind[] | undefined {
  const more = orphans.length - MAX_LEFT;
  if (more > 0) warnings.push(`the record of ${name} does not keep ${more} of the objects that it has left behind`);
  return orphans.length === 0 ? undefined : kindsOf(orphans.slice(0, MAX_LEFT));
}

const MAX_WAIT_MS = 30_000;
const FIRST_LOOK_MS = 50;
const LOOK_MS = 1000;

/** Deletes in the order given, unless helm has, and waits until the objects are gone; what fails does not stop the rest. */
export async function deleteOrphans(
  cluster: Pick<ChannelCluster, 'call' | 'signal'>,
  { orphans, unread }: Orphans,
  { timeoutMs, byHelm = false }: { readonly timeoutMs: number; readonly byHelm?: boolean },
): Promise<Pruned> {
  const { call, signal } = cluster;
  const deleted: Orphan[] = [];
  const failed: Orphan[] = [];
  const errors: CurlewError[] = [];
  for (const orphan of orphans) {
    signal.throwIfAborted();
    if (orphan.stays !== undefined) continue;
    try {
      if (!byHelm) await deleteObject(call, orphan.resource, orphan);
      deleted.push(orphan);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      errors.push(error);
      failed.push(orphan);
    }
  }
  const there = await waitUntilGone(cluster, deleted, Math.min(timeoutMs, MAX_WAIT_MS));
  const keys = new Set(there.map(({ key }) => key));
  const missed = there.filter(({ isGoing }) => !isGoing);
  failed.push(...missed);
  errors.push(...missed.map(missedError));
  const staying = [...orphans.filter(({ stays }) => stays !== undefined), ...there.filter(({ isGoing }) => isGoing)];
  return {
    deleted: deleted.filter(({ key }) => !keys.has(key)),
    staying,
    errors,
    orphans: [...unread, ...failed, ...staying.filter(({ isLeft }) => isLeft)],
  };
}

function missedError({ title }: Orphan): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `${title} is still there: helm has not deleted it`, {
    hint: 'delete it, then run the same command again; until then, the record is kept',
  });
}

/** Returns objects that still exist when the time is over, or that helm has missed. */
async function waitUntilGone(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  deleted: readonly Orphan[],
  limitMs: number,
): Promise<readonly Orphan[]> {
  const look = async (orphan: Orphan): Promise<readonly Orphan[]> => {
    const object = await getObject(call, orphan.resource, orphan, { onlyMetadata: true });
    if (object === undefined || object.metadata.uid !== orphan.uid) return [];
    return [{ ...orphan, isGoing: isBeingDeleted(object.metadata), stays: stillDeleted(object.metadata) }];
  };
  let orphans = deleted;
  return repeatUntil(
    async () => (orphans = (await mapLimited(orphans, look, { width: AT_ONCE, signal })).flat()),
    (staying) => !staying.some(({ isGoing }) => isGoing),
    { firstMs: FIRST_LOOK_MS, maxMs: LOOK_MS, limitMs, signal },
  );
}

/** An object of the cluster, as far as prune looks at it. */
interface Found extends Prunable {
  readonly resource: Resource;
  readonly metadata: ApiMeta;
}

/** The recorded objects as they are now; those that are gone are not among them. */
async function lookAtKnown(
  cluster: ChannelCluster,
  known: readonly ObjectRef[],
  errors: CurlewError[],
): Promise<{ readonly looked: readonly Found[]; readonly unread: readonly ObjectRef[] }> {
  const { call, signal } = cluster;
  if (known.length === 0) return { looked: [], unread: [] };
  const { served, broken } = await cluster.discovery();
  const unread: ObjectRef[] = [];
  const look = async (ref: ObjectRef): Promise<readonly Found[]> => {
    // The version in which it was recorded may no longer be served.
    const isSame = (one: ApiKind): boolean => one.kind === ref.resource.kind && groupOf(one) === groupOf(ref.resource);
    const resource = served.find((one) => isSame(one) && !broken.includes(one.apiVersion));
    try {
      const isBroken = broken.some((apiVersion) => groupOf({ apiVersion }) === groupOf(ref.resource));
      if (resource === undefined && isBroken) throw brokenApi(titleOf(ref.resource, ref), ref.resource);
      // A kind that is no longer served has no objects.
      if (resource === undefined) return [];
      const object = await getObject(call, resource, ref, { onlyMetadata: true });
      return object === undefined ? [] : [foundObject(resource, object.metadata)];
    } catch (error) {
      requireRefusal(error, signal);
      unread.push(ref);
      errors.push(error);
      return [];
    }
  };
  const looked = await mapLimited(known, look, { width: AT_ONCE, signal });
  return { looked: looked.flat(), unread };
}

function foundObject(resource: Resource, metadata: ApiMeta): Found {
  const { namespace, name, labels } = metadata;
  const { apiVersion, kind } = resource;
  return { apiVersion, kind, namespace, name, labels, resource, metadata };
}

function brokenApi(what: string, { apiVersion }: Resource): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `cannot read ${what}: the aggregated API ${apiVersion} does not respond`, {
    hint: 'kubectl get apiservices shows why',
  });
}

/** Objects that the selectors of the channel mean, and with `auto` those of every kind that have the label of the add-on. */
async function listCandidates(
  cluster: ChannelCluster,
  { addon, prune, compat, isFirst }: PruneRequest,
  errors: CurlewError[],
): Promise<readonly Found[]> {
  if (prune === undefined || prune === 'recorded') return [];
  const { served, broken } = await cluster.discovery();
  const kinds = new Map(served.toReversed().map((one) => [`${groupOf(one)}/${one.kind}`, one]));
  const isUsable = ({ apiVersion, verbs }: Served): boolean =>
    !broken.includes(apiVersion) && ['list', 'delete'].every((verb) => verbs.includes(verb));
  const own = { namespaces: [], labelSelector: `${ADDON_LABEL}=${addonId(addon)}`, fieldSelector: '' };
  const usable = [...kinds.values()].filter(isUsable);
  const all = usable.map((one): PruneKind => ({ group: groupOf(one), kind: one.kind, ...own }));
  const failed: CurlewError[] = [];
  const listKind = async (one: PruneKind): Promise<readonly Found[]> => {
    const { group, kind, namespaces, labelSelector, fieldSelector } = one;
    const resource = kinds.get(`${group}/${kind}`);
    if (resource === undefined) {
      const what = `cannot look for orphans of ${addon.name}: the cluster has no kind ${kind} in group "${group}"`;
      failed.push(new CurlewError('CLUSTER_FAILED', what, { hint: 'correct prune in the channel' }));
      return [];
    }
    const selectors = { labelSelector: labelSelector || undefined, fieldSelector: fieldSelector || undefined };
    const objects: Found[] = [];
    for (const namespace of namespaces.length === 0 ? [undefined] : namespaces)
      objects.push(...(await listOne(cluster, { resource, namespace, ...selectors }, failed)));
    if (isBare(one) && compat !== 'native' && !isFirst) {
      const what = `prune of ${addon.name} has no labelSelector and no namespaces for ${kind}`;
      cluster.warnings.push(`${what}: it selects ${objects.length} objects of the whole cluster`);
    }
    return objects;
  };
  const options = { width: AT_ONCE, signal: cluster.signal };
  const lists = await mapLimited(prune === 'auto' ? all : prune, listKind, options);
  const [first] = failed;
  // What the record names is looked at one by one: with auto, nothing is missed that would be deleted.
  if (prune !== 'auto') errors.push(...failed);
  else if (first !== undefined)
    cluster.warnings.push(
      `not all objects of ${addon.name} are known: ${first.message} (${counted(failed.length, 'kind')})`,
    );
  return lists.flat();
}

async function listOne(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  { resource, ...options }: ListOptions & { readonly resource: Resource },
  errors: CurlewError[],
): Promise<readonly Found[]> {
  try {
    const objects = (await listObjects(call, resource, { ...options, onlyMetadata: true })) ?? [];
    return objects.map(({ metadata }) => foundObject(resource, metadata));
  } catch (error) {
    requireRefusal(error, signal);
    errors.push(error);
    return [];
  }
}
