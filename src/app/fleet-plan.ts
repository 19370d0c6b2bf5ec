/** What would happen to a fleet now. */
import type { Context } from '../core/context.ts';
import { counted } from '../core/counted.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { observedOf, recordedReason } from '../fleet/observe.ts';
import { planFleet, type PlannedFleet } from '../fleet/plan.ts';
import { hashContents, lookAtClusters } from './fleets/clusters.ts';
import { openFleet } from './fleets/files.ts';
import { FLEET_PLAN } from './requests/fleet.ts';

export type { PlannedTarget } from '../fleet/plan.ts';

export interface FleetPlan extends PlannedFleet {
  /** In the order of the files. */
  readonly clusters: readonly {
    readonly name: string;
    readonly server?: string;
    readonly kubernetes?: string;
    /** Why it has not answered. */
    readonly problem?: string;
  }[];
  readonly warnings: readonly string[];
}

const TIMEOUT_MS = 20_000;

/** Changes nothing. `SPEC_INVALID` for mistakes in the files; a cluster that does not answer holds no other. */
export const planFleets = useCase(FLEET_PLAN, async (request, context: Context): Promise<FleetPlan> => {
  const fleet = await openFleet(request, context);
  const { diagnostics, errors } = fleet;
  if (errors > 0) {
    throw new CurlewError('SPEC_INVALID', `cannot plan the fleet: ${counted(errors, 'error')} in its files`, {
      diagnostics,
      hint: 'curlew fleet check shows them',
    });
  }
  const hashOf = await hashContents(fleet, context);
  const looks = await lookAtClusters(fleet.clusters, request.timeout ?? TIMEOUT_MS, context);
  const reasonOf = (cluster: string, addon: string): string => recordedReason(looks.get(cluster), addon);
  const planned = planFleet(observedOf(fleet, looks, hashOf), Math.floor(Date.now() / 1000), reasonOf);
  const warnings = diagnostics.map(({ place, message }) => `${place.file}:${place.line}: ${message}`);
  const clusters = [...looks].map(([name, look]) => {
    if ('problem' in look) return { name, problem: look.problem };
    const { server, kubernetes } = look;
    warnings.push(...look.warnings.map((text) => `${name}: ${text}`));
    return { name, server, kubernetes };
  });
  return { ...planned, clusters, warnings };
});
