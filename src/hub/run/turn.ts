/** The jobs of one turn on a cluster: which may begin, and when. */
import type { Job } from '../../fleet/pass.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import type { Wake } from '../../platform/limit/wake.ts';
import type { ClusterAddon } from '../../rollout/fleet.ts';
import type { HubAddon, HubClusterAddon } from '../observe.ts';
import { deliverableOf } from '../push.ts';

/** A ClusterAddon on a cluster that is delivered to, with its add-on. */
export interface Own {
  readonly object: HubClusterAddon;
  readonly record: ClusterAddon;
  readonly addon: HubAddon | undefined;
}

/** What is to be done to an add-on. */
export type Ordered = readonly [job: Job, own: Own];

interface TurnParts {
  /** Set when there may be more to do. */
  readonly more: Wake;
  /** What is to be done now, except to the add-ons with these names or identities. */
  readonly find: (taken: ReadonlySet<string>) => readonly Ordered[];
  readonly signal: AbortSignal;
}

/** Releases that helm applies to one cluster at the same time: each takes its memory. */
const RELEASES_AT_ONCE = 2;
const LOOK_MS = 60_000;

/**
 * Does what goes first, since it makes place for what comes; releases of charts at the same time, and all else alone. A turn that has only
 * releases also takes those that are ordered while it lasts, each add-on once: what was seen of the cluster before still holds for them.
 */
export async function eachOrdered(
  first: readonly Ordered[],
  work: (job: Job, own: Own) => Promise<void>,
  { more, find, signal }: TurnParts,
): Promise<void> {
  const queue = first.toSorted(([a], [b]) => Number(b.act === 'remove') - Number(a.act === 'remove'));
  const isOpen = queue.every(isRelease);
  const taken = new Set(queue.flatMap(namesOf));
  let running = 0;
  let isShared = false;
  const next = (): Ordered | undefined => {
    if (isOpen && queue.length === 0) queue.push(...find(taken).filter(isRelease));
    const [one] = queue;
    if (one === undefined || (running > 0 && !(isShared && isRelease(one)))) return undefined;
    queue.shift();
    for (const name of namesOf(one)) taken.add(name);
    isShared = isRelease(one);
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
  const content = job.act === 'remove' ? '' : deliverableOf(record, addon?.drift);
  return typeof content === 'object' && content.entry.source?.type === 'chart';
}

function namesOf([, { record }]: Ordered): readonly string[] {
  return [record.addon, record.spec.identity];
}
