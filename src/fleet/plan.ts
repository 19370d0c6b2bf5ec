/** What one step of a fleet would do now, as a table of clusters and add-ons. Pure. */
import { Memo } from '../rollout/content.ts';
import type { Observed, Writes } from '../rollout/fleet.ts';
import { compareNames } from '../rollout/groups.ts';
import { step } from '../rollout/step.ts';
import type { State } from '../rollout/strategy.ts';

export interface PlannedTarget {
  readonly cluster: string;
  readonly addon: string;
  readonly state: State;
  /** `wait`: it is to change, and something holds it; `forget`: only its record goes. */
  readonly now: 'install' | 'update' | 'reinstall' | 'remove' | 'forget' | 'wait' | 'none';
  /** Versions; undefined for a manifest, which has none. */
  readonly current: string | undefined;
  readonly wanted: string | undefined;
  /** Why it waits, in one word for programs. */
  readonly reason: string | undefined;
  /** Why it waits, or what its record says. */
  readonly message: string | undefined;
}

export interface PlannedFleet extends Pick<Writes, 'detached' | 'recheckAfter'> {
  readonly targets: readonly PlannedTarget[];
}

const NOW = { create: 'install', update: 'update', reinstall: 'reinstall', delete: 'remove', none: 'none' } as const;

/** Targets in natural order of their clusters, then of their add-ons; `now` in seconds since 1970. */
export function planFleet(
  observed: Observed,
  now: number,
  reasonOf: (cluster: string, addon: string) => string = () => '',
): PlannedFleet {
  const targets: PlannedTarget[] = [];
  const { detached, recheckAfter } = step(observed, now, new Memo(), ({ run, targets: planned, dropped }) => {
    const addon = run.addon.name;
    for (const { cluster, state, drop, hold, wants, action, record } of [...planned, ...dropped]) {
      targets.push({
        cluster: cluster.name,
        addon,
        state,
        now: drop !== undefined ? 'forget' : hold ? 'wait' : wants ? NOW[action] : 'none',
        current: record?.spec.version,
        wanted: run.contents.sourceOf(cluster)?.version,
        reason: hold?.reason,
        message: hold?.message ?? (reasonOf(cluster.name, addon) || undefined),
      });
    }
  });
  targets.sort((a, b) => compareNames(a.cluster, b.cluster, 'native'));
  return { targets, detached, ...(recheckAfter !== undefined && { recheckAfter }) };
}
