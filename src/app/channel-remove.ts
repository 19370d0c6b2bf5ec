/** Removes an add-on of a channel from a cluster: its objects, then its record. */
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { titleOf } from '../kube/objects.ts';
import { holdCluster, openChannelCluster, type ChannelCluster, type ClusterRequest } from '../deliver/cluster.ts';
import { annotate, forgetRecord, joinKinds } from '../deliver/records.ts';
import { uninstallRelease } from '../deliver/release.ts';
import type { HelmRequest } from '../deliver/helm.ts';
import { deleteOrphans, findOrphans, type Orphan } from '../deliver/prune.ts';
import { isDeleted, stayingOrphan, troubleOf, type Trouble } from '../deliver/outcome.ts';
import type { Context } from '../core/context.ts';

/** Of the wait until deleted objects are gone. */
const WAIT_MS = 30_000;

export interface ChannelRemoveRequest extends ClusterRequest, HelmRequest {
  readonly addon: string;
  /** Namespace of its record, if several have one. */
  readonly namespace?: string | undefined;
  readonly pruneNamespaces?: boolean | undefined;
  readonly pruneCrds?: boolean | undefined;
}

export interface ChannelRemoval {
  readonly addon: string;
  readonly namespace: string;
  readonly server: string;
  /** Objects that are, or would be, deleted. */
  readonly objects: readonly string[];
  readonly orphans: readonly { readonly object: string; readonly why: string }[];
  readonly errors: readonly Trouble[];
  readonly isDone: boolean;
}

/** What {@link removeFromCluster} would do; changes nothing. */
export async function planRemoval(request: ChannelRemoveRequest, context: Context): Promise<ChannelRemoval> {
  return remove(request, context, false);
}

/**
 * Deletes the objects of an add-on in the reverse order of their application, then its record, so that an interrupted removal
 * continues; a chart is uninstalled by helm. Namespaces and CustomResourceDefinitions stay unless they are asked for. `NOT_FOUND` if nothing is recorded.
 */
export async function removeFromCluster(request: ChannelRemoveRequest, context: Context): Promise<ChannelRemoval> {
  return remove(request, context, true);
}

async function remove(request: ChannelRemoveRequest, context: Context, isReal: boolean): Promise<ChannelRemoval> {
  const { addon } = request;
  const first = await openChannelCluster(request, context);
  await using held = isReal ? await holdCluster(first, { doing: `remove ${addon}`, context }) : undefined;
  const cluster = held?.cluster ?? first;
  const { annotations, records } = cluster.facts;
  const keys = [...new Set([...records.keys(), ...annotations.keys()])];
  const own = keys.filter(
    (key) => key.endsWith(`:${addon}`) && (request.namespace ?? key.split(':')[0]) === key.split(':')[0],
  );
  const [key, second] = own;
  if (key === undefined) {
    const near = nearest(
      addon,
      keys.map((one) => one.split(':')[1] ?? ''),
    );
    throw new CurlewError('NOT_FOUND', `cannot remove ${addon}: the cluster has no record of it`, {
      hint: near === undefined ? 'curlew channel status lists the add-ons' : `did you mean "${near}"?`,
    });
  }
  const [namespace = ''] = key.split(':');
  if (second !== undefined) {
    throw new CurlewError('USAGE', `cannot remove ${addon}: several namespaces have a record of it`, {
      hint: `add --namespace with one of ${own.map((one) => one.split(':')[0]).join(', ')}`,
    });
  }
  const { release, objects: recorded = [], orphans: left = [] } = records.get(key) ?? {};
  if (release !== undefined) {
    const removed = { addon, namespace, server: cluster.server, orphans: [], errors: [] };
    const objects = recorded.flatMap((kind) => kind.objects.map((object) => titleOf(kind, object)));
    if (!isReal) return { ...removed, objects, isDone: false };
    await uninstallRelease(cluster, release, { request, context });
    await forget(cluster, { namespace, addon });
    return { ...removed, objects, isDone: true };
  }
  const found = await findOrphans(cluster, {
    addon: { namespace, name: addon },
    compat: 'native',
    kept: new Set(),
    recorded: joinKinds(recorded, left),
    prune: 'auto',
    isFirst: false,
    movesTo: () => undefined,
    pruneNamespaces: request.pruneNamespaces === true,
    pruneCrds: request.pruneCrds === true,
  });
  const result = { addon, namespace, server: cluster.server };
  if (!isReal) {
    const objects = found.orphans.filter(isDeleted).map(({ title }) => title);
    const orphans = found.orphans.flatMap(stayingOrphan);
    return { ...result, objects, orphans, errors: found.errors.map(troubleOf), isDone: false };
  }
  const { deleted, staying, errors } = await deleteOrphans(cluster, found, { timeoutMs: WAIT_MS });
  const going = staying.filter(({ isGoing }) => isGoing).map(goingError);
  const failures = [...found.errors, ...errors, ...going];
  // A record that is gone could not say what is still to be deleted.
  if (failures.length === 0) await forget(cluster, { namespace, addon });
  return {
    ...result,
    objects: deleted.map(({ title }) => title),
    orphans: staying.filter(({ isGoing }) => !isGoing).flatMap(stayingOrphan),
    errors: failures.map(troubleOf),
    isDone: failures.length === 0,
  };
}

function goingError({ title, stays }: Orphan): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `${title} is ${stays}`, {
    hint: 'run the same command again when it is gone; until then, the record is kept',
  });
}

async function forget(
  cluster: ChannelCluster,
  { namespace, addon }: { readonly namespace: string; readonly addon: string },
): Promise<void> {
  const named = { namespace, name: addon };
  await annotate(cluster, { ...named, compat: 'native' }, undefined);
  await forgetRecord(cluster, named);
}
