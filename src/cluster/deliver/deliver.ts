/** Delivers add-ons to a cluster: each goes through the same states, whatever it is made from. */
import type { LiveState } from '../channel/pass.ts';
import type { AddonRecord } from '../channel/record.ts';
import { CurlewError } from '../../core/errors.ts';
import { hiding } from '../../core/secret.ts';
import { listObjects, mergeObject, type LiveObject } from '../kube/objects.ts';
import { hiddenIn, isPartial, type Addon, type Task } from './addon.ts';
import { charts } from './charts.ts';
import type { ChannelCluster } from './channel-cluster.ts';
import type { Deliverer, Desired } from './deliverer.ts';
import type { Delivery } from './delivery.ts';
import { waitForHealth } from './health.ts';
import { deliveredManifests, HeldDeletion } from './manifests.ts';
import { outcomeOf, troubleOf, type Outcome } from './outcome.ts';
import { ensurePki } from './pki.ts';
import {
  annotate,
  failedState,
  forgetRecord,
  joinKinds,
  kindsOf,
  recordedObjects,
  recordFailure,
  recordState,
  recordRevision,
} from './records.ts';
import { timeoutOf, type Reporting } from './request.ts';
import { CONTROL_PLANE_LABELS, NODES } from '../kube/core-kinds.ts';

/** What delivering an add-on would change, by server-side dry runs; of one that stays: how it differs. Changes nothing. */
export async function preview(delivery: Delivery, task: Task): Promise<Outcome> {
  const { action, addon, look } = task;
  if (action === 'none' && (look.changed.length === 0 || addon.drift !== 'Warn')) return outcomeOf('unchanged');
  return addon.source?.type === 'chart' ? charts.preview(delivery, task) : deliveredManifests.preview(delivery, task);
}

/**
 * Brings an add-on onto the cluster. The record says `Progressing`, and what may be there, before anything is, and in the end
 * `Succeeded` or `Failed`; the annotation is written last. A failure before anything is there leaves no record. An error that is
 * thrown is in the record, too, unless it is a {@link HeldDeletion}.
 */
export async function deliver(delivery: Delivery, task: Task, { report }: Reporting): Promise<Outcome> {
  const { addon } = task;
  const secrets = hiddenIn(addon);
  const hide = hiding(secrets);
  const how: Hiding = {
    report: (text) => report(hide(text)),
    hidden: (error) => {
      // Without its cause, which may quote them, too.
      return secrets.length === 0 ? error : new CurlewError(error.code, hide(error.message), { hint: error.hint });
    },
  };
  try {
    const isChart = addon.source?.type === 'chart';
    return await (isChart ? run(charts, delivery, task, how) : run(deliveredManifests, delivery, task, how));
  } catch (error) {
    const { cluster } = delivery;
    if (!(error instanceof CurlewError) || error instanceof HeldDeletion || cluster.signal.aborted) throw error;
    const shown = how.hidden(error);
    await recordFailure(cluster, addon, shown);
    throw shown;
  }
}

/** What a cluster or its programs say may quote values that nothing shows. */
interface Hiding extends Reporting {
  /** An error without them. */
  readonly hidden: (error: CurlewError) => CurlewError;
}

/** How records differ from what is there, by the key of the record. */
export async function observe(
  cluster: Pick<ChannelCluster, 'call' | 'signal' | 'warnings'>,
  records: readonly AddonRecord[],
): Promise<ReadonlyMap<string, LiveState>> {
  const isRelease = ({ release }: AddonRecord): boolean => release !== undefined;
  const [own, releases] = await Promise.all([
    deliveredManifests.observe(
      cluster,
      records.filter((one) => !isRelease(one)),
    ),
    charts.observe(cluster, records.filter(isRelease)),
  ]);
  return new Map([...own, ...releases]);
}

async function run<D extends Desired>(
  deliverer: Deliverer<D>,
  delivery: Delivery,
  task: Task,
  { report, hidden }: Hiding,
): Promise<Outcome> {
  const { cluster, request } = delivery;
  const { addon, record } = task;
  await using desired = await deliverer.desired(delivery, task);
  const refusals = desired.refused.map(hidden);
  const [refused] = refusals;
  if (refused !== undefined) {
    await recordFailure(cluster, addon, refused);
    return outcomeOf('failed', { errors: refusals.map(troubleOf) });
  }
  const revision = recordRevision(cluster, addon, desired.hash);
  const mayHave = joinKinds(record?.objects ?? [], kindsOf(desired.begun.objects));
  const begun = { desired: revision, release: desired.begun.release, objects: mayHave };
  await recordState(cluster, task, { state: 'Progressing', reason: 'the last run was interrupted', ...begun });
  await ensurePki(cluster, addon);
  const done = await deliverer.deliver(delivery, task, { desired, report });
  const { applied = [], objects = [], gone = new Set(), kinds = [], release } = done;
  const wait = { timeoutMs: timeoutOf(request), report, asOcm: addon.asOcm };
  const unhealthy = await waitForHealth(cluster, applied, { objects, ...wait });
  const errors = [...(done.errors ?? []), ...unhealthy].map(hidden);
  const outcome = { objects: done.changes ?? [], orphans: done.orphans ?? [] };
  const [failure] = errors;
  if (failure !== undefined) {
    const objects = [...recordedObjects(mayHave)].flatMap(([key, one]) => (gone.has(key) ? [] : [one]));
    const all = joinKinds(kinds, kindsOf(objects));
    const { reason } = failedState(failure);
    const state = done.isCut === true ? 'Progressing' : 'Failed';
    if (record === undefined && done.isNowhere === true) await forgetRecord(cluster, addon);
    else await recordState(cluster, task, { state, reason, desired: revision, release, objects: all });
    return outcomeOf('failed', { ...outcome, errors: errors.map(troubleOf) });
  }
  const isUpdate = task.installed !== undefined && !isPartial(task);
  const nodes = isUpdate ? await markNodes(cluster, addon.needsRollingUpdate) : [];
  await recordState(cluster, task, {
    state: 'Succeeded',
    reason: '',
    desired: revision,
    applied: revision,
    knownGood: revision,
    release,
    objects: kinds,
    orphans: done.orphanKinds,
  });
  await annotate(cluster, addon, revision);
  return outcomeOf('applied', { ...outcome, nodes });
}

/** Marks the nodes that must be replaced after a change, for whoever rolls them, as kops does. Returns their names. */
async function markNodes(
  { call }: Pick<ChannelCluster, 'call'>,
  role: Addon['needsRollingUpdate'],
): Promise<readonly string[]> {
  if (role === undefined) return [];
  const nodes = (await listObjects(call, NODES, { onlyMetadata: true })) ?? [];
  const isControl = ({ metadata: { labels } }: LiveObject): boolean =>
    CONTROL_PLANE_LABELS.some((label) => labels[label] !== undefined);
  const chosen = role === 'all' ? nodes : nodes.filter((node) => isControl(node) === (role === 'control-plane'));
  const change = { metadata: { annotations: { 'kops.k8s.io/needs-update': '' } } };
  for (const { metadata } of chosen) await mergeObject(call, NODES, { name: metadata.name }, change);
  return chosen.map(({ metadata }) => metadata.name);
}
