/** Removes an add-on from a cluster: its objects, then its record. */
import { recordKey } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { charts } from './charts.ts';
import type { RemovalTools } from './deliverer.ts';
import { deliveredManifests } from './manifests.ts';
import { isDeleted, retainedOrphan, troubleOf, type Outcome } from './outcome.ts';
import { findOrphans, type Orphan } from './prune.ts';
import { annotate, forgetRecord, joinKinds } from './records.ts';

export interface AddonRemoval extends Pick<Outcome, 'orphans' | 'errors'> {
  /** Objects that are, or would be, deleted. */
  readonly objects: readonly string[];
  readonly isDone: boolean;
}

/**
 * Deletes the objects of an add-on in the reverse order of their application, then its record, so that an interrupted removal
 * continues; a chart is uninstalled by helm. What is not the add-on's any more stays, and is reported. The record stays as long as
 * something of the add-on does. `isReal: false` only finds out, and changes nothing.
 */
export async function removeDelivered(
  tools: RemovalTools,
  named: { readonly namespace: string; readonly name: string },
  { isReal }: { readonly isReal: boolean },
): Promise<AddonRemoval> {
  const { cluster, request } = tools;
  const record = cluster.facts.records.get(recordKey(named.namespace, named.name));
  const { release, objects: recorded = [], orphans = [] } = record ?? {};
  const pruning = await findOrphans(cluster, {
    addon: named,
    compat: 'native',
    keptKeys: new Set(),
    recorded: joinKinds(recorded, orphans),
    release,
    prune: release === undefined ? 'auto' : undefined,
    isFirst: false,
    movesTo: () => undefined,
    pruneNamespaces: request.pruneNamespaces === true,
    pruneCrds: request.pruneCrds === true,
    pruneClaims: true,
  });
  if (!isReal) {
    const objects = pruning.orphans.filter(isDeleted).map(({ title }) => title);
    const orphans = pruning.orphans.flatMap(retainedOrphan);
    return { objects, orphans, errors: pruning.errors.map(troubleOf), isDone: false };
  }
  const { deleted, staying, errors } = await (release === undefined ? deliveredManifests : charts).remove(
    tools,
    { release },
    pruning,
  );
  const going = staying.filter(({ isGoing }) => isGoing);
  const failures = [...pruning.errors, ...errors, ...going.map(goingError)];
  const isDone = failures.length === 0;
  // A record that is gone could not say what is still to be deleted.
  if (isDone) {
    await annotate(cluster, { ...named, compat: 'native' }, undefined);
    await forgetRecord(cluster, named);
  }
  return {
    objects: deleted.map(({ title }) => title),
    orphans: staying.filter(({ isGoing }) => !isGoing).flatMap(retainedOrphan),
    errors: failures.map(troubleOf),
    isDone,
  };
}

function goingError({ title, stays }: Orphan): CurlewError {
  return new CurlewError('CLUSTER_FAILED', `${title} is ${stays}`, {
    hint: 'run the same command again when it is gone; until then, the record is kept',
  });
}
