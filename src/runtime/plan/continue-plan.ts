/** Resuming an unfinished run: when it is safe, and which actions remain. Pure. */
import { canonicalJson, digestOf, type Digest } from '../../core/digest.ts';
import { hookCall } from './hooks.ts';
import { actionId, hookActionId, parseActionId } from './action-id.ts';
import type { RunProgress } from '../journal/progress.ts';
import { isRemoved } from './order.ts';
import type { HookAction, PlanOptions, PlannedAction, PlannedAddon, RunPlan } from './run-plan.ts';

/** Digest of everything that a plan is made from. Runs with the same identity do the same on the same machine. */
export function runIdentity({ kind, addons }: RunPlan, { reapply, images, variables, keepData }: PlanOptions): Digest {
  const rows = addons.map((addon) => {
    const { ref, digest, settings } = addon;
    const row = [ref.tree, ref.name, ref.version, digest, settings];
    // Whether a removed add-on is still in the cluster changes during the run, so the mode is not part of the identity.
    return isRemoved(addon) ? [...row, keepData === true ? 'removed but its data' : 'removed'] : row;
  });
  return digestOf(canonicalJson([kind, rows, reapply, images, digestOf(canonicalJson(variables))]));
}

export type LastRun = RunProgress<RunPlan>;

export interface RunFingerprint {
  readonly identity: Digest;
  readonly boot: string;
}

/**
 * True if hooks that a run has done need not run again: it did not finish, its request is the same, and the machine has not
 * rebooted since. A reboot undoes what hooks did to the kernel and to processes.
 */
export function canContinue(last: LastRun, now: RunFingerprint): boolean {
  const { planned, outcome } = last;
  if (planned === undefined || outcome === 'finished') return false;
  return planned.identity === now.identity && planned.boot === now.boot;
}

/** True for actions that a run which resumes another one does not repeat. */
function isLasting(id: string): boolean {
  const kind = parseActionId(id)?.kind;
  return kind === 'hook' || kind === 'cluster';
}

/** The remaining plan of a run that can be resumed; `fresh` is the plan that starts over. */
export function continuePlan(fresh: RunPlan, last: LastRun): RunPlan {
  const before = last.planned?.plan;
  if (before === undefined) return fresh;
  const bringing = fresh.actions.filter(({ kind }) => kind === 'fetch' || kind === 'extract');
  // The same command with another limit gives more time to a hook that timed out.
  const limits = new Map(
    fresh.actions.flatMap((one) => (one.kind === 'hook' ? [[one.addon, one.limit] as const] : [])),
  );
  const rest = before.actions.flatMap((action): readonly PlannedAction[] => {
    // Steps of the node are planned again, by its state.
    if (action.kind === 'fetch' || action.kind === 'extract' || action.kind === 'node') return [];
    if (action.kind !== 'hook') return [action];
    const because = last.refuted.get(action.id);
    const next = because === undefined ? action : installAfter(action, because);
    return last.done.has(next.id) ? [] : [limits.has(next.addon) ? withLimit(next, limits.get(next.addon)) : next];
  });
  const addons = before.addons.map((addon): PlannedAddon => {
    const because = last.refuted.get(hookActionId(addon.ref.name, 'already_applied'));
    return because === undefined ? addon : { ...addon, mode: 'install', because };
  });
  const done = [...last.done].filter(([action]) => isLasting(action)).map(([action, run]) => ({ action, run }));
  return { ...fresh, continues: { run: last.run, done }, addons, actions: [...bringing, ...rest] };
}

function withLimit({ limit: _before, ...action }: HookAction, limit: number | undefined): HookAction {
  return limit === undefined ? action : { ...action, limit };
}

/** The action that installs an add-on whose check has failed. */
export function installAfter(check: HookAction, because: string): HookAction {
  const name = hookCall(check.addon, 'install');
  return { ...check, id: actionId('hook', name), hook: 'install', function: name, because };
}
