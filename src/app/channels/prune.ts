/** Objects that an add-on no longer has: which there are, and deleting them. */
import type { PruneKind } from '../../channel/channel.ts';
import { inApplyOrder, objectKey } from '../../channel/objects.ts';
import { addonId, type RecordedKind } from '../../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { Refused } from '../../kube/call.ts';
import { deleteObject, listObjects, titleOf, type ListOptions, type LiveObject } from '../../kube/objects.ts';
import { groupOf, type Resource, type Served } from '../../kube/resources.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { ADDON_LABEL, AT_ONCE, managerOf, recordedObjects, type ChannelCluster } from './cluster.ts';

export interface PruneRequest {
  readonly addon: { readonly namespace: string; readonly name: string };
  /** Keys of the objects that it has now. */
  readonly kept: ReadonlySet<string>;
  /** Objects that it had. */
  readonly recorded: readonly RecordedKind[];
  readonly prune: 'auto' | readonly PruneKind[] | undefined;
  /** Whether also these are deleted; otherwise they are left, and reported. */
  readonly pruneNamespaces: boolean;
  readonly pruneCrds: boolean;
}

/** An object that is not in the manifest of its add-on. */
export interface Orphan {
  readonly title: string;
  readonly kind: string;
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid: string;
  /** Why it is not deleted; undefined: it is. */
  readonly stays: string | undefined;
}

export interface Orphans {
  readonly orphans: readonly Orphan[];
  /** Kinds that could not be listed. */
  readonly errors: readonly CurlewError[];
}

/** Finds what the add-on has left behind. Objects of other owners are not among it. */
export async function findOrphans(cluster: ChannelCluster, request: PruneRequest): Promise<Orphans> {
  const { addon, kept, prune, recorded } = request;
  const errors: CurlewError[] = [];
  const byKey = new Map<string, Orphan>();
  const lists = await mapLimited(
    await queriesOf(cluster, request, errors),
    async ({ resource, isNamed, ...options }) => {
      try {
        return {
          resource,
          isNamed,
          objects: (await listObjects(cluster.call, resource, { ...options, onlyMetadata: true })) ?? [],
        };
      } catch (error) {
        if (!(error instanceof CurlewError)) throw error;
        cluster.signal.throwIfAborted();
        errors.push(error);
        return { resource, isNamed, objects: [] };
      }
    },
    { width: AT_ONCE, signal: cluster.signal },
  );
  const known = recordedObjects(recorded);
  for (const { resource, isNamed, objects } of lists) {
    for (const object of objects) {
      const { namespace, name, uid } = object.metadata;
      const key = objectKey({ ...resource, namespace, name });
      const isMeant = isNamed || prune === 'auto' || known.has(key);
      if (kept.has(key) || !isMeant || byKey.has(key) || !isOwn(object, addonId(addon), isNamed)) continue;
      const stays = reasonToStay(resource, request);
      byKey.set(key, {
        title: titleOf(resource, { namespace, name }),
        kind: resource.kind,
        resource,
        namespace,
        name,
        uid,
        stays,
      });
    }
  }
  return { orphans: inApplyOrder([...byKey.values()]).toReversed(), errors };
}

interface Query extends ListOptions {
  readonly resource: Resource;
  /** The channel names this kind, with a selector of its own. */
  readonly isNamed: boolean;
}

async function queriesOf(
  cluster: ChannelCluster,
  { addon, prune, recorded }: PruneRequest,
  errors: CurlewError[],
): Promise<readonly Query[]> {
  const labelSelector = `${ADDON_LABEL}=${addonId(addon)}`;
  const known = recorded.map((resource) => ({ resource, labelSelector, isNamed: false }));
  if (prune === undefined) return known;
  const { served, broken } = await cluster.discovery();
  const kinds = oneVersionEach(served);
  if (prune === 'auto') {
    for (const apiVersion of broken) {
      const what = `cannot look for orphans of ${addon.name} in ${apiVersion}: its aggregated API does not respond`;
      // Most such APIs have nothing to delete: only objects that are known to exist there make the add-on fail.
      if (!recorded.some((kind) => kind.apiVersion === apiVersion)) cluster.warnings.push(what);
      else errors.push(new CurlewError('CLUSTER_FAILED', what, { hint: 'kubectl get apiservices shows why' }));
    }
    const usable = kinds.filter(
      ({ apiVersion, verbs }) =>
        !broken.includes(apiVersion) && ['list', 'delete'].every((verb) => verbs.includes(verb)),
    );
    return usable.map((resource) => ({ resource, labelSelector, isNamed: false }));
  }
  const named = prune.flatMap(({ group, kind, namespaces, labelSelector: labels, fieldSelector }): readonly Query[] => {
    const resource = kinds.find((one) => groupOf(one) === group && one.kind === kind);
    if (resource === undefined) {
      const what = `cannot look for orphans of ${addon.name}: the cluster has no kind ${kind} in group "${group}"`;
      errors.push(new CurlewError('CLUSTER_FAILED', what, { hint: 'correct prune in the channel' }));
      return [];
    }
    const places = namespaces.length === 0 ? [undefined] : namespaces;
    const selected = {
      labelSelector: labels === '' ? undefined : labels,
      fieldSelector: fieldSelector === '' ? undefined : fieldSelector,
    };
    return places.map((namespace) => ({ resource, namespace, ...selected, isNamed: true }));
  });
  return [...known, ...named];
}

/** The preferred version of each kind. */
function oneVersionEach(served: readonly Served[]): readonly Served[] {
  const kinds = new Map<string, Served>();
  for (const one of served) {
    const key = `${groupOf(one)} ${one.plural}`;
    if (!kinds.has(key)) kinds.set(key, one);
  }
  return [...kinds.values()];
}

/**
 * Does no other owner hold the object? What has an owner is deleted with it; labels are also copied to what controllers make, such as
 * Endpoints, which the add-on does not manage.
 */
function isOwn({ metadata }: LiveObject, id: string, isNamed: boolean): boolean {
  const { ownerReferences, labels, managedFields, deletionTimestamp } = metadata;
  if (ownerReferences.length > 0 || (deletionTimestamp ?? null) !== null) return false;
  const other = labels[ADDON_LABEL];
  if (isNamed) return (other === undefined || other === id) && labels['app.kubernetes.io/managed-by'] !== 'Helm';
  return other === id && managedFields.some(({ manager }) => manager === managerOf(id));
}

function reasonToStay({ kind }: Resource, { prune, pruneNamespaces, pruneCrds }: PruneRequest): string | undefined {
  if (prune === undefined) return 'the channel has no prune for this add-on';
  if (kind === 'Namespace' && !pruneNamespaces) return '--prune-namespaces deletes it, with all that is in it';
  if (kind === 'CustomResourceDefinition' && !pruneCrds) return '--prune-crds deletes it, with all of its objects';
  return undefined;
}

/** Deletes in the order given; what fails does not stop the rest. */
export async function deleteOrphans(
  { call, signal }: Pick<ChannelCluster, 'call' | 'signal'>,
  orphans: readonly Orphan[],
): Promise<{ readonly deleted: readonly Orphan[]; readonly errors: readonly CurlewError[] }> {
  const deleted: Orphan[] = [];
  const errors: CurlewError[] = [];
  for (const orphan of orphans) {
    signal.throwIfAborted();
    if (orphan.stays !== undefined) continue;
    try {
      await deleteObject(call, orphan.resource, orphan);
      deleted.push(orphan);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      errors.push(error);
    }
  }
  return { deleted, errors };
}
