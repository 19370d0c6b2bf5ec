/** The jobs of one turn on a cluster: which may begin, and when. */
import type { Job } from '../../pass.ts';
import { eachLimited } from '../../../platform/limit/each.ts';
import type { Wake } from '../../../platform/limit/wake.ts';
import type { ClusterAddon } from '../../rollout/fleet.ts';
import type { HubAddon, HubClusterAddon } from '../observe.ts';
import { deliverableOf } from '../push.ts';

/** A ClusterAddon on a cluster that is delivered to, with its add-on. */
export interface Own {
  readonly object: HubClusterAddon;
  readonly record: ClusterAddon;
  readonly addon: HubAddon | undefined;
  /** What is ordered of it: any change of that is another text. */
  readonly order: string;
}

/** What is to be done to an add-on. */
export type Ordered = readonly [job: Job, own: Own];

interface TurnParts {
  /** Set when there may be more to do. */
  readonly more: Wake;
  /** What is to be done now, by what was seen of the cluster. */
  readonly find: () => readonly Ordered[];
  /** Orders that this turn has looked at; gets those that join it. */
  readonly followed: Set<string>;
  /** When no more orders join, by `performance.now()`. */
  readonly until: number;
  readonly signal: AbortSignal;
}

/** Releases that helm applies to one cluster at the same time: each takes its memory. */
const RELEASES_AT_ONCE = 2;
const LOOK_MS = 60_000;

/**
 * Does what goes first, since it makes place for what comes; releases of charts at the same time, and all else alone. A turn that has only
 * releases also takes those that are ordered while it lasts: what was seen of the cluster before still holds for them. It holds nothing
 * else up: when another order comes that cannot join, such as one about a release that it has taken, no more do.
 */
export async function eachOrdered(
  first: readonly Ordered[],
  work: (job: Job, own: Own) => Promise<void>,
  { more, find, followed, until, signal }: TurnParts,
): Promise<void> {
  const queue = first.toSorted(([a], [b]) => Number(b.act === 'remove') - Number(a.act === 'remove'));
  let isOpen = queue.every(isRelease);
  const taken = new Set<string>();
  const isTaken = (one: Ordered): boolean => isRelease(one) && namesOf(one).some((name) => taken.has(name));
  const joining = (): readonly Ordered[] => {
    isOpen = isOpen && performance.now() < until;
    const orders = isOpen ? find().filter(([, { order }]) => !followed.has(order)) : [];
    isOpen = isOpen && orders.every((one) => isRelease(one) && !isTaken(one));
    return isOpen ? orders.slice(0, 1) : [];
  };
  let running = 0;
  let isShared = false;
  const next = (): Ordered | undefined => {
    // What was seen of the cluster holds for one add-on of a release only.
    while (queue[0] !== undefined && isTaken(queue[0])) queue.shift();
    if (queue.length === 0) queue.push(...joining());
    const [one] = queue;
    if (one === undefined || (running > 0 && !(isShared && isRelease(one)))) return undefined;
    queue.shift();
    followed.add(one[1].order);
    isShared = isRelease(one);
    // A removal makes place for what has the same identity.
    if (isShared) for (const name of namesOf(one)) taken.add(name);
    return one;
  };
  const begun = async function* (): AsyncGenerator<Ordered> {
    for (;;) {
      more.clear();
      const one = next();
      if (one !== undefined) {
        running += 1;
        yield one;
      } else if (running === 0) return;
      else await more.wait(LOOK_MS, { signal });
    }
  };
  const workOne = async ([job, own]: Ordered): Promise<void> => {
    try {
      await work(job, own);
    } finally {
      running -= 1;
      more.set();
    }
  };
  await eachLimited(begun(), workOne, { width: RELEASES_AT_ONCE, signal });
}

function isRelease([job, { record, addon }]: Ordered): boolean {
  const content = job.act === 'remove' ? '' : deliverableOf(record, addon);
  return typeof content === 'object' && content.entry.source?.type === 'chart';
}

function namesOf([, { record }]: Ordered): readonly string[] {
  return [record.addon, record.spec.identity];
}
