/** What one step of a fleet would do now, as a table of clusters and add-ons. Pure. */
import { Memo } from '../rollout/content.ts';
import type { FleetAddonStatus, Observed, Writes } from '../rollout/fleet.ts';
import { compareNames } from '../rollout/groups.ts';
import { step, waitingIn } from '../rollout/step.ts';
import type { State } from '../rollout/strategy.ts';

export interface PlannedTarget {
  readonly cluster: string;
  readonly addon: string;
  readonly state: State;
  /** `wait`: it is to change, and something holds it; `go back`: to what was healthy there; `forget`: only its record goes. */
  readonly now: 'install' | 'update' | 'go back' | 'reinstall' | 'remove' | 'forget' | 'wait' | 'none';
  /** Versions; undefined for a manifest, which has none. */
  readonly current: string | undefined;
  readonly wanted: string | undefined;
  /** Why it waits, in one word for programs. */
  readonly reason: string | undefined;
  /** Why it waits, or what its record says. */
  readonly message: string | undefined;
  /** Since when it waits, or has its state, in seconds since 1970; undefined if that is not known. */
  readonly since: number | undefined;
}

export interface PlannedFleet extends Pick<Writes, 'detached' | 'recheckAfter'> {
  readonly targets: readonly PlannedTarget[];
  /** How far each is, in the order of the files. */
  readonly addons: readonly (Pick<FleetAddonStatus, 'revision' | 'since' | 'stopped' | 'counts' | 'batch'> & {
    readonly name: string;
    readonly paused: boolean;
  })[];
}

const NOW = { create: 'install', update: 'update', reinstall: 'reinstall', delete: 'remove', none: 'none' } as const;

/** Targets in natural order of their clusters, then of their add-ons; `now` in seconds since 1970. */
export function planFleet(
  observed: Observed,
  now: number,
  reasonOf: (cluster: string, addon: string) => string = () => '',
): PlannedFleet {
  const targets: PlannedTarget[] = [];
  const {
    detached,
    recheckAfter,
    status: changed,
  } = step(observed, now, new Memo(), (plan) => {
    const { run, targets: planned, dropped } = plan;
    const addon = run.addon.name;
    const waiting = new Map(waitingIn(plan).map((one) => [one.cluster, one]));
    for (const { cluster, state, drop, hold, wants, action, goal, record } of [...planned, ...dropped]) {
      targets.push({
        cluster: cluster.name,
        addon,
        state,
        now: drop !== undefined ? 'forget' : hold ? 'wait' : wants ? (goal ? 'go back' : NOW[action]) : 'none',
        current: record?.spec.version,
        wanted: (goal ?? run.contents.sourceOf(cluster))?.version,
        reason: hold?.reason,
        message: hold?.message ?? (reasonOf(cluster.name, addon) || undefined),
        since: waiting.get(cluster.name)?.since ?? record?.status?.since,
      });
    }
  });
  targets.sort((a, b) => compareNames(a.cluster, b.cluster, 'native'));
  const addons = observed.addons.flatMap(({ name, paused = false, status: before }) => {
    const status = changed.find(({ addon }) => addon === name)?.status ?? before;
    if (status === undefined) return [];
    const { revision, since, stopped, counts, batch } = status;
    return [{ name, paused, revision, since, ...(stopped !== undefined && { stopped }), counts, batch }];
  });
  return { targets, addons, detached, ...(recheckAfter !== undefined && { recheckAfter }) };
}
