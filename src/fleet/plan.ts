/** What one step of a fleet would do now, as a table of clusters and add-ons. Pure. */
import { Memo } from '../rollout/content.ts';
import type { Observed, Writes } from '../rollout/fleet.ts';
import { step, waitingIn } from '../rollout/step.ts';
import type { State } from '../rollout/strategy.ts';
import { Fleet, targetOf } from '../rollout/target.ts';

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
  const memo = new Memo();
  const { put, drop, detached, recheckAfter } = step(observed, now, memo);
  const keyOf = (one: { readonly cluster: string; readonly addon: string }): string => `${one.cluster} ${one.addon}`;
  const starts = new Set(put.map(keyOf));
  const drops = new Set(drop.map(keyOf));
  const holds = new Map(waitingIn(observed, now, { memo }).map((one) => [keyOf(one), one]));
  const fleet = new Fleet(observed, now, memo);
  const targets: PlannedTarget[] = [];
  for (const cluster of fleet.clusters.values()) {
    for (const run of fleet.runs.values()) {
      const target = targetOf(run, cluster);
      if (target === undefined) continue;
      const key = keyOf({ cluster: cluster.name, addon: run.addon.name });
      const hold = holds.get(key);
      targets.push({
        cluster: cluster.name,
        addon: run.addon.name,
        state: target.state,
        now: drops.has(key) ? 'forget' : hold ? 'wait' : starts.has(key) ? NOW[target.action] : 'none',
        current: target.record?.spec.version,
        wanted: run.contents.sourceOf(cluster)?.version,
        reason: hold?.reason,
        message: hold?.message ?? (reasonOf(cluster.name, run.addon.name) || undefined),
      });
    }
  }
  return { targets, detached, ...(recheckAfter !== undefined && { recheckAfter }) };
}
