/** What would happen to a fleet now, and how it is. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { withManifests } from '../fleet/run/planned-manifests.ts';
import { observeFleet, fleetPlanOf, readWhole, type FleetPlan } from '../fleet/run/observed-fleet.ts';
import { FLEET_PASS, FLEET_PLAN, type FleetPlanRequest } from '../requests/fleet.ts';

export type { PlannedTarget } from '../fleet/fleet-plan.ts';
export type { FleetDiff, FleetPlan } from '../fleet/run/observed-fleet.ts';

/** Changes nothing. `SPEC_INVALID` for mistakes in the files; a cluster that does not answer holds no other. */
export const planFleets = useCase(FLEET_PLAN, async (request, context): Promise<FleetPlan> => plan(request, context));

/** What a pass with this request would do, as {@link planFleets}. */
export const planFleetPass = useCase(FLEET_PASS, async (request, context): Promise<FleetPlan> =>
  plan(request, context),
);

async function plan(request: FleetPlanRequest, context: Context): Promise<FleetPlan> {
  const observed = await observeFleet(await readWhole(request, context), request, context);
  return withManifests(fleetPlanOf(observed), observed, request, context);
}
