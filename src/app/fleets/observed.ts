/** A fleet as it is now: from its files, its clusters and its state. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import type { Context } from '../../core/context.ts';
import { counted } from '../../core/counted.ts';
import type { Entry } from '../../channel/channel.ts';
import type { Look } from '../../fleet/fleet.ts';
import { observedOf, recordedReason } from '../../fleet/observe.ts';
import { planFleet, type PlannedFleet } from '../../fleet/plan.ts';
import { withLooks, type FleetOrders, type FleetState } from '../../fleet/state.ts';
import type { Observed } from '../../rollout/fleet.ts';
import type { FleetPlanRequest } from '../requests/fleet.ts';
import { hashContents, lookAtClusters } from './clusters.ts';
import { openFleet, type OpenedFleet } from './files.ts';
import { StateFolder } from './state.ts';

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
  /** When, in seconds since 1970. */
  readonly at: number;
}

export interface ObservedFleet {
  readonly fleet: OpenedFleet;
  readonly hashOf: (entry: Entry) => string;
  readonly looks: ReadonlyMap<string, Look>;
  readonly observed: Observed;
  /** Seconds since 1970. */
  readonly now: number;
  readonly state: FleetState;
  readonly orders: FleetOrders;
}

/** Reads the files. `SPEC_INVALID` for mistakes in them: then no cluster is contacted. */
export async function readWhole(
  request: Pick<FleetPlanRequest, 'files' | 'state'>,
  context: Context,
): Promise<{ readonly fleet: OpenedFleet; readonly folder: StateFolder }> {
  const fleet = await openFleet({ files: request.files }, context);
  const { diagnostics, errors } = fleet;
  if (errors > 0) {
    throw new CurlewError('SPEC_INVALID', `cannot plan the fleet: ${counted(errors, 'error')} in its files`, {
      diagnostics,
      hint: 'curlew fleet check shows them',
    });
  }
  return { fleet, folder: folderOf(fleet, request, context) };
}

/** Its folder of state. */
export function folderOf(
  { folder }: Pick<OpenedFleet, 'folder'>,
  { state }: Pick<FleetPlanRequest, 'state'>,
  context: Context,
): StateFolder {
  return new StateFolder(state ?? join(folder, '.curlew/fleet'), context);
}

/** Asks all clusters. One that does not answer holds no other. */
export async function observeFleet(
  { fleet, folder }: { readonly fleet: OpenedFleet; readonly folder: StateFolder },
  request: FleetPlanRequest,
  context: Context,
): Promise<ObservedFleet> {
  const [kept, orders] = [await folder.read(), await folder.readOrders()];
  const hashOf = await hashContents(fleet, context);
  const looks = await lookAtClusters(fleet.clusters, request, context);
  const now = Math.floor(Date.now() / 1000);
  const state = withLooks(kept, looks, now);
  return {
    fleet,
    hashOf,
    looks,
    now,
    state,
    orders,
    observed: observedOf(fleet, looks, hashOf, { now, state, orders }),
  };
}

/** What would happen to it now. */
export function planOf({ fleet, looks, observed, now, state }: ObservedFleet): FleetPlan {
  const reasonOf = (cluster: string, addon: string): string =>
    recordedReason(looks.get(cluster), addon, state.addons[addon]?.failures[cluster]?.reason);
  const planned = planFleet(observed, now, reasonOf);
  const warnings = fleet.diagnostics.map(({ place, message }) => `${place.file}:${place.line}: ${message}`);
  const clusters = [...looks].map(([name, look]) => {
    if ('problem' in look) return { name, problem: look.problem };
    const { server, kubernetes } = look;
    warnings.push(...look.warnings.map((text) => `${name}: ${text}`));
    return { name, server, kubernetes };
  });
  return { ...planned, clusters, warnings, at: now };
}
