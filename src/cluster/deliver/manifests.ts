/** Add-ons that are manifests: their objects are applied by the server, with a field manager of their own. */
import { takesOver } from '../channel/pass.ts';
import { addonId } from '../channel/record.ts';
import { counted, firstOf } from '../../core/counted.ts';
import { CurlewError } from '../../core/errors.ts';
import { fieldsOf, listOf } from '../../core/json.ts';
import { Refused } from '../kube/call.ts';
import { getObject, type LiveObject } from '../kube/objects.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import { ADDON_LABEL, isPartial, managerOf, type Task } from './addon.ts';
import { applyObjects, previewObjects, type ApplyOptions, type ObjectPreview } from './apply.ts';
import type { Deliverer, Delivered, Desired } from './deliverer.ts';
import { requireNamespaces, type Delivery } from './delivery.ts';
import { chosenObjects, titleOfObject, type AddonObject } from './addon-objects.ts';
import { lookAtObjects, type Ownership } from './observe.ts';
import { changedObjects, deletion, isDeleted, outcomeOf, retainedOrphan, troubleOf } from './outcome.ts';
import { deleteOrphans, findOrphans, leftKinds, type Orphan, type Orphans } from './prune.ts';
import { joinKinds, recordedKinds, recordedObjects } from './records.ts';
import { timeoutOf } from './request.ts';

interface DesiredManifest extends Desired {
  readonly objects: readonly AddonObject[];
  readonly previews: readonly ObjectPreview[];
  readonly pruning: Orphans;
}

/** A content would take most objects of an add-on with it, and no one has approved that: nothing was changed, and no record says so. */
export class HeldDeletion extends CurlewError {}

const NO_ORPHANS: Orphans = { orphans: [], errors: [], unread: [] };

const BY_LABEL: Ownership = {
  labelSelector: ADDON_LABEL,
  ownerIn: ({ labels }) => labels[ADDON_LABEL],
  ownerOf: ({ namespace, addon: name }) => addonId({ namespace, name }),
  managerOf: (owner) => managerOf(owner ?? ''),
};

export const deliveredManifests: Deliverer<DesiredManifest> = {
  desired: async (delivery, task) => {
    const { addon } = task;
    const { objects, hash } = await delivery.manifest(task);
    const chosen = chosenObjects(objects, task);
    delivery.bringNamespaces(objects);
    requireNamespaces(addon, chosen, delivery.namespaces);
    const { pruning, held } = await leavingOf(delivery, task, objects);
    if (held !== undefined) throw held;
    const owners = await delivery.owners();
    const formerOf = (object: AddonObject, live: LiveObject): readonly string[] =>
      owners.formerOf(object, live, { ...addon, takesOver: takesOver(delivery.request, addon.name) });
    const seen = await previewObjects(delivery.cluster, chosen, {
      id: addonId(addon),
      ...rightsOf(delivery, task),
      formerOf,
    });
    const previews = await withoutFreed(delivery.cluster, seen, pruning.orphans);
    const refused = previews.flatMap(({ error }) => error ?? []);
    const close = async (): Promise<void> => Promise.resolve();
    return { hash, begun: { objects }, refused, objects, previews, pruning, [Symbol.asyncDispose]: close };
  },

  preview: async (delivery, task) => {
    if (task.action === 'none') {
      const { objects } = await delivery.manifest(task);
      const changed = objects.filter((object) => task.look.changed.includes(titleOfObject(object)));
      const shown = { id: addonId(task.addon), force: true, keep: false, handOver: 'never' } as const;
      return outcomeOf('unchanged', { drift: changedObjects(await previewObjects(delivery.cluster, changed, shown)) });
    }
    await using desired = await deliveredManifests.desired(delivery, task);
    const { previews, pruning, refused } = desired;
    const errors = [...refused, ...pruning.errors];
    return outcomeOf(errors.length > 0 ? 'failed' : 'planned', {
      objects: [...changedObjects(previews), ...pruning.orphans.filter(isDeleted).map(deletion)],
      orphans: pruning.orphans.flatMap(retainedOrphan),
      errors: errors.map(troubleOf),
    });
  },

  deliver: async (delivery, task, { desired, report }): Promise<Delivered> => {
    const { cluster, request } = delivery;
    const { addon, record } = task;
    const { objects, previews, pruning } = desired;
    const timeoutMs = timeoutOf(request);
    const options = { ...rightsOf(delivery, task), id: addonId(addon), timeoutMs, report };
    const toApply = previews.map(({ object, value, former = [], takesFields }) => {
      return { ...object, value, former, takesFields };
    });
    let { applied, errors } = await applyObjects(cluster, toApply, options);
    const pruned = await deleteOrphans(cluster, pruning, { timeoutMs });
    // What was deleted may have been in the way.
    if (errors.length > 0 && pruned.deleted.length > 0)
      ({ applied, errors } = await applyObjects(cluster, toApply, options));
    const now = recordedKinds(applied, managerOf(addonId(addon)));
    return {
      applied,
      objects,
      changes: [...changedObjects(previews), ...pruned.deleted.map(deletion)],
      orphans: pruned.staying.flatMap(retainedOrphan),
      errors: [...errors, ...pruning.errors, ...pruned.errors],
      gone: new Set(pruned.deleted.map(({ key }) => key)),
      kinds: isPartial(task) ? joinKinds(now, record?.objects ?? []) : now,
      orphanKinds: isPartial(task) ? record?.orphans : leftKinds(cluster, addon, pruned.orphans),
      isNowhere: applied.length === 0,
    };
  },

  remove: async ({ cluster, request }, _record, pruning) =>
    deleteOrphans(cluster, pruning, { timeoutMs: timeoutOf(request) }),

  observe: async (cluster, records) => lookAtObjects(cluster, records, BY_LABEL),
};

function rightsOf(
  { request }: Delivery,
  { addon: { compat, drift }, action }: Task,
): Pick<ApplyOptions, 'force' | 'keep' | 'handOver'> {
  const force = compat !== 'native' || drift === 'Revert' || action === 'revert' || request.forceConflicts === true;
  const keep = !force && drift === 'Keep';
  return { force, keep, handOver: keep ? 'never' : compat === 'native' ? 'first' : 'always' };
}

async function orphansOf(
  delivery: Delivery,
  { addon, record, installed }: Task,
  objects: readonly AddonObject[],
): Promise<Orphans> {
  const owners = await delivery.owners();
  const { pruneNamespaces = false, pruneCrds = false } = delivery.request;
  return findOrphans(delivery.cluster, {
    addon,
    compat: addon.compat,
    keptKeys: new Set(objects.map(({ key }) => key)),
    recorded: joinKinds(record?.objects ?? [], record?.orphans ?? []),
    prune: addon.prune,
    isFirst: installed === undefined,
    movesTo: (key) => owners.movesTo(key, addon),
    pruneNamespaces,
    pruneCrds,
    // A list of kinds names them.
    pruneClaims: typeof addon.prune === 'object',
  });
}

const LEAST_OBJECTS = 10;
const MAX_NAMED = 3;

/** What the objects of an add-on leave behind, and why its delivery waits for an approval, if it does. Changes nothing. */
export async function leavingOf(
  delivery: Delivery,
  task: Task,
  objects: readonly AddonObject[],
): Promise<{ readonly pruning: Orphans; readonly held: HeldDeletion | undefined }> {
  const pruning = isPartial(task) ? NO_ORPHANS : await orphansOf(delivery, task, objects);
  return { pruning, held: task.addon.guardsObjects === true ? heldBy(task, objects, pruning) : undefined };
}

/** For a content that has none of the objects that are there, or less than half of ten or more. What has begun continues. */
function heldBy(
  { addon, record }: Task,
  objects: readonly AddonObject[],
  { orphans }: Orphans,
): HeldDeletion | undefined {
  const had = recordedObjects(record?.objects ?? []);
  const lost = orphans.filter((one) => isDeleted(one) && had.has(one.key)).map(({ title }) => title);
  const isNone = lost.length > 0 && !objects.some(({ key }) => had.has(key));
  const isMost = had.size >= LEAST_OBJECTS && lost.length * 2 > had.size;
  if ((!isNone && !isMost) || record?.desired?.id === addon.id) return undefined;
  const what = `it would delete ${lost.length} of its ${counted(had.size, 'object')}: ${firstOf(lost, MAX_NAMED)}`;
  return new HeldDeletion('CLUSTER_FAILED', `${what}; approve the deletions if they are meant`);
}

/** `Invalid value: 30017: provided port is already allocated` */
const TAKEN = /\bprovided (?:port|IP) is already allocated\b/;

/**
 * Objects that are not valid only because of one that is about to be pruned, which has their port or their address, lose their error:
 * they are applied after it has been deleted, which is the order of kops. Any other refusal remains.
 */
async function withoutFreed(
  { call }: Pick<ChannelCluster, 'call'>,
  previews: readonly ObjectPreview[],
  orphans: readonly Orphan[],
): Promise<readonly ObjectPreview[]> {
  const causes = ({ error }: ObjectPreview): Refused['causes'] => (error instanceof Refused ? error.causes : []);
  if (!previews.some((one) => causes(one).some(({ message }) => TAKEN.test(message)))) return previews;
  const services = orphans.filter(({ kind, stays }) => kind === 'Service' && stays === undefined);
  const freed = new Set<string>();
  for (const { resource, ...named } of services)
    for (const one of takenBy(await getObject(call, resource, named))) freed.add(one);
  const isFree = ({ message }: { readonly message: string }): boolean =>
    TAKEN.test(message) && message.split(/[\s"[\],]+|:(?:\s|$)/).some((word) => freed.has(word));
  return previews.map((one) =>
    causes(one).length > 0 && causes(one).every(isFree) ? { ...one, error: undefined } : one,
  );
}

/** Ports and addresses that only one Service may have. */
function takenBy(service: LiveObject | undefined): readonly string[] {
  const spec = fieldsOf(service?.['spec']);
  const ports = listOf(spec['ports']).map((port) => fieldsOf(port)['nodePort']);
  return [...ports, spec['healthCheckNodePort'], ...listOf(spec['clusterIPs'])].flatMap((one) =>
    typeof one === 'string' || typeof one === 'number' ? [String(one)] : [],
  );
}
