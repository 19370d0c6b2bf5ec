/** What a run is to do, found out without doing any of it: the lock, the records, what the last run left, the plan. */
import { rmdir } from 'node:fs/promises';
import type { Report } from '../../core/events.ts';
import { INSTALL_SH } from '../../core/layout.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import { alongLabel, wantedAlong } from './along.ts';
import { consultCluster, requireRoom, variablesFor } from '../cluster/consult.ts';
import { loadBalancerMove } from '../cluster/load-balancer.ts';
import { canContinue, continuePlan, type Now, runIdentity } from './continue-plan.ts';
import { hookLimit } from '../hooks/hook-limit.ts';
import { findCarried } from '../hooks/hook.ts';
import { type LastRun, readLastRun } from './last-run.ts';
import { leavingAddons } from './removal.ts';
import { lockFolder } from './lock.ts';
import { planRun } from './plan.ts';
import { bootId } from '../../platform/process/process-tree.ts';
import { judgePlaced, keepPlaced, NOTHING, type PlacedState, requireOwnFolders } from '../node/placed-package.ts';
import { readRecords, type Records } from '../node/records.ts';
import { runFolder } from './run-folder.ts';
import type { SourcePackage } from '../node/source.ts';
import type { PackageFacts, RunPlan } from './run-plan.ts';
import type { AlongPackage, RunRequest, RunView, WantedPackage } from './request.ts';

export interface LookOptions {
  readonly report: Report;
  readonly signal: AbortSignal;
}

/** A run that can begin. The install folder is locked until it is disposed of. */
export interface PreparedRun extends RunView, AsyncDisposable {}

/**
 * Locks the install folder, plans, and records what it had to read of packages in place. Nothing else is changed, and a folder
 * that was made for the lock goes away with it when nothing was put there. `BUSY` when another run is at work on the folder.
 */
export async function prepare(given: RunRequest, options: LookOptions): Promise<PreparedRun> {
  const { directory } = given.place;
  await makeFolder(directory);
  const lock = await lockFolder(directory);
  const free = async (): Promise<void> => {
    await lock[Symbol.asyncDispose]();
    // A folder that is in use is not empty.
    await rmdir(directory).catch(() => undefined);
  };
  try {
    const view = await viewRun(given, options);
    for (const { ref, state } of view.placed) await keepPlaced(directory, ref, state);
    return { ...view, [Symbol.asyncDispose]: free };
  } catch (error) {
    await free();
    throw error;
  }
}

/** Finds out what a run would do without taking the lock or touching anything: another run may be changing it. */
export async function viewRun(given: RunRequest, look: LookOptions): Promise<RunView> {
  const { directory } = given.place;
  await requireOwnFolders(
    directory,
    [...given.packages, ...(given.removal?.packages ?? [])].map(({ source }) => source.ref),
  );
  const own = await readRecords(directory);
  const last = await readLastRun(directory, own);
  // On a node beside the primary nothing is applied to the cluster.
  const isJoin = given.kind === 'join' || given.kind === 'upgrade';
  const cluster = isJoin ? undefined : given.cluster;
  const consulted = await consultCluster(cluster, own);
  const { leaving, notes } = await leavingAddons({ ...given, cluster }, own, consulted);
  const view = { ...consulted, notes: [...consulted.notes, ...notes] };
  // What goes is only what this node has.
  const isRemoval = given.kind === 'uninstall' || given.kind === 'reset';
  const records = isRemoval ? { ...view.records, applied: own.applied } : view.records;
  const request = { ...given, cluster, variables: variablesFor(given.variables, view) };
  const judge = judgeOnce(directory, look);
  const packages = [];
  for (const wanted of request.packages) packages.push(factsOf(request, wanted, await judge.of(wanted.source)));
  // They were proved when they were found.
  const removed = (request.removal?.packages ?? []).map((one) => factsOf(request, one, NOTHING));
  const { kind, reapply, allowDowngrade, skipImages, variables } = request;
  const loadBalancer = await loadBalancerMove(view, variables);
  const along = await alongOf(request, records, judge);
  const images = skipImages === undefined;
  const keepData = request.removal?.keepData;
  const options = { reapply, allowDowngrade, images, variables, loadBalancer, along, removed, leaving, keepData };
  const fresh = planRun(kind, packages, records, options);
  const now = { identity: runIdentity(fresh, options), boot: await bootId() };
  // What a hook has done may rest on files that are not there any more.
  const isWhole = [...packages, ...along].every(({ differs = [] }) => differs.length === 0);
  const begun = await continued(directory, fresh, view.moved || !isWhole ? undefined : last, now);
  if (cluster !== undefined) requireRoom(cluster, view, begun.plan);
  return { request, records, view, last, packages, along, now, placed: judge.all(), ...begun };
}

interface Judge {
  readonly of: (source: SourcePackage) => Promise<PlacedState>;
  readonly all: () => RunView['placed'];
}

/** One after another: each reads as much at once as a disk gives. */
function judgeOnce(directory: string, options: LookOptions): Judge {
  const placed: RunView['placed'][number][] = [];
  return {
    of: async (source) => {
      const state = await judgePlaced(directory, source, options);
      placed.push({ ref: source.ref, state });
      return state;
    },
    all: () => placed,
  };
}

/** Goes on from the last run where that is safe; otherwise everything starts over. */
async function continued(
  directory: string,
  fresh: RunPlan,
  last: LastRun | undefined,
  now: Now,
): Promise<Pick<RunView, 'plan' | 'carried'>> {
  const anew = { plan: fresh, carried: undefined };
  if (last === undefined || !canContinue(last, now)) return anew;
  const plan = continuePlan(fresh, last);
  if (last.carried === undefined) return { plan, carried: undefined };
  const path = await findCarried(runFolder(directory, last.run), last.carried);
  return path === undefined ? anew : { plan, carried: { path, digest: last.carried } };
}

async function alongOf(
  { packages, offered = [] }: RunRequest,
  records: Records,
  judge: Judge,
): Promise<readonly AlongPackage[]> {
  const refs = packages.map(({ source }) => source.ref);
  const along: AlongPackage[] = [];
  for (const { source, role, because } of wantedAlong(offered, refs, records)) {
    const { ref, addon, omitted } = source;
    const { digest: inPlace, differences: differs } = await judge.of(source);
    const { digest, images } = addon;
    const label = alongLabel(ref);
    const [isStep, remote] = [role === 'step', source.remote !== undefined];
    along.push({ source, label, ref, digest, images, omitted, inPlace, differs, because, isStep, remote });
  }
  return along;
}

function factsOf(
  { hookLimit: general }: RunRequest,
  { source, settings }: WantedPackage,
  { digest: inPlace, differences: differs }: PlacedState,
): PackageFacts {
  const { ref, addon, files } = source;
  return {
    ref,
    digest: addon.digest,
    requires: addon.requires,
    fulfills: addon.fulfills,
    images: addon.images,
    hasInstallScript: files.some(({ path }) => path === INSTALL_SH),
    settings,
    omitted: source.omitted,
    inPlace,
    differs,
    remote: source.remote !== undefined,
    hookLimit: hookLimit(addon, settings, general),
  };
}
