/** Carries out what a fleet needs now: one pass, or passes until it is interrupted. */
import type { Context } from '../core/context.ts';
import { asError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { observedOf } from '../fleet/observe.ts';
import { beginPass, decide, endPass, revisionsOf, type Done } from '../fleet/pass.ts';
import { withLooks } from '../fleet/state.ts';
import { pause } from '../platform/http/retry.ts';
import { lookAtClusters } from './fleets/clusters.ts';
import { runJobs } from './fleets/deliver.ts';
import { observeFleet, planOf, readWhole, type FleetPlan } from './fleets/observed.ts';
import { openChannels } from './ports/channel-files.ts';
import { FLEET_PASS, FLEET_PASSES } from './requests/fleet.ts';

export interface FleetPass extends FleetPlan {
  /** What this pass has done. The rest says how the fleet is after it. */
  readonly done: readonly Done[];
}

/**
 * One pass: asks all clusters, and brings onto each what may begin there now. What begins is in the state before, so that a pass that
 * was interrupted is continued by the next one. `BUSY` if another process makes a pass from the same state.
 */
export const applyFleet = useCase(FLEET_PASS, async (request, context: Context): Promise<FleetPass> => {
  const files = await readWhole(request, context);
  const { fleet, folder } = files;
  await using _claim = await folder.claim();
  const before = await observeFleet(files, request, context);
  const { observed, now, hashOf, looks, orders } = before;
  const decided = decide(observed, now);
  const { jobs } = decided;
  const revisions = revisionsOf(fleet, observed, hashOf);
  const state = beginPass(before.state, observed, { ...decided, now, revisions });
  await folder.write(state);
  if (jobs.length === 0) return { ...planOf(before), done: [] };
  await using opened = await openChannels({ ...request, channels: [] }, context);
  const read = folder.reader(opened, context);
  const done = await runJobs(jobs, { request, context, folder, state, before, revisions, read });
  const touched = fleet.clusters.filter(({ name }) => done.some(({ cluster }) => cluster === name));
  const after = new Map([...looks, ...(await lookAtClusters(touched, request, context))]);
  const then = Math.floor(Date.now() / 1000);
  const ended = endPass(withLooks(state, after, then), done, then);
  await folder.write(ended);
  await folder.sweep(ended);
  const seen = { state: ended, looks: after, now: then };
  return { ...planOf({ ...before, ...seen, observed: observedOf(fleet, after, hashOf, { ...seen, orders }) }), done };
});

/** Repeats passes until the signal aborts. Each reads the files again; one that fails is reported. */
export const watchFleet = useCase(FLEET_PASSES, async ({ every, ...request }, context: Context): Promise<FleetPass> => {
  const { signal, report } = context;
  for (;;) {
    let text: string;
    try {
      const { done, targets } = await applyFleet(request, context);
      const waits = targets.filter(({ now }) => now === 'wait').length;
      text = [...done.map(sentenceOf), `${waits} waiting`].join('; ');
    } catch (error) {
      signal.throwIfAborted();
      text = asError(error).message;
    }
    report({ type: 'note', level: 'info', text });
    await pause(every, { signal });
  }
});

function sentenceOf({ cluster, addon, act, result, reason }: Done): string {
  return `${cluster}: ${act} ${addon} ${result}${reason === '' ? '' : `: ${reason}`}`;
}
