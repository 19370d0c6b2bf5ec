/** The orders of people that count now, and what is said about the others. Pure. */
import { timeOf } from '../../core/time.ts';
import type { Approval, ClusterAddon, FleetAddon, FleetAddonStatus, Orders } from './fleet.ts';
import { isFailure } from './strategy.ts';

const AHEAD = 'counts from then on: the clock of the machine that runs the rollout is behind it';
const AGAIN = 'order it again, by a clock that is right';

/** Seconds by which a time of a cluster may be off. */
const INEXACT = 1;
/** Seconds by which the clock of a site may be ahead. */
export const MAX_AHEAD = 3600;
/** Seconds by which approvals that a script gives at once may be ahead. */
const APPROVALS_AHEAD = 60;

/** What counts now, and why the rest does not. */
interface Ordered {
  readonly orders: Orders | undefined;
  /** Approvals that do not count, and why. */
  readonly voids: readonly (Approval & { readonly why: string })[];
  /** Why a retry, or going back, does not count. */
  readonly unheeded: { readonly retry?: string; readonly rollback?: string };
  /** Seconds until the next one counts; infinite if none is early. */
  readonly recheckAfter: number;
}

/** What is known of an order to retry that counts. */
interface Retry {
  /** When it was ordered. */
  readonly retry: number;
  /** When a step first saw it. */
  readonly retrySeen: number;
  readonly addon: Pick<FleetAddon, 'orders'>;
  readonly fleet: { readonly now: number; past(since: number | undefined): number | undefined };
}

interface Part {
  readonly verb: 'approve' | 'retry' | 'rollback';
  readonly at: number;
  readonly order: Partial<Orders>;
}

const WORDS = { retry: 'retry', rollback: 'go back' } as const;

/** Until its time, an order would also be about what is not known yet. What happens in this second is. */
function isDue(at: number, now: number): boolean {
  return at <= now + 1;
}

/** The time of a new approval: later than `others`, as removals are counted by it. Others that are far ahead are of another clock. */
export function approvalTime(now: number, others: readonly (number | undefined)[]): number {
  return 1 + others.reduce<number>((last, at = 0) => (at < now + APPROVALS_AHEAD ? Math.max(last, at) : last), now - 1);
}

/** The time before which failures are tried again; 0 if that is not ordered, or not yet. */
export function retryAt({ retry = 0 }: Partial<Orders> = {}, now: number): number {
  return isDue(retry, now) ? retry : 0;
}

/** The orders about a rollout that began at `since`, each by its own time. Those about another generation are void. */
export function ordersAt({ generation, orders, lapsed }: FleetAddon, since: number, now: number): Ordered {
  const voids: Ordered['voids'][number][] = [];
  const unheeded: { retry?: string; rollback?: string } = {};
  let recheckAfter = Infinity;
  for (const { verb, at, order } of partsOf(lapsed)) {
    if (verb === 'approve') voids.push({ ...order, at, why: 'was for another content: approve again' });
    // An earlier one was followed, or has ended with what it was for.
    else if (at >= since)
      unheeded[verb] = `${orderOf(verb, at)} has no effect: it was for another content: order it again`;
  }
  if (orders?.generation !== generation) return { orders: undefined, voids, unheeded, recheckAfter };
  let present: Orders = { generation, at: orders.at };
  for (const { verb, at, order } of partsOf(orders)) {
    const isEarly = !isDue(at, now);
    if (isEarly) recheckAfter = Math.min(recheckAfter, at - 1 - now);
    if (!isEarly && at >= since) present = { ...present, ...order };
    else {
      const old = `is older than this rollout, which began at ${timeOf(since)}`;
      if (verb === 'approve') voids.push({ ...order, at, why: isEarly ? AHEAD : `${old}: approve again` });
      // What was ordered long before it was about an earlier one of the same generation.
      else if (isEarly || since - at <= MAX_AHEAD)
        unheeded[verb] = `${orderOf(verb, at)} ${isEarly ? AHEAD : `has no effect: it ${old}: ${AGAIN}`}`;
    }
  }
  return { orders: present, voids, unheeded, recheckAfter };
}

function orderOf(verb: keyof typeof WORDS, at: number): string {
  return `the order to ${WORDS[verb]} of ${timeOf(at)}`;
}

/**
 * The time of what has failed, if an order to try again does not reach it: it began later, or failed much later; undefined for what is
 * tried again. The clock of its site may be ahead, or the own one set back.
 */
export function laterThanRetry(
  { fleet, retry }: Pick<Retry, 'fleet' | 'retry'>,
  { spec, status }: Partial<ClusterAddon> = {},
): number | undefined {
  const { startedAt } = spec ?? { startedAt: 0 };
  if (startedAt >= retry && startedAt <= fleet.now + 1) return startedAt;
  const failed = (status && isFailure(status.state) && fleet.past(status.since)) || 0;
  return failed > retry + MAX_AHEAD ? failed : undefined;
}

/** When a step first saw an order to retry. Where an earlier step could not store it, an old order is not taken for new. */
export function firstSeen(
  retry: number,
  begun: Pick<Partial<FleetAddonStatus>, 'retry' | 'failed'>,
  now: number,
): number {
  if (begun.retry?.at === retry) return Math.min(begun.retry.seen, now);
  return (begun.failed?.retry ?? 0) >= retry || now - retry > MAX_AHEAD ? retry : now;
}

/** Why the order that counts does not try again what has failed. What failed after it was seen was tried by it, or is new. */
export function retryNote(run: Retry, record: ClusterAddon | undefined): string | undefined {
  const { retry, retrySeen } = run;
  const later =
    retry > 0 && record !== undefined && record.spec.startedAt < retrySeen - INEXACT && laterThanRetry(run, record);
  if (later === false || later === undefined) return undefined;
  const order = orderOf('retry', run.addon.orders?.retryGiven ?? retry);
  return `${order} has no effect here: what has failed is of ${timeOf(later)}, which is not before it: ${AGAIN}`;
}

function partsOf(orders: FleetAddon['lapsed']): readonly Part[] {
  if (orders === undefined) return [];
  const { at, groups, unproven, removals, deletions, downgrade, downgradeAt, retry, rollback } = orders;
  const parts: Part[] = [];
  if (groups !== undefined) parts.push({ verb: 'approve', at, order: { groups } });
  if (unproven !== undefined) parts.push({ verb: 'approve', at, order: { unproven } });
  if (removals !== undefined) parts.push({ verb: 'approve', at, order: { removals } });
  if (deletions === true) parts.push({ verb: 'approve', at, order: { deletions } });
  if (downgrade === true) {
    const order = { downgrade, ...(downgradeAt !== undefined && { downgradeAt }) };
    parts.push({ verb: 'approve', at: Math.max(at, downgradeAt ?? 0), order });
  }
  if (retry !== undefined) parts.push({ verb: 'retry', at: retry, order: { retry } });
  if (rollback !== undefined) parts.push({ verb: 'rollback', at: rollback, order: { rollback } });
  return parts;
}

/** What a person who waits under an approval must know; nothing if none is meant, or it counts. */
export function voidNote({ voids }: Pick<Ordered, 'voids'>, isMeant: (approval: Approval) => boolean): string {
  const approval = voids.find(isMeant);
  return approval === undefined ? '' : `; the approval of ${timeOf(approval.at)} ${approval.why}`;
}
