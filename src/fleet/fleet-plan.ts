/** What one step of a fleet would do now, as a table of clusters and add-ons. Pure. */
import { Memo } from './rollout/content.ts';
import type { FleetAddonStatus, Observed, Writes } from './rollout/fleet.ts';
import { compareNames } from './rollout/groups.ts';
import { isLeft } from './rollout/leaving.ts';
import { step, waitingIn } from './rollout/step.ts';
import { SILENT } from './rollout/target.ts';
import { driftAt, type DriftOf } from './drift.ts';
import { isFailure, type State } from './rollout/strategy.ts';

export interface PlannedTarget {
  readonly cluster: string;
  readonly addon: string;
  readonly state: State;
  /**
   * `wait`: it is to change, and something holds it; `go back`: to what was healthy there; `restore`: objects that others have
   * deleted or changed; `continue`: what an earlier pass has begun; `forget`: only its record goes.
   */
  readonly now:
    | 'install'
    | 'update'
    | 'go back'
    | 'reinstall'
    | 'restore'
    | 'remove'
    | 'continue'
    | 'forget'
    | 'wait'
    | 'none';
  /** Versions; undefined for a manifest, which has none. */
  readonly current: string | undefined;
  readonly wanted: string | undefined;
  /** Why it waits, in one word for programs. */
  readonly reason: string | undefined;
  /** Why it waits, or why what is about to begin would fail, or what its record says. */
  readonly message: string | undefined;
  /** Since when it waits, or has its state, in seconds since 1970; undefined if that is not known. */
  readonly since: number | undefined;
  /** Objects that the change would delete, and those that would stay although its content no longer has them. */
  readonly deletes?: readonly string[];
  readonly stays?: readonly { readonly object: string; readonly why: string }[];
  /** Objects that earlier contents have left there. */
  readonly left?: readonly string[];
  /** Objects, with what others have added to them and `drift: Revert` leaves: `Service default/web: port 81 of kubectl-patch`. */
  readonly added?: readonly string[];
}

export interface PlannedFleet extends Pick<Writes, 'detached' | 'recheckAfter'> {
  readonly targets: readonly PlannedTarget[];
  /** Orders about whole add-ons that do not count. */
  readonly unheeded: readonly string[];
  /** How far each is, in the order of the files. */
  readonly addons: readonly (Pick<FleetAddonStatus, 'revision' | 'since' | 'stopped' | 'counts' | 'batch'> & {
    readonly name: string;
    readonly paused: boolean;
  })[];
}

const NOW = { create: 'install', update: 'update', reinstall: 'reinstall', delete: 'remove', none: 'none' } as const;

const LEFT = 'will leave its objects, since the cluster is no longer selected';
const CUT =
  'it has not answered since a change began there; it keeps its place in the batch until the progress deadline';
const LATE = 'it has not answered since a change began there, and the progress deadline is over';

/** Targets in natural order of their clusters, then of their add-ons; `now` in seconds since 1970. */
export function planFleet(
  observed: Observed,
  now: number,
  reasonOf: (cluster: string, addon: string) => string = () => '',
  driftOf: DriftOf = () => undefined,
): PlannedFleet {
  const targets: PlannedTarget[] = [];
  const unheeded: string[] = [];
  const {
    detached,
    recheckAfter,
    status: changed,
  } = step(observed, now, new Memo(), (plan) => {
    const { run, targets: planned, dropped } = plan;
    const addon = run.addon.name;
    const { rollback } = run.ordered.unheeded;
    if (rollback !== undefined) unheeded.push(`${addon}: ${rollback}`);
    const waiting = new Map(waitingIn(plan).map((one) => [one.cluster, one]));
    for (const target of [...planned, ...dropped]) {
      const { cluster, state, drop, hold, holds, wants, action, goal, record, isAsWanted } = target;
      const drift = driftAt(target, driftOf);
      const isSilent = !cluster.available && hold === undefined && !isFailure(state);
      const silence = isSilent ? (holds ? CUT : SILENT) : undefined;
      // What an earlier content has failed with says nothing about the one that begins.
      const isNew = wants && goal === undefined && !isAsWanted;
      const reason = isNew ? '' : reasonOf(cluster.name, addon);
      const recorded = reason || (isFailure(state) && !cluster.available ? LATE : undefined);
      // What waits to be tried again still says why it has failed.
      const held = hold && [!wants && isFailure(state) ? recorded : '', hold.message].filter(Boolean).join('; ');
      const isBegun = state === 'Progressing' || state === 'Removing';
      const isFree = cluster.available && cluster.paused !== true && run.addon.paused !== true;
      const next = wants
        ? goal
          ? 'go back'
          : isLeft(target)
            ? 'forget'
            : NOW[action]
        : isBegun && isFree
          ? 'continue'
          : drift
            ? 'restore'
            : 'none';
      // What goes back because it has failed is still a failure.
      const before = goal && record?.status && isFailure(record.status.state) ? record.status.state : state;
      targets.push({
        cluster: cluster.name,
        addon,
        state: before,
        now: hold || isSilent || drift?.reason !== undefined ? 'wait' : drop !== undefined ? 'forget' : next,
        current: record?.spec.version,
        wanted: (goal ?? run.contents.sourceOf(cluster))?.version,
        reason: hold?.reason ?? (silence && 'Unreachable') ?? drift?.reason,
        message: held ?? silence ?? drift?.message ?? drift?.what ?? (wants && isLeft(target) ? LEFT : recorded),
        since: waiting.get(cluster.name)?.since ?? (isSilent ? cluster.since : record?.status?.since),
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
  return { targets, unheeded, addons, detached, ...(recheckAfter !== undefined && { recheckAfter }) };
}
