/** Going on where a run has stopped: when that is safe, and what is left to be done. Pure. */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { hookFunction } from '../hooks/hooks.ts';
import type { LastRun } from './last-run.ts';
import { isRemoved } from './plan-phases.ts';
import type { PlanOptions, PlannedAction, PlannedAddon, RunPlan } from './run-plan.ts';

/** What a plan is made of. Two runs of the same want the same of the same machine. */
export function runIdentity({ kind, addons }: RunPlan, { reapply, images, variables, keepData }: PlanOptions): Digest {
  const rows = addons.map((addon) => {
    const { ref, digest, settings } = addon;
    const row = [ref.tree, ref.name, ref.version, digest, settings];
    // What is left in the cluster of one that goes changes while the run removes it.
    return isRemoved(addon) ? [...row, keepData === true ? 'removed but its data' : 'removed'] : row;
  });
  return digestOf(canonicalJson([kind, rows, reapply, images, digestOf(canonicalJson(variables))]));
}

export interface Now {
  readonly identity: Digest;
  readonly boot: string;
}

/**
 * True when the hooks that a run has done need not run again: it did not finish, was asked for the same, and the machine
 * has not been started anew since, which would have undone what hooks did to the kernel and to processes.
 */
export function canContinue(last: LastRun, now: Now): boolean {
  const { planned, outcome } = last;
  if (planned === undefined || outcome === 'finished') return false;
  return planned.identity === now.identity && planned.boot === now.boot;
}

/** Acts beside the plan that a run and those that go on from it do once. */
export type OnceAction = 'cluster last' | 'cluster current' | 'cluster removed';

/** What holds from run to run once it is done. */
const LASTING = /^(?:hook|cluster) /;

/** What is left of the plan of a run that can be gone on from; `fresh` is the plan that would begin anew. */
export function continuePlan(fresh: RunPlan, last: LastRun): RunPlan {
  const before = last.planned?.plan;
  if (before === undefined) return fresh;
  const bringing = fresh.actions.filter(({ kind }) => kind === 'fetch' || kind === 'extract');
  // A hook that took too long is given more time by the same command with another limit.
  const limits = new Map(
    fresh.actions.flatMap((one) => (one.kind === 'hook' ? [[one.addon, one.limit] as const] : [])),
  );
  const rest = before.actions.flatMap((action): readonly PlannedAction[] => {
    if (action.kind === 'fetch' || action.kind === 'extract') return [];
    if (action.kind !== 'hook') return [action];
    const because = last.refuted.get(action.id);
    const left = because === undefined ? action : installAfter(action, because);
    return last.done.has(left.id) ? [] : [limits.has(left.addon) ? withLimit(left, limits.get(left.addon)) : left];
  });
  const addons = before.addons.map((addon): PlannedAddon => {
    const because = last.refuted.get(`hook ${hookFunction(addon.ref.name, 'already_applied')}`);
    return because === undefined ? addon : { ...addon, mode: 'install', because };
  });
  const done = [...last.done].filter(([action]) => LASTING.test(action)).map(([action, run]) => ({ action, run }));
  return { ...fresh, continues: { run: last.run, done }, addons, actions: [...bringing, ...rest] };
}

type HookAction = Extract<PlannedAction, { kind: 'hook' }>;

function withLimit({ limit: _before, ...action }: HookAction, limit: number | undefined): HookAction {
  return limit === undefined ? action : { ...action, limit };
}

/** The action that installs an add-on whose check has failed. */
export function installAfter(check: HookAction, because: string): HookAction {
  const name = hookFunction(check.addon, 'install');
  return { ...check, id: `hook ${name}`, hook: 'install', function: name, because };
}
