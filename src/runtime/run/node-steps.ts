/**
 * Performs what an upgrade does to the node around the hooks of a run, as actions of its journal: a run that is cut before the last of them is
 * unfinished, so that `status`, `why`, `resume` and the same command know what is left.
 */
import { reportStep } from '../../core/events.ts';
import { NODE_ACTIONS } from '../plan/node-actions.ts';
import type { Run } from './run.ts';

export async function drainOwnNode(run: Run): Promise<void> {
  await perform('drain', run);
}

export async function uncordonOwnNode(run: Run): Promise<void> {
  await perform('uncordon', run);
}

async function perform(name: keyof typeof NODE_ACTIONS, { node, last, journal, report }: Run): Promise<void> {
  const step = node?.[name];
  if (step === undefined) return;
  const id = NODE_ACTIONS[name];
  await journal.append({ type: 'started', action: id, attempt: (last?.attempts.get(id) ?? 0) + 1 });
  await reportStep(report, { id, title: step.title }, step.perform, () => 'done');
  await journal.append({ type: 'done', action: id, outcome: 'done' });
}
