/** What people order about an add-on of a fleet: the next pass follows it. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { secondsOf, timeOf } from '../core/time.ts';
import { observedOf } from '../fleet/observe.ts';
import { revisionsOf } from '../fleet/pass.ts';
import { isPresent, NO_ORDERS, presentSince, type GivenOrder, type StateRevision } from '../fleet/state.ts';
import type { ClusterAddon, FleetAddon } from '../fleet/rollout/fleet.ts';
import { approvalTime } from '../fleet/rollout/orders.ts';
import type { HubAddon, HubOrder } from '../fleet/hub/observe.ts';
import { orderAtHub, type HubOrders } from '../fleet/hub/run/orders.ts';
import { openClusterApi } from '../cluster/deliver/channel-cluster.ts';
import { hashContents } from '../fleet/run/clusters.ts';
import { openFleet } from '../fleet/run/files.ts';
import { stateFolderOf, readWhole, unknownAddon } from '../fleet/run/observed-fleet.ts';
import {
  FLEET_APPROVE,
  FLEET_PAUSE,
  FLEET_RESUME,
  FLEET_RETRY,
  FLEET_ROLLBACK,
  type FleetOrderRequest,
} from '../requests/fleet.ts';

export interface FleetOrder extends GivenOrder {
  readonly addon: string;
  /** At a hub, that of its FleetAddon: for another one, the order is void. */
  readonly generation?: number;
  /** Why it may have no effect, and what to do. */
  readonly warning?: string;
}

/** Nothing begins any more, also not on clusters that a pass has not come to yet. Works although the files have mistakes. */
export const pauseAddon = useCase(FLEET_PAUSE, async (request, context) => setPaused(request, context, true));

export const resumeAddon = useCase(FLEET_RESUME, async (request, context) => setPaused(request, context, false));

/** What has failed so far is tried again. */
export const retryAddon = useCase(FLEET_RETRY, async (request, context) => {
  if (!isAtHub(request)) return orderFor(request, context, (order, now) => ({ ...order, retry: now + 1 }), true);
  const { addon, made } = await atHub(request, context, (_addon, order) => ({
    // What failed in this second is meant, too.
    retry: { ...order, at: timeOf(secondsOf(order.at) + 1) },
  }));
  const { status, orders, generation } = addon.addon;
  const isNow = status?.rolledBack === true && status.observedGeneration === generation;
  const isBack = isNow ? (status.counts.Failed ?? 0) === 0 : orders?.rollback !== undefined;
  return isBack ? { ...made, warning: WENT_BACK } : made;
});

/**
 * Every cluster goes back to what was healthy on it before, and the rollout stops until the add-on changes. `USAGE` if the clusters
 * have last recorded nothing to go back to; a hub says that in the status.
 */
export const rollBackAddon = useCase(FLEET_ROLLBACK, async (request, context) => {
  if (isAtHub(request)) return (await atHub(request, context, (_addon, order) => ({ rollback: order }))).made;
  return orderFor(request, context, (order, _now, { addon, records }) => {
    const own = records.filter((one) => one.addon === addon.name);
    if (records.length > 0 && own.every(({ spec }) => (spec.knownGood ?? spec).specHash === spec.specHash)) {
      throw new CurlewError('USAGE', `cannot roll back ${addon.name}: no cluster has had another content of it`, {
        hint: 'correct its file, or delete it from the files and run curlew fleet remove',
      });
    }
    return { ...order, rollback: true };
  });
});

interface Approved {
  readonly groups: readonly string[];
  readonly unproven: readonly string[];
  readonly removals: number | undefined;
  readonly deletions: boolean | undefined;
  readonly downgrade: boolean | undefined;
}

/** Groups may begin, or up to a number of removals, or deletions of most objects, or lower versions. Void when the content changes. `USAGE` for a group that needs no approval. */
export const approveAddon = useCase(
  FLEET_APPROVE,
  async ({ group: groups = [], unproven = [], removals, deletions, downgrade, ...request }, context) => {
    const approved = { groups, unproven, removals, deletions, downgrade };
    if (isAtHub(request)) {
      const { made, written } = await atHub(request, context, (addon, order) => {
        requireApprovable(addon.addon, approved);
        return { approve: approvalAtHub(addon, order, approved) };
      });
      const { generation: _generation, at: _at, by: _by, ...more } = written as HubOrder;
      return { ...made, ...more };
    }
    return orderFor(request, context, (order, now, { addon }) => {
      requireApprovable(addon, approved);
      const at = approvalTime(now, [order.removals && order.at, addon.status?.removals?.at]);
      // Removals that have begun are counted from the time of their approval.
      return {
        ...order,
        groups: union(order.groups, groups),
        ...(unproven.length > 0 && { unproven: union(order.unproven, unproven) }),
        ...(removals !== undefined && { removals, at }),
        ...(deletions === true && { deletions }),
        // What begins in this second was there before.
        ...(downgrade === true && { downgrade, downgradeAt: now + 1 }),
      };
    });
  },
);

function union(before: readonly string[] = [], more: readonly string[] = []): string[] {
  return [...new Set([...before, ...more])];
}

function requireApprovable(
  { name, rollout }: Pick<FleetAddon, 'name' | 'rollout'>,
  { groups, unproven, removals, deletions, downgrade }: Approved,
): void {
  const { groups: all = [], approval = [], mandatoryDecisionGroups = [] } = rollout ?? {};
  // A mandatory group that proves nothing can be approved, too. Which one an index means depends on the clusters.
  const mandatory = mandatoryDecisionGroups.flatMap(({ groupName = '', groupIndex }) =>
    groupName === '' ? [...all.map((one) => one.name), String(groupIndex)] : groupName,
  );
  const known = [...new Set([...approval, ...mandatory])];
  const unknown = groups.find((one) => !known.includes(one)) ?? unproven.find((one) => !mandatory.includes(one));
  const isNothing =
    groups.length + unproven.length === 0 && removals === undefined && deletions !== true && downgrade !== true;
  if (unknown === undefined && !isNothing) return;
  const isGroup = all.some((one) => one.name === unknown);
  const which = isGroup ? `its group ${unknown} needs no approval` : `it has no group ${unknown}`;
  const what = unknown === undefined ? 'nothing says what' : which;
  const own = known.length === 0 ? '' : `--group with one of ${known.join(', ')}, `;
  const proving = mandatory.length === 0 ? '' : `--unproven with one of ${[...new Set(mandatory)].join(', ')}, `;
  throw new CurlewError('USAGE', `cannot approve ${name}: ${what}`, {
    hint: `add ${own}${proving}--removals N, --deletions or --downgrade`,
  });
}

/** At a hub, an approval has one time: what counts from it on is not carried over into another one. */
function approvalAtHub({ addon, approval: before }: HubAddon, order: HubOrder, approved: Approved): HubOrder {
  const { groups, unproven, removals, deletions, downgrade } = approved;
  const isNew = before === undefined || removals !== undefined || downgrade === true;
  const { by: _by, groups: had, unproven: hadUnproven, deletions: mayDelete, ...timed } = before ?? order;
  const others = [before && secondsOf(before.at), addon.status?.removals?.at];
  return {
    ...order,
    ...(isNew ? { at: timeOf(approvalTime(secondsOf(order.at), others)) } : timed),
    ...(groups.length + (had?.length ?? 0) > 0 && { groups: union(had, groups) }),
    ...(unproven.length + (hadUnproven?.length ?? 0) > 0 && { unproven: union(hadUnproven, unproven) }),
    ...(removals !== undefined && { removals }),
    ...((deletions ?? mayDelete) === true && { deletions: true }),
    ...(downgrade === true && { downgrade }),
  };
}

function isAtHub({ addon, files = [], kubeconfig, state }: FleetOrderRequest): boolean {
  if (kubeconfig !== undefined && files.length === 0 && state === undefined) return true;
  if (kubeconfig === undefined && files.length > 0) return false;
  throw new CurlewError('USAGE', `cannot order anything about ${addon}: it is in files, or at a hub`, {
    hint: 'specify FILES, or --kubeconfig FILE of the hub without --state',
  });
}

/** Writes an order at the hub, by the clock of its API server. */
async function atHub(
  request: FleetOrderRequest,
  context: Context,
  ordersFor: (addon: HubAddon, order: HubOrder) => HubOrders,
): Promise<{ readonly addon: HubAddon; readonly made: FleetOrder; readonly written: HubOrders[string] }> {
  const { api, call } = await openClusterApi(request, context);
  const { USER: by = '' } = context.env;
  let written: HubOrders[string];
  const addon = await orderAtHub(call, request.addon, (one) => {
    const { generation } = one.addon;
    const at = timeOf(Math.floor(api.now().getTime() / 1000));
    const orders = ordersFor(one, { generation, at, ...(by !== '' && { by }) });
    [written] = Object.values(orders);
    return orders;
  });
  return { addon, made: { addon: request.addon, generation: addon.addon.generation }, written };
}

async function setPaused(request: FleetOrderRequest, context: Context, paused: boolean): Promise<FleetOrder> {
  if (isAtHub(request)) {
    return (await atHub(request, context, () => ({ pause: paused ? 'true' : undefined }))).made;
  }
  const { addon, files = [] } = request;
  const fleet = await openFleet({ files }, context);
  const folder = stateFolderOf(fleet, request, context);
  const { addons } = await folder.readOrders();
  const isKnown = addons[addon] !== undefined || fleet.addons.some(({ name }) => name === addon);
  if (!isKnown) throw unknownAddon(addon, fleet.addons);
  return { addon, ...(await folder.order(addon, (order) => ({ ...order, paused }))) };
}

async function orderFor(
  request: FleetOrderRequest,
  context: Context,
  change: (
    order: GivenOrder,
    now: number,
    present: StateRevision & { readonly records: readonly ClusterAddon[] },
  ) => GivenOrder,
  isRetry = false,
): Promise<FleetOrder> {
  const { addon, files = [], state: place } = request;
  const { fleet, folder } = await readWhole({ files, state: place }, context);
  const now = Math.floor(Date.now() / 1000);
  const hashOf = await hashContents(fleet, context);
  const looks = new Map(fleet.clusters.map(({ name }) => [name, { problem: 'not asked' }] as const));
  const state = await folder.read();
  // Times are as passes have recorded them: the clock of this machine may be behind.
  const observed = observedOf(fleet, looks, hashOf, { now: Infinity, state, orders: NO_ORDERS });
  const revisions = revisionsOf(fleet, observed, hashOf);
  const present = revisions.get(addon);
  if (present === undefined) throw unknownAddon(addon, fleet.addons);
  const { revision } = present;
  const made = await folder.order(addon, ({ paused = false, ...before }) => {
    const isSame = isPresent(before, revision, state.addons[addon]);
    const known = { ...present, records: observed.clusterAddons };
    return change(isSame ? { paused, ...before } : { paused, revision, at: now }, now, known);
  });
  const since = presentSince(revision, state.addons[addon]);
  const failed = observed.clusterAddons.filter(
    (one) => one.addon === addon && (one.status?.state === 'Failed' || one.backFailure !== undefined),
  );
  const { status } = state.addons[addon] ?? {};
  const isBack = status?.revision === revision && status.rolledBack ? failed.length === 0 : made.rollback === true;
  if (isRetry && isBack) return { addon, ...made, warning: WENT_BACK };
  const { at = 0, retry = 0 } = made;
  const tried = isRetry ? failed.map(({ spec }) => spec.startedAt).filter((time) => time >= retry) : [];
  const later = Math.max(at < since ? since : 0, ...tried);
  return { addon, ...made, ...(later > 0 && { warning: behind(now, later) }) };
}

const WENT_BACK =
  'the order has no effect: the add-on goes back to what was healthy before, and the rollout stops until its files change';

function behind(now: number, later: number): string {
  const times = `the clock of this machine says ${timeOf(now)}, and the state has what it is about at ${timeOf(later)}`;
  return `${times}: unless that clock was ahead, the order has no effect; set the clock of this machine, and order again`;
}
