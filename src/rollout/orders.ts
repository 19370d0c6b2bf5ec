/** The orders of people that count now, and what is said about the others. Pure. */
import { timeOf } from '../core/time.ts';
import type { Approval, FleetAddon, Orders } from './fleet.ts';

const AHEAD = 'counts from then on: the clock of the machine that runs the rollout is behind it';

/** What counts now, and why the rest does not. */
export interface Ordered {
  readonly orders: Orders | undefined;
  /** Approvals that do not count, and why. */
  readonly voids: readonly (Approval & { readonly why: string })[];
  /** Why a retry, or going back, does not count. */
  readonly unheeded: { readonly retry?: string; readonly rollback?: string };
  /** Seconds until the next one counts; infinite if none is early. */
  readonly recheckAfter: number;
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

/** The time before which failures are tried again; 0 if that is not ordered, or not yet. */
export function retryAt({ retry = 0 }: Partial<Orders> = {}, now: number): number {
  return isDue(retry, now) ? retry : 0;
}

/** The orders about a rollout that began at `since`, each by its own time. Those about another generation are void. */
export function ordersAt({ generation, orders, lapsed }: FleetAddon, since: number, now: number): Ordered {
  const voids: Ordered['voids'][number][] = [];
  const unheeded: { retry?: string; rollback?: string } = {};
  let recheckAfter = Infinity;
  if (lapsed !== undefined) voids.push({ ...lapsed, why: 'was for another content: approve again' });
  if (orders?.generation !== generation) return { orders: undefined, voids, unheeded, recheckAfter };
  let present: Orders = { generation, at: orders.at };
  for (const { verb, at, order } of partsOf(orders)) {
    const isEarly = !isDue(at, now);
    if (isEarly) recheckAfter = Math.min(recheckAfter, at - 1 - now);
    if (!isEarly && at >= since) present = { ...present, ...order };
    else if (verb === 'approve') {
      const old = `is older than this rollout, which began at ${timeOf(since)}: approve again`;
      voids.push({ ...order, at, why: isEarly ? AHEAD : old });
    } else if (isEarly) unheeded[verb] = `the order to ${WORDS[verb]} of ${timeOf(at)} ${AHEAD}`;
  }
  return { orders: present, voids, unheeded, recheckAfter };
}

function partsOf({ at, groups, unproven, removals, downgrade, downgradeAt, retry, rollback }: Orders): readonly Part[] {
  const parts: Part[] = [];
  if (groups !== undefined) parts.push({ verb: 'approve', at, order: { groups } });
  if (unproven !== undefined) parts.push({ verb: 'approve', at, order: { unproven } });
  if (removals !== undefined) parts.push({ verb: 'approve', at, order: { removals } });
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
  const found = voids.find(isMeant);
  return found === undefined ? '' : `; the approval of ${timeOf(found.at)} ${found.why}`;
}
