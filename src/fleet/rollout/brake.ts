/** The brake on removals: how many clusters lose an add-on within a time, and whether more may. Pure. */
import { counted } from '../../core/counted.ts';
import { isObject } from '../../core/json.ts';
import type { Removed } from './fleet.ts';
import { isLeft } from './leaving.ts';
import { parseTimeout, sizeOf } from './limits.ts';
import { voidNote } from './orders.ts';
import { isRemoval, isUnderRemoval, type Rollout, type Target } from './target.ts';

/** Removals that cannot be read: more than any limit, as if they had begun now. */
export const UNREAD: Removed = { at: Number.MAX_SAFE_INTEGER, begun: 1e9 };
/** Limits of a list in a status. */
const MAX_ENTRIES = 100;
const MAX_BYTES = 4096;

/**
 * What a stored status says of removals since a time. Others can write there, too: what cannot be read, or is ahead of the clock, holds
 * all removals as if it were of now.
 */
function removedSince(stored: unknown, since: number, now: number): readonly Removed[] {
  const all: readonly unknown[] = Array.isArray(stored) ? stored : [UNREAD];
  return all.flatMap((one): readonly Removed[] => {
    const { at, begun, cluster } = isRemoved(one) ? one : UNREAD;
    const count = Math.min(begun, UNREAD.begun);
    return at <= since ? [] : [{ at: Math.min(at, now), begun: count, ...(cluster !== undefined && { cluster }) }];
  });
}

function isRemoved(one: unknown): one is Removed {
  if (!isObject(one)) return false;
  const { at, begun, cluster = '' } = one;
  return typeof at === 'number' && typeof begun === 'number' && begun >= 0 && typeof cluster === 'string';
}

/** With clusters that begin to lose the add-on now. If all have no room, those of about the same time become one without a name. */
export function withRemoved(
  { lately, fleet: { now }, removalsWithin }: Rollout,
  clusters: readonly string[],
): readonly Removed[] {
  const names = new Set(clusters);
  const before = lately.filter(({ cluster = '' }) => !names.has(cluster));
  const all = [...before, ...clusters.map((cluster): Removed => ({ at: now, begun: 1, cluster }))];
  if (all.length <= MAX_ENTRIES && JSON.stringify(all).length <= MAX_BYTES) return all;
  const parts = new Map<number, Removed>();
  for (const { at, begun } of all) {
    const part = Math.ceil((at / parseTimeout(removalsWithin)) * (MAX_ENTRIES - 2));
    const other = parts.get(part) ?? { at, begun: 0 };
    parts.set(part, { at: Math.max(at, other.at), begun: begun + other.begun });
  }
  return [...parts.values()];
}

/** Counts the removals that have begun, and sets why no other may begin: too many within a time, without an approval of at least their number. */
export function brake(run: Rollout, targets: readonly Target[], gone: readonly string[]): void {
  const { fleet, addon, strategy, orders, begun, approvedAt, records, removalsWithin } = run;
  const within = parseTimeout(removalsWithin);
  const wanted = new Set(gone);
  let underWay = 0;
  for (const target of targets) {
    const { cluster, holds, action } = target;
    if (isLeft(target)) continue;
    // What is tried again was let pass before.
    if (isUnderRemoval(target)) underWay += Number(holds || isRemoval(target));
    else if (isRemoval(target) && (action !== 'delete' || fleet.heir(run, cluster) === undefined))
      wanted.add(cluster.name);
  }
  // What is as it was has not begun: its write was refused, or the cluster did not answer.
  run.lately = removedSince(addon.status?.removed ?? [], fleet.now - within, fleet.now).filter(
    ({ cluster = '', at }) => {
      const { action, startedAt = at } = records.get(cluster)?.spec ?? {};
      return action !== 'Install' || startedAt >= at;
    },
  );
  const others = addon.deleting === true ? [] : run.lately.filter(({ cluster = '' }) => !wanted.has(cluster));
  const recent = others.reduce((sum, { begun }) => sum + begun, 0);
  const isKnown = recent < UNREAD.begun;
  const total = targets.length + gone.length + (isKnown ? Math.max(0, recent - underWay) : 0);
  const most = sizeOf(strategy.maxRemovals, total, Math.max(1, Math.ceil(total / 10)), 'native');
  const all = wanted.size + Math.max(underWay, recent);
  // Here, too: nothing else knows how many orders were written before the controller died.
  const { begun: before = 0, clusters: last = [] } = (begun.removals?.at === approvedAt && begun.removals) || {};
  run.removed = Math.max(0, before - last.filter((name) => records.get(name)?.spec.action === 'Install').length);
  const approved = (orders?.removals ?? 0) - run.removed;
  if (wanted.size === 0 || all <= most || wanted.size <= approved) return;
  const count = isKnown ? counted(all, 'removal') : 'an unknown number of removals';
  const when = recent > underWay ? `within ${removalsWithin}` : 'at once';
  const note = voidNote(run.ordered, ({ removals }) => removals !== undefined);
  run.brake = `${count} ${when}, and ${most} may: approve ${wanted.size}${note}`;
  run.brakedUntil = Math.min(...others.map(({ at }) => at + within));
}
