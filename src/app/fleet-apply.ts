/** Carries out what a fleet needs now: one pass, or passes until it is interrupted. */
import { asError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import type { Ended } from '../fleet/pass.ts';
import { pause } from '../platform/limit/repeat.ts';
import { makePass } from '../fleet/run/deliver.ts';
import { observeFleet, fleetPlanOf, readWhole, type FleetPlan } from '../fleet/run/observed-fleet.ts';
import { FLEET_PASS, FLEET_PASSES } from '../requests/fleet.ts';

export interface FleetPass extends FleetPlan {
  /** What this pass has done. The rest says how the fleet is after it. */
  readonly done: readonly Ended[];
}

/**
 * One pass: asks all clusters, and brings onto each what may begin there now. What begins is in the state before, so that a pass that
 * was interrupted is continued by the next one. `BUSY` if another process makes a pass from the same state.
 */
export const applyFleet = useCase(FLEET_PASS, async (request, context): Promise<FleetPass> => {
  const files = await readWhole(request, context);
  await using _claim = await files.folder.claim();
  const { after, done } = await makePass(files.folder, await observeFleet(files, request, context), {
    request,
    context,
  });
  return { ...fleetPlanOf(after), done };
});

/** Repeats passes until the signal aborts. Each reads the files again; one that fails is reported. */
export const watchFleet = useCase(FLEET_PASSES, async ({ every, ...request }, context): Promise<FleetPass> => {
  const { signal, report } = context;
  for (;;) {
    let text: string;
    try {
      const { done, targets } = await applyFleet(request, context);
      const waits = targets.filter(({ now }) => now === 'wait').length;
      const ended = done.filter(({ result }) => result === 'done');
      // Progress has said what is done, but not why the rest is not.
      const others = done.filter(({ result }) => result !== 'done').map(sentenceOf);
      text = [...others, `${ended.length} done, ${waits} waiting`].join('; ');
    } catch (error) {
      signal.throwIfAborted();
      text = asError(error).message;
    }
    report({ type: 'note', level: 'info', text });
    await pause(every, { signal });
  }
});

function sentenceOf({ cluster, addon, act, result, reason }: Ended): string {
  return `${cluster}: ${act} ${addon} ${result}${reason === '' ? '' : `: ${reason}`}`;
}
