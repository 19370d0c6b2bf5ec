/** Prepares a run without executing it: the lock, the records, the last run, the plan. */
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { INSTALL_SH } from '../../core/layout.ts';
import { makeFolder, removeEmpty } from '../../platform/files/make-folder.ts';
import { companionLabel, neededCompanions } from '../plan/companions.ts';
import { refuseChannelAddons } from '../cluster/channel-owners.ts';
import { KUBERNETES } from '../plan/hooks.ts';
import { consultCluster, requireRecordRoom, variablesFor } from '../cluster/consult.ts';
import { loadBalancerMove } from '../cluster/load-balancer.ts';
import { canContinue, continuePlan, type RunFingerprint, runIdentity, type LastRun } from '../plan/continue-plan.ts';
import { hookLimit } from '../hooks/hook-limit.ts';
import { findCarried } from '../hooks/hook.ts';
import { readLastRun } from './last-run.ts';
import { leavingAddons } from './removal.ts';
import { lockFolder } from '../node/lock.ts';
import type { TrialCluster } from '../node/node-place.ts';
import { planRun } from '../plan/plan.ts';
import { bootId } from '../../platform/process/process-tree.ts';
import { checkPlaced, keepPlaced, NOT_PLACED, type PlacedState, requireOwnFolders } from '../node/placed-package.ts';
import { readRecords } from '../node/records.ts';
import type { Records } from '../plan/records.ts';
import { runFolder } from './run-folder.ts';
import type { SourcePackage } from '../node/source.ts';
import type { PackageFacts, RunPlan } from '../plan/run-plan.ts';
import type { CompanionPackage, RunRequest, RunView, RequestedPackage } from './request.ts';

export interface LookOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * A run that can start: the install folder is locked until it is disposed. Records packages in place that it had to read, and
 * changes nothing else. Folders that were created for the lock and for the sandbox are removed with it if they stayed empty. `BUSY`
 * if another run is in progress on the folder.
 */
export async function prepare(request: RunRequest, options: LookOptions): Promise<RunView & AsyncDisposable> {
  const { directory, confined, made = [] } = request.place;
  const own = [...made];
  let lock: AsyncDisposable | undefined;
  const release = async (): Promise<void> => {
    await lock?.[Symbol.asyncDispose]();
    // A reset empties a folder that an earlier run has created.
    await removeEmpty([...own, directory]);
  };
  try {
    // The sandbox has it. If a refused run has removed both meanwhile, a new root would be open to other users.
    if (!confined) own.push(...(await makeFolder(directory)));
    lock = await lockFolder(directory);
    const view = await viewRun(request, options);
    for (const { ref, state } of view.placed) await keepPlaced(directory, ref, state);
    return { ...view, [Symbol.asyncDispose]: release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Plans a run without taking the lock or changing anything; another run may change the folder meanwhile. */
export async function viewRun(runRequest: RunRequest, look: LookOptions): Promise<RunView> {
  const { directory } = runRequest.place;
  await requireOwnFolders(
    directory,
    [...runRequest.packages, ...(runRequest.removal?.packages ?? [])].map(({ source }) => source.ref),
  );
  const own = recordsFor(runRequest.place.cluster, await readRecords(directory));
  const last = await readLastRun(directory, own);
  // Only the primary applies add-ons to the cluster.
  const isJoin = runRequest.kind === 'join' || runRequest.kind === 'upgrade';
  const cluster = isJoin ? undefined : runRequest.cluster;
  const repairs =
    runRequest.kind === 'reset' || runRequest.packages.some(({ source }) => source.ref.name === KUBERNETES);
  const consulted = await consultCluster(cluster, own, { repairs });
  const { leaving, notes } = await leavingAddons({ ...runRequest, cluster }, own, consulted);
  const view = { ...consulted, notes: [...consulted.notes, ...notes] };
  // Only add-ons of this node are removed.
  const isRemoval = runRequest.kind === 'uninstall' || runRequest.kind === 'reset';
  const records = isRemoval ? { ...view.records, applied: own.applied } : view.records;
  const request = { ...runRequest, cluster, variables: variablesFor(runRequest.variables, view) };
  const placed: RunView['placed'][number][] = [];
  const check = async (source: SourcePackage): Promise<PlacedState> => {
    const state = await checkPlaced(directory, source, look);
    placed.push({ ref: source.ref, state });
    return state;
  };
  const packages = [];
  // One after another: each check already reads in parallel.
  for (const one of request.packages) packages.push(factsOf(request, one, await check(one.source)));
  // They were verified when they were opened.
  const removed = (request.removal?.packages ?? []).map((one) => factsOf(request, one, NOT_PLACED));
  const { kind, isRollback, reapply, allowDowngrade, skipImages, variables } = request;
  const loadBalancer = await loadBalancerMove(view, variables);
  const companions = await companionsOf(request, records, check);
  const images = skipImages === undefined;
  const keepData = request.removal?.keepData;
  const options = { reapply, allowDowngrade, images, variables, loadBalancer, companions, removed, leaving, keepData };
  const planned = planRun(kind, packages, records, options);
  const fresh = isRollback === true ? { ...planned, isRollback } : planned;
  const fingerprint = { identity: runIdentity(fresh, options), boot: await bootId() };
  // Hooks that are done may depend on files that no longer exist.
  const isWhole = [...packages, ...companions].every(({ differs = [] }) => differs.length === 0);
  const resumed = await resumePlan(directory, fresh, view.moved || !isWhole ? undefined : last, fingerprint);
  if (kind !== 'reset') refuseChannelAddons(view.channels, resumed.plan.addons);
  if (cluster !== undefined) requireRecordRoom(cluster, view, resumed.plan);
  const sources = [...request.packages.map(({ source }) => ({ label: source.ref.name, source })), ...companions];
  return { request, records, view, last, packages, companions, sources, fingerprint, placed, ...resumed };
}

/** The records of a trial are about one cluster: in another one, what they call applied does not exist. */
function recordsFor(cluster: TrialCluster | undefined, records: Records): Records {
  if (cluster?.uid === undefined) return records;
  const isOther = records.cluster !== undefined && records.cluster !== cluster.uid;
  if (!isOther || Object.keys(records.applied).length === 0) return { ...records, cluster: cluster.uid };
  throw new CurlewError('UNSUPPORTED', `the add-ons of this trial are on another cluster than ${cluster.server}`, {
    hint: 'use another folder with --root for this cluster, or curlew reset on the former one first',
  });
}

/** Resumes the last run if that is safe; otherwise everything starts over. */
async function resumePlan(
  directory: string,
  fresh: RunPlan,
  last: LastRun | undefined,
  fingerprint: RunFingerprint,
): Promise<Pick<RunView, 'plan' | 'carried'>> {
  const restart = { plan: fresh, carried: undefined };
  if (last === undefined || !canContinue(last, fingerprint)) return restart;
  const plan = continuePlan(fresh, last);
  if (last.carried === undefined) return { plan, carried: undefined };
  const path = await findCarried(runFolder(directory, last.run), last.carried);
  return path === undefined ? restart : { plan, carried: { path, digest: last.carried } };
}

async function companionsOf(
  { packages, offered = [] }: RunRequest,
  records: Records,
  check: (source: SourcePackage) => Promise<PlacedState>,
): Promise<readonly CompanionPackage[]> {
  const refs = packages.map(({ source }) => source.ref);
  const companions: CompanionPackage[] = [];
  for (const { source, role, because } of neededCompanions(offered, refs, records)) {
    const facts = packageFacts(source, await check(source));
    companions.push({ ...facts, source, label: companionLabel(source.ref), because, isStep: role === 'step' });
  }
  return companions;
}

function factsOf(
  { hookLimit: general }: RunRequest,
  { source, settings }: RequestedPackage,
  state: PlacedState,
): PackageFacts {
  const { requires, fulfills } = source.addon;
  return {
    ...packageFacts(source, state),
    requires,
    fulfills,
    hasInstallScript: source.files.some(({ path }) => path === INSTALL_SH),
    settings,
    hookLimit: hookLimit(source.addon, settings, general),
  };
}

function packageFacts({ ref, addon, omitted, remote }: SourcePackage, state: PlacedState) {
  const { digest, images } = addon;
  return {
    ref,
    digest,
    images,
    omitted,
    inPlace: state.digest,
    differs: state.differences,
    remote: remote !== undefined,
  };
}
