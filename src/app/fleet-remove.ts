/** Removes an add-on that is in no file any more from the clusters of a fleet. */
import type { Context } from '../core/context.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import type { Observed } from '../fleet/rollout/fleet.ts';
import type { FleetPass } from './fleet-apply.ts';
import { makePass } from '../fleet/run/deliver.ts';
import { observeFleet, fleetPlanOf, readWhole, type FleetPlan } from '../fleet/run/observed-fleet.ts';
import { FLEET_REMOVE, type FleetRemoveRequest } from '../requests/fleet.ts';

/** What {@link removeFromFleet} would do; changes nothing. */
export const planFleetRemoval = useCase(FLEET_REMOVE, async (request, context): Promise<FleetPlan> => {
  const { observe } = await openRemoval(request, context);
  return ofOne(fleetPlanOf(await observe()), request.addon);
});

/**
 * Removes it from each cluster that has it, unless another add-on of the fleet takes over its release there. `USAGE` if a
 * file has it: it would come back.
 */
export const removeFromFleet = useCase(FLEET_REMOVE, async (request, context): Promise<FleetPass> => {
  const { folder, observe } = await openRemoval(request, context);
  await using _claim = await folder.claim();
  const { after, done } = await makePass(folder, await observe(), { request, context, only: request.addon });
  return { ...ofOne(fleetPlanOf(after), request.addon), done };
});

async function openRemoval({ addon, ...request }: FleetRemoveRequest, context: Context) {
  const files = await readWhole(request, context);
  const written = files.fleet.addons.find(({ name }) => name === addon);
  if (written !== undefined) {
    const { file, line } = written.findings.placeOf(['metadata', 'name']);
    throw new CurlewError('USAGE', `cannot remove ${addon}: it is in ${file}:${line}`, {
      hint: 'delete it from the files, then run the same command again; for some clusters, change its clusterSelector',
    });
  }
  const adapt = (observed: Observed, now: number): Observed => {
    const record = observed.clusterAddons.find((one) => one.addon === addon);
    const going = {
      name: addon,
      generation: 1,
      // By which others may take it over.
      identity: record?.spec.identity ?? addon,
      source: { content: {} },
      clusterSelector: {},
      deleting: true,
      // This command is the approval, and tries again what did not end in time.
      orders: { generation: 1, at: now, removals: Infinity, retry: now + 1 },
    };
    return { ...observed, addons: [...observed.addons, going] };
  };
  const observe = async () => observeFleet(files, request, context, adapt);
  return { folder: files.folder, observe };
}

function ofOne(plan: FleetPlan, name: string): FleetPlan {
  const targets = plan.targets.filter(({ addon }) => addon === name);
  return { ...plan, targets, addons: [], detached: [] };
}
