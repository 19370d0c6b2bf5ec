/** The state of one add-on on one cluster, and how long it keeps its place in a batch. Pure. */
import type { Rules } from './limits.ts';

export type State =
  | 'ToApply'
  | 'Progressing'
  | 'Succeeded'
  | 'Failed'
  | 'TimedOut'
  | 'Skipped'
  | 'Unreachable'
  | 'Removing';

/** Times are seconds, of any common origin. */
export interface Standing {
  readonly cluster: string;
  readonly state: State;
  /** When the state began; undefined: now. */
  readonly since?: number | undefined;
}

export interface Times {
  readonly now: number;
  /** How long a success must last before its place is free. */
  readonly soak: number;
  /** How long an attempt may take. */
  readonly deadline: number;
}

export interface Settled {
  readonly state: State;
  /** It has a place in the batch. */
  readonly holds: boolean;
  /** Seconds after which time alone changes this; infinite if it does not. */
  readonly recheckAfter: number;
}

const NEVER = Number.POSITIVE_INFINITY;

/** A failure keeps its place until the deadline by the rules of Open Cluster Management; natively it counts, and the place is free. */
export function settle({ state, since }: Omit<Standing, 'cluster'>, times: Times, rules: Rules): Settled {
  if (state === 'ToApply') return { state, holds: true, recheckAfter: NEVER };
  const isDone = state === 'TimedOut' || state === 'Skipped' || state === 'Unreachable';
  if (isDone || (state === 'Failed' && rules === 'native')) return { state, holds: false, recheckAfter: NEVER };
  const left = (since ?? times.now) + (state === 'Succeeded' ? times.soak : times.deadline) - times.now;
  if (left > 0) return { state, holds: true, recheckAfter: left };
  return { state: state === 'Succeeded' ? state : 'TimedOut', holds: false, recheckAfter: NEVER };
}

export function isFailure(state: State): boolean {
  return state === 'Failed' || state === 'TimedOut';
}
