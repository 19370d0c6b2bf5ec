/** Which objects of a cluster prune looks at: those that a record names, and those that a channel selects. */
import { isBare, type Prunable } from '../../channel/prune.ts';
import { addonId } from '../../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { getObject, listObjects, titleOf, type ListOptions, type Metadata } from '../../kube/objects.ts';
import { groupOf, type Resource, type Served } from '../../kube/resources.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { ADDON_LABEL, AT_ONCE, type ChannelCluster, type ObjectRef } from './cluster.ts';
import type { PruneRequest } from './prune.ts';

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
    const isSame = (one: Resource): boolean => one.kind === ref.resource.kind && groupOf(one) === groupOf(ref.resource);
    const resource = served.find(isSame) ?? ref.resource;
    try {
      if (broken.includes(resource.apiVersion)) throw brokenApi(titleOf(resource, ref), resource);
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
  request: PruneRequest,
  errors: CurlewError[],
): Promise<readonly Found[]> {
  const { addon, prune, compat, isFirst } = request;
  if (prune === undefined) return [];
  const { served, broken } = await cluster.discovery();
  const kinds = new Map(served.toReversed().map((one) => [`${groupOf(one)}/${one.kind}`, one]));
  if (prune === 'auto') {
    const isUsable = ({ apiVersion, verbs }: Served): boolean =>
      !broken.includes(apiVersion) && ['list', 'delete'].every((verb) => verbs.includes(verb));
    const labelSelector = `${ADDON_LABEL}=${addonId(addon)}`;
    const unlisted: CurlewError[] = [];
    const usable = [...kinds.values()].filter(isUsable);
    const lists = await mapLimited(
      usable,
      async (resource) => listOne(cluster, { resource, labelSelector }, unlisted),
      { width: AT_ONCE, signal: cluster.signal },
    );
    // What the record names is looked at one by one: here, nothing is missed that would be deleted.
    const [first] = unlisted;
    const more = unlisted.length > 1 ? `; and ${unlisted.length - 1} more kinds` : '';
    if (first !== undefined)
      cluster.warnings.push(`not all objects of ${addon.name} are known: ${first.message}${more}`);
    return lists.flat();
  }
  const lists = await mapLimited(
    prune,
    async (one) => {
      const { group, kind, namespaces, labelSelector, fieldSelector } = one;
      const resource = kinds.get(`${group}/${kind}`);
      if (resource === undefined) {
        const what = `cannot look for orphans of ${addon.name}: the cluster has no kind ${kind} in group "${group}"`;
        errors.push(new CurlewError('CLUSTER_FAILED', what, { hint: 'correct prune in the channel' }));
        return [];
      }
      const found: Found[] = [];
      for (const namespace of namespaces.length === 0 ? [undefined] : namespaces) {
        const selectors = { labelSelector: labelSelector || undefined, fieldSelector: fieldSelector || undefined };
        found.push(...(await listOne(cluster, { resource, namespace, ...selectors }, errors)));
      }
      if (isBare(one) && compat !== 'native' && !isFirst) {
        const what = `prune of ${addon.name} has no labelSelector and no namespaces for ${kind}`;
        cluster.warnings.push(`${what}: it selects ${found.length} objects of the whole cluster`);
      }
      return found;
    },
    { width: AT_ONCE, signal: cluster.signal },
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
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    errors.push(error);
    return [];
  }
}
