/** A fleet as it is now: from its files, its clusters and its state. */
import { join } from 'node:path';
import { CurlewError } from '../../core/errors.ts';
import type { Context } from '../../core/context.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { nearest } from '../../core/nearest.ts';
import { counted } from '../../core/counted.ts';
import type { Entry } from '../../cluster/channel/channel.ts';
import type { ChangedObject } from '../../cluster/deliver/outcome.ts';
import { driftIn } from '../drift.ts';
import type { Look } from '../fleet.ts';
import { havingIn, leftOf, observedOf, recordedReason, recordsOf } from '../observe.ts';
import { planFleet, type PlannedFleet } from '../fleet-plan.ts';
import { differencesIn } from '../differences.ts';
import { ordersFor, withLooks, type FleetOrders, type FleetState } from '../state.ts';
import type { Observed } from '../rollout/fleet.ts';
import type { FleetPlanRequest } from '../../requests/fleet.ts';
import { chartWarnings } from './chart-addresses.ts';
import { hashContents, lookAtClusters } from './clusters.ts';
import { findNewest, withNewest } from './newest.ts';
import { openFleet, type OpenedFleet } from './files.ts';
import { StateFolder } from './state.ts';

/** What changes in the objects of an add-on, in the same way on all of these clusters. */
export interface FleetDiff {
  readonly addon: string;
  readonly clusters: readonly string[];
  readonly objects: readonly ChangedObject[];
}

export interface FleetPlan extends Omit<PlannedFleet, 'unheeded'> {
  /** Clusters in the order of the files. */
  readonly clusters: readonly {
    readonly name: string;
    readonly server?: string;
    readonly kubernetes?: string;
    /** Why it has not answered. */
    readonly problem?: string;
  }[];
  readonly warnings: readonly string[];
  /** How rules differ from those of the program that a document is from. */
  readonly differences: readonly string[];
  /** When, in seconds since 1970. */
  readonly at: number;
  /** What is about to change, if that was asked for. */
  readonly diffs?: readonly FleetDiff[];
}

/** What a command sees differently at that time, such as an add-on that is to go. */
type Adapt = (observed: Observed, now: number) => Observed;

export interface ObservedFleet {
  readonly fleet: Omit<OpenedFleet, 'again'>;
  readonly hashOf: (entry: Entry) => string;
  readonly looks: ReadonlyMap<string, Look>;
  readonly observed: Observed;
  /** Seconds since 1970. */
  readonly now: number;
  readonly state: FleetState;
  /** Orders that count. */
  readonly orders: FleetOrders;
  /** Others were followed in another state, and are void. */
  readonly isStateLost: boolean;
  readonly adapt: Adapt;
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
  return { fleet, folder: stateFolderOf(fleet, request, context) };
}

/** Its folder of state. */
export function stateFolderOf(
  { folder }: Pick<OpenedFleet, 'folder'>,
  { state }: Pick<FleetPlanRequest, 'state'>,
  context: Context,
): StateFolder {
  return new StateFolder(state ?? join(folder, '.curlew/fleet'), context);
}

/** Asks all clusters. One that does not answer holds no other. */
export async function observeFleet(
  { fleet: written, folder }: { readonly fleet: OpenedFleet; readonly folder: StateFolder },
  { takeOver = [], ...request }: FleetPlanRequest,
  context: Context,
  adapt: Adapt = taking(takeOver),
): Promise<ObservedFleet> {
  const [stored, storedOrders] = [await folder.read(), await folder.readOrders()];
  const orders = ordersFor(stored, storedOrders);
  const looks = await lookAtClusters(written.clusters, request, context);
  const now = Math.floor(Date.now() / 1000);
  const state = withLooks(stored, looks, now);
  const { clusters, channels, ...read } = written.again(havingIn(state));
  const addons = await withNewest(read.addons, findNewest(request, context), context.signal);
  const refused = await chartWarnings({ clusters, addons, channels }, request, context);
  const diagnostics = [...written.diagnostics, ...refused.map((one) => ({ ...one, source: undefined }))];
  const fleet = { ...written, clusters, addons, channels, diagnostics };
  const hashOf = await hashContents(fleet, context);
  return observeAgain({ fleet, hashOf, orders, isStateLost: orders !== storedOrders, adapt }, { looks, now, state });
}

/** The same fleet with other answers. */
export function observeAgain(
  known: Pick<ObservedFleet, 'fleet' | 'hashOf' | 'orders' | 'isStateLost' | 'adapt'>,
  seen: Pick<ObservedFleet, 'looks' | 'now' | 'state'>,
): ObservedFleet {
  const { fleet, hashOf, orders, adapt } = known;
  const observed = observedOf(fleet, seen.looks, hashOf, { ...seen, orders });
  return { ...known, ...seen, observed: adapt(observed, seen.now) };
}

/** Lets these add-ons belong to another owner. `NOT_FOUND` for one that is in no file. */
function taking(names: readonly string[]): Adapt {
  return ({ addons, ...observed }) => {
    const missing = names.find((name) => !addons.some((one) => one.name === name));
    if (missing !== undefined) throw unknownAddon(missing, addons);
    return { ...observed, addons: addons.map((one) => (names.includes(one.name) ? { ...one, adopt: true } : one)) };
  };
}

export function unknownAddon(name: string, addons: readonly { readonly name: string }[]): CurlewError {
  const near = nearest(
    name,
    addons.map((one) => one.name),
  );
  return new CurlewError('NOT_FOUND', `the fleet has no add-on ${name}`, {
    hint: near === undefined ? 'curlew fleet status lists them' : `did you mean "${near}"?`,
  });
}

const LOST =
  'the state in which the orders were followed is lost: pauses hold, but approvals, retries and rollbacks must be given again';

/** What would happen to it now. */
export function fleetPlanOf({ fleet, looks, observed, now, state, isStateLost }: ObservedFleet): FleetPlan {
  const reasonOf = (cluster: string, addon: string): string =>
    recordedReason(looks.get(cluster), addon, state.addons[addon]?.failures[cluster]?.reason);
  const drift = driftIn(fleet, looks);
  const { unheeded, ...planned } = planFleet(observed, now, reasonOf, drift.driftOf);
  const lineOf = ({ place, message }: Diagnostic): string => `${place.file}:${place.line}: ${message}`;
  const warnings = fleet.diagnostics.map(lineOf);
  if (isStateLost) warnings.push(LOST);
  warnings.push(...unheeded, ...drift.warnings);
  const clusters = [...looks].map(([name, look]) => {
    if ('problem' in look) return { name, problem: look.problem };
    const { server, kubernetes } = look;
    warnings.push(...look.warnings.map((text) => `${name}: ${text}`));
    return { name, server, kubernetes };
  });
  const targets = planned.targets.map((one) => {
    const left = leftOf(recordsOf(looks.get(one.cluster)), one.addon);
    const added = drift.addedTo(one.cluster, one.addon);
    return { ...one, ...(left.length > 0 && { left }), ...(added && { added }) };
  });
  return { ...planned, targets, clusters, warnings, differences: differencesIn(fleet.addons).map(lineOf), at: now };
}
