/** Which machine goes first, and how many may be unhealthy. Pure. */
import { CurlewError } from '../core/errors.ts';
import { compareText } from '../core/ref.ts';
import { sizeOf } from '../fleet/rollout/limits.ts';

export interface Pickable {
  readonly name: string;
  /** Its failure domain. */
  readonly zone?: string | undefined;
  readonly ageDays?: number | undefined;
  readonly outdated?: boolean;
  readonly healthy?: boolean;
  readonly deleteAnnotation?: boolean;
}

/**
 * The control plane that is next: what a person marked, else an outdated one that is unhealthy, else an outdated one, else any; of these
 * one in a zone that is gone, else in the zone that has most; there the oldest. (KubeadmControlPlane,
 * selectMachineForInPlaceUpdateOrScaleDown.) Equals are in the order given. `zones` are all that exist, by default those in use.
 */
export function pickControlPlane<M extends Pickable>(machines: readonly M[], zones?: readonly string[]): M | undefined {
  const outdated = machines.filter((one) => one.outdated === true);
  const choices = [
    outdated.filter((one) => one.deleteAnnotation === true),
    machines.filter((one) => one.deleteAnnotation === true),
    outdated.filter((one) => one.healthy === false),
    outdated,
    machines,
  ];
  const able = choices.find((some) => some.length > 0) ?? [];
  const lost = zones && able.filter(({ zone }) => zone === undefined || !zones.includes(zone));
  const among = lost !== undefined && lost.length > 0 ? lost : able;
  const crowd = (of: readonly M[], { zone }: M): number => of.filter((one) => one.zone === zone).length;
  const [first] = among.toSorted(
    (a, b) =>
      crowd(able, b) - crowd(able, a) || crowd(machines, b) - crowd(machines, a) || (b.ageDays ?? 0) - (a.ageDays ?? 0),
  );
  return first;
}

export interface Deletable extends Pick<Pickable, 'name' | 'ageDays' | 'healthy' | 'deleteAnnotation'> {
  readonly deleting?: boolean;
  /** An update in place is under way. */
  readonly updating?: boolean;
}

export type DeletionOrder = 'Random' | 'Newest' | 'Oldest';

/** Machines of a lower rank go first; the last rank has no reason to go but its age. */
function rankOf({ deleting, deleteAnnotation, updating, healthy }: Deletable): number {
  const rank = [deleting, deleteAnnotation, updating, healthy === false].indexOf(true);
  return rank < 0 ? Infinity : rank;
}

/** Machines in the order in which they go, as by a MachineSet; equals by name. */
export function inDeletionOrder<M extends Deletable>(machines: readonly M[], order: DeletionOrder): readonly M[] {
  const sign = { Random: 0, Newest: 1, Oldest: -1 }[order];
  const ageOf = (one: Deletable): number => (rankOf(one) < Infinity ? 0 : sign * Math.max(0, one.ageDays ?? 0));
  return machines.toSorted(
    (a, b) =>
      Number(rankOf(a) > rankOf(b)) - Number(rankOf(a) < rankOf(b)) ||
      ageOf(a) - ageOf(b) ||
      compareText(a.name, b.name),
  );
}

/**
 * Whether so few are unhealthy that repairs may continue by themselves: at most `threshold` (a percentage rounds down), or within `inRange`
 * such as `[3-5]`, which decides if it is given. `SPEC_INVALID` for any other text.
 */
export function mayRepair(counts: {
  readonly total: number;
  readonly unhealthy: number;
  readonly threshold?: number | string | undefined;
  readonly inRange?: string | undefined;
}): boolean {
  const { total, unhealthy, threshold = '100%', inRange } = counts;
  if (inRange === undefined) {
    const percent = /^(\d{1,9})%$/.exec(String(threshold))?.[1];
    const most =
      percent === undefined ? sizeOf(threshold, Infinity, 0, 'native') : Math.floor((Number(percent) * total) / 100);
    return unhealthy <= most;
  }
  const [, from, to] = /^\[(\d{1,9})-(\d{1,9})\]$/.exec(inRange) ?? [];
  if (from === undefined || Number(from) > Number(to)) {
    throw new CurlewError('SPEC_INVALID', `cannot read the range ${JSON.stringify(inRange)}: it is not two counts`, {
      hint: 'write it as [3-5]',
    });
  }
  return unhealthy >= Number(from) && unhealthy <= Number(to);
}
