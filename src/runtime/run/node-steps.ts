/**
 * What an upgrade does to the node around the hooks of a run, as actions of its journal: a run that is cut before the last of them is
 * unfinished, so that `status`, `why`, `resume` and the same command know what is left.
 */
import { reportStep } from '../../core/events.ts';
import { actionId } from '../plan/action-id.ts';
import type { LastRun } from '../plan/continue-plan.ts';
import type { PlannedAction, RunPlan } from '../plan/run-plan.ts';
import type { Run } from './run.ts';
import type { NodeSteps } from './run-result.ts';

const ids = { drain: actionId('node', 'drain'), uncordon: actionId('node', 'uncordon') } as const;

/** The plan with these steps: before the first hook, and after the last. */
export function withNodeSteps(plan: RunPlan, node: NodeSteps | undefined): RunPlan {
  if (node === undefined) return plan;
  const action = (id: string, because: string): PlannedAction => ({ id, kind: 'node', addon: node.addon, because });
  const drain = node.drain === undefined ? [] : [action(ids.drain, node.drain.because)];
  const first = plan.actions.findIndex(({ kind }) => kind !== 'fetch' && kind !== 'extract');
  const at = first === -1 ? plan.actions.length : first;
  const rest = plan.actions.slice(at);
  return {
    ...plan,
    actions: [...plan.actions.slice(0, at), ...drain, ...rest, action(ids.uncordon, node.uncordon.because)],
  };
}

/** Whether a run that did not finish has left the node to its next one. */
export function owesUncordon(last: LastRun | undefined): boolean {
  if (last?.planned === undefined || last.outcome === 'finished' || last.done.has(ids.uncordon)) return false;
  return last.planned.plan.actions.some(({ id }) => id === ids.uncordon);
}

export async function drainNode(run: Run): Promise<void> {
  await perform('drain', run);
}

export async function uncordonNode(run: Run): Promise<void> {
  await perform('uncordon', run);
}

async function perform(name: keyof typeof ids, { node, plan, last, journal, report }: Run): Promise<void> {
  const step = node?.[name];
  const action = plan.actions.find(({ id }) => id === ids[name]);
  if (step === undefined || action === undefined) return;
  const { id } = action;
  await journal.append({ type: 'started', action: id, attempt: (last?.attempts.get(id) ?? 0) + 1 });
  await reportStep(report, { id, title: step.title }, step.perform, () => 'done');
  await journal.append({ type: 'done', action: id, outcome: 'done' });
}
