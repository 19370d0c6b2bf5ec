/** Actions of a plan for what an upgrade does to the node around the hooks of a run. Pure. */
import { actionId } from './action-id.ts';
import type { LastRun } from './continue-plan.ts';
import type { PlannedAction, RunPlan } from './run-plan.ts';

export const NODE_ACTIONS = { drain: actionId('node', 'drain'), uncordon: actionId('node', 'uncordon') } as const;

interface Because {
  readonly because: string;
}

/** The add-on that is upgraded, and why each step is taken. */
interface NodeReasons {
  readonly addon: string;
  readonly drain?: Because | undefined;
  readonly uncordon: Because;
}

/** The plan with these steps: before the first hook, and after the last. */
export function withNodeActions(plan: RunPlan, node: NodeReasons | undefined): RunPlan {
  if (node === undefined) return plan;
  const action = (id: string, { because }: Because): PlannedAction => ({
    id,
    kind: 'node',
    addon: node.addon,
    because,
  });
  const first = plan.actions.findIndex(({ kind }) => kind !== 'fetch' && kind !== 'extract');
  const at = first === -1 ? plan.actions.length : first;
  return {
    ...plan,
    actions: [
      ...plan.actions.slice(0, at),
      ...(node.drain === undefined ? [] : [action(NODE_ACTIONS.drain, node.drain)]),
      ...plan.actions.slice(at),
      action(NODE_ACTIONS.uncordon, node.uncordon),
    ],
  };
}

/** Whether a run that did not finish has left the node to its next one. */
export function owesUncordon(last: LastRun | undefined): boolean {
  if (last?.planned === undefined || last.outcome === 'finished' || last.done.has(NODE_ACTIONS.uncordon)) return false;
  return last.planned.plan.actions.some(({ id }) => id === NODE_ACTIONS.uncordon);
}
