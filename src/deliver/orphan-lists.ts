/** Which objects of a cluster prune looks at: those that a record names, and those that a channel selects. */
import type { Compat, Entry, PruneKind } from '../channel/channel.ts';
import { isBare, type Prunable } from '../channel/prune.ts';
import { addonId, type RecordedKind } from '../channel/record.ts';
import { CurlewError } from '../core/errors.ts';
import { getObject, listObjects, titleOf, type ListOptions, type Metadata } from '../kube/objects.ts';
import { groupOf, type Kind, type Resource, type Served } from '../kube/resources.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { ADDON_LABEL, AT_ONCE, type ChannelCluster, type ObjectRef } from './cluster.ts';

export interface PruneRequest {
  readonly addon: { readonly namespace: string; readonly name: string };
  readonly compat: Compat;
  /** Keys of the objects that it has now. */
  readonly kept: ReadonlySet<string>;
  /** Objects that it had, or left behind before. */
  readonly recorded: readonly RecordedKind[];
  readonly prune: Entry['prune'];
  /** Nothing was installed before. */
  readonly isFirst: boolean;
  /** Why another add-on needs the object with this key. */
  readonly movesTo: (key: string) => string | undefined;
  /** Whether also these are deleted; otherwise they are left, and reported. */
  readonly pruneNamespaces: boolean;
  readonly pruneCrds: boolean;
}

/** An object of the cluster, as far as prune looks at it. */
export interface Found extends Prunable {
  readonly resource: Resource;
  readonly metadata: Metadata;
}

/** The recorded objects as they are now; those that are gone are not among them. */
export async function lookAtKnown(
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
    const isSame = (one: Kind): boolean => one.kind === ref.resource.kind && groupOf(one) === groupOf(ref.resource);
    const resource = served.find((one) => isSame(one) && !broken.includes(one.apiVersion));
    try {
      const isBroken = broken.some((apiVersion) => groupOf({ apiVersion }) === groupOf(ref.resource));
      if (resource === undefined && isBroken) throw brokenApi(titleOf(ref.resource, ref), ref.resource);
      // A kind that is no longer served has no objects.
      if (resource === undefined) return [];
      const found = await getObject(call, resource, ref, { onlyMetadata: true });
      return found === undefined ? [] : [foundObject(resource, found.metadata)];
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof CurlewError)) throw error;
      unread.push(ref);
      errors.push(error);
      return [];
    }
  };
  const looked = await mapLimited(known, look, { width: AT_ONCE, signal });
  return { looked: looked.flat(), unread };
}

function foundObject(resource: Resource, metadata: Metadata): Found {
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
export async function listCandidates(
  cluster: ChannelCluster,
  { addon, prune, compat, isFirst }: PruneRequest,
  errors: CurlewError[],
): Promise<readonly Found[]> {
  if (prune === undefined) return [];
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
    const found: Found[] = [];
    for (const namespace of namespaces.length === 0 ? [undefined] : namespaces)
      found.push(...(await listOne(cluster, { resource, namespace, ...selectors }, failed)));
    if (isBare(one) && compat !== 'native' && !isFirst) {
      const what = `prune of ${addon.name} has no labelSelector and no namespaces for ${kind}`;
      cluster.warnings.push(`${what}: it selects ${found.length} objects of the whole cluster`);
    }
    return found;
  };
  const options = { width: AT_ONCE, signal: cluster.signal };
  const lists = await mapLimited(prune === 'auto' ? all : prune, listKind, options);
  const [first] = failed;
  // What the record names is looked at one by one: with auto, nothing is missed that would be deleted.
  if (prune !== 'auto') errors.push(...failed);
  else if (first !== undefined)
    cluster.warnings.push(`not all objects of ${addon.name} are known: ${first.message} (${failed.length} kinds)`);
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
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    errors.push(error);
    return [];
  }
}
