/** What people order about an add-on of a fleet: the next pass follows it. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { timeOf } from '../core/time.ts';
import { observedOf } from '../fleet/observe.ts';
import { revisionsOf } from '../fleet/pass.ts';
import { isPresent, NO_ORDERS, presentSince, type GivenOrder, type StateRevision } from '../fleet/state.ts';
import type { ClusterAddon } from '../fleet/rollout/fleet.ts';
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
  /** Why it may have no effect, and what to do. */
  readonly warning?: string;
}

/** Nothing begins any more, also not on clusters that a pass has not come to yet. Works although the files have mistakes. */
export const pauseAddon = useCase(FLEET_PAUSE, async (request, context: Context) => setPaused(request, context, true));

export const resumeAddon = useCase(FLEET_RESUME, async (request, context: Context) =>
  setPaused(request, context, false),
);

/** What has failed so far is tried again. */
export const retryAddon = useCase(FLEET_RETRY, async (request, context: Context) =>
  orderFor(request, context, (order, now) => ({ ...order, retry: now + 1 }), true),
);

/**
 * Every cluster goes back to what was healthy on it before, and the rollout stops until the add-on changes. `USAGE` if the clusters
 * have last recorded nothing to go back to.
 */
export const rollBackAddon = useCase(FLEET_ROLLBACK, async (request, context: Context) =>
  orderFor(request, context, (order, _now, { addon, records }) => {
    const own = records.filter((one) => one.addon === addon.name);
    if (records.length > 0 && own.every(({ spec }) => (spec.knownGood ?? spec).specHash === spec.specHash)) {
      throw new CurlewError('USAGE', `cannot roll back ${addon.name}: no cluster has had another content of it`, {
        hint: 'correct its file, or delete it from the files and run curlew fleet remove',
      });
    }
    return { ...order, rollback: true };
  }),
);

/** Groups may begin, or up to a number of removals, or deletions of most objects, or lower versions. Void when the content changes. `USAGE` for a group that needs no approval. */
export const approveAddon = useCase(
  FLEET_APPROVE,
  async ({ group: groups = [], unproven = [], removals, deletions, downgrade, ...request }, context: Context) =>
    orderFor(request, context, (order, now, { addon }) => {
      const { groups: all = [], approval = [], mandatoryDecisionGroups = [] } = addon.rollout ?? {};
      // A mandatory group that proves nothing can be approved, too. Which one an index means depends on the clusters.
      const mandatory = mandatoryDecisionGroups.flatMap(({ groupName = '', groupIndex }) =>
        groupName === '' ? [...all.map(({ name }) => name), String(groupIndex)] : groupName,
      );
      const known = [...new Set([...approval, ...mandatory])];
      const unknown =
        groups.find((name) => !known.includes(name)) ?? unproven.find((name) => !mandatory.includes(name));
      if (
        unknown !== undefined ||
        (groups.length + unproven.length === 0 && removals === undefined && deletions !== true && downgrade !== true)
      ) {
        const isGroup = all.some(({ name }) => name === unknown);
        const which = isGroup ? `its group ${unknown} needs no approval` : `it has no group ${unknown}`;
        const what = unknown === undefined ? 'nothing says what' : which;
        const others = '--removals N, --deletions or --downgrade';
        const own = known.length === 0 ? '' : `--group with one of ${known.join(', ')}, `;
        const proving = mandatory.length === 0 ? '' : `--unproven with one of ${[...new Set(mandatory)].join(', ')}, `;
        throw new CurlewError('USAGE', `cannot approve ${addon.name}: ${what}`, {
          hint: `add ${own}${proving}${others}`,
        });
      }
      // Removals that have begun are counted from the time of their approval.
      return {
        ...order,
        groups: [...new Set([...(order.groups ?? []), ...groups])],
        ...(unproven.length > 0 && { unproven: [...new Set([...(order.unproven ?? []), ...unproven])] }),
        ...(removals !== undefined && { removals, at: now }),
        ...(deletions === true && { deletions }),
        // What begins in this second was there before.
        ...(downgrade === true && { downgrade, downgradeAt: now + 1 }),
      };
    }),
);

async function setPaused(request: FleetOrderRequest, context: Context, paused: boolean): Promise<FleetOrder> {
  const { addon } = request;
  const fleet = await openFleet({ files: request.files }, context);
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
  const { addon } = request;
  const { fleet, folder } = await readWhole(request, context);
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
