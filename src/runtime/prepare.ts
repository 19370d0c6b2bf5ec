/** What a run is to do, found out without doing any of it: the lock, the records, what the last run left, the plan. */
import { rmdir } from 'node:fs/promises';
import type { Digest } from '../core/digest.ts';
import { INSTALL_SH } from '../core/layout.ts';
import { makeFolder } from '../files/make-folder.ts';
import { alongLabel, wantedAlong, type AlongFacts, type OfferedPackage } from './along.ts';
import { consultCluster, requireRoom, variablesFor, type ClusterRequest, type ClusterView } from './cluster/consult.ts';
import { loadBalancerMove } from './cluster/load-balancer.ts';
import { canContinue, continuePlan, runIdentity, type Now } from './continue-plan.ts';
import type { CheckRequest } from './host-checks.ts';
import { hookLimit } from './hook-limit.ts';
import { findCarried } from './hook.ts';
import { readLastRun, type LastRun } from './last-run.ts';
import { leavingAddons } from './leaving.ts';
import { lockFolder } from './lock.ts';
import type { NodePlace } from './node-place.ts';
import { planRun, type PackageFacts, type RunKind, type RunPlan } from './plan.ts';
import { bootId } from './process-tree.ts';
import { digestInPlace } from './put-in-place.ts';
import { readRecords, type Records } from './records.ts';
import type { Removal } from './removal.ts';
import { runFolder } from './run-folder.ts';
import type { ShellVariable } from './settings.ts';
import type { SourcePackage } from './source.ts';

export interface WantedPackage {
  readonly source: SourcePackage;
  readonly settings: unknown;
}

export interface RunRequest {
  readonly kind: RunKind;
  readonly place: NodePlace;
  /** Folder with hook-runner.sh, cap-log.sh and lib/. */
  readonly scripts: string;
  readonly packages: readonly WantedPackage[];
  /** What is removed; absent: nothing. */
  readonly removal?: Removal | undefined;
  /** What else the source has to offer. */
  readonly offered?: readonly OfferedPackage[] | undefined;
  readonly variables: readonly ShellVariable[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly reapply: boolean;
  /** An older version may take the place of a newer one; absent: it may not. */
  readonly allowDowngrade?: boolean | undefined;
  /** Packages that others take the place of stay for a rollback; absent: they do. */
  readonly keepsPrevious?: boolean | undefined;
  /** Why images are not to be loaded; undefined when they are. */
  readonly skipImages: string | undefined;
  /** Seconds that each hook may take, where neither its add-on's settings nor its author say otherwise. */
  readonly hookLimit: number | undefined;
  /** JSON that is kept with the run: how whoever asks can ask for the same again. */
  readonly command: unknown;
  /** What the machine is asked before anything is changed; absent: nothing. */
  readonly checks?: CheckRequest | undefined;
  /** Where what is applied is noted in the cluster; absent when that is to be left alone. */
  readonly cluster?: ClusterRequest | undefined;
}

/** What a run would find and do now. */
export interface RunView {
  readonly request: RunRequest;
  readonly records: Records;
  readonly view: ClusterView;
  readonly last: LastRun | undefined;
  readonly packages: readonly PackageFacts[];
  /** Those of the offered packages that come along. */
  readonly along: readonly AlongPackage[];
  readonly plan: RunPlan;
  readonly now: Now;
  /** Variables that hooks begin with, where the plan goes on from another run. */
  readonly carried: { readonly path: string; readonly digest: Digest } | undefined;
}

/** A run that can begin. The install folder is locked until it is disposed of. */
export interface PreparedRun extends RunView, AsyncDisposable {}

/**
 * Locks the install folder and plans. Nothing else is changed, and a folder that was made for the lock goes away with it
 * when nothing was put there. `BUSY` when another run is at work on the folder.
 */
export async function prepare(given: RunRequest): Promise<PreparedRun> {
  const { directory } = given.place;
  await makeFolder(directory);
  const lock = await lockFolder(directory);
  const free = async (): Promise<void> => {
    await lock[Symbol.asyncDispose]();
    // A folder that is in use is not empty.
    await rmdir(directory).catch(() => undefined);
  };
  try {
    return { ...(await viewRun(given)), [Symbol.asyncDispose]: free };
  } catch (error) {
    await free();
    throw error;
  }
}

/** Finds out what a run would do without taking the lock or touching anything: another run may be changing it. */
export async function viewRun(given: RunRequest): Promise<RunView> {
  const { directory } = given.place;
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
  const packages = await Promise.all(request.packages.map(async (wanted) => factsOf(request, wanted)));
  const removed = await Promise.all((request.removal?.packages ?? []).map(async (one) => factsOf(request, one)));
  const { kind, reapply, allowDowngrade, skipImages, variables } = request;
  const loadBalancer = await loadBalancerMove(view, variables);
  const along = await alongOf(request, records);
  const images = skipImages === undefined;
  const options = { reapply, allowDowngrade, images, variables, loadBalancer, along, removed, leaving };
  const fresh = planRun(kind, packages, records, options);
  const now = { identity: runIdentity(fresh, options), boot: await bootId() };
  const begun = await continued(directory, fresh, view.moved ? undefined : last, now);
  if (cluster !== undefined) requireRoom(cluster, view, begun.plan);
  return { request, records, view, last, packages, along, now, ...begun };
}

/** Goes on from the last run where that is safe; otherwise everything begins anew. */
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

/** A package that comes along, with what the plan knows of it. */
export interface AlongPackage extends AlongFacts {
  readonly source: SourcePackage;
}

async function alongOf(
  { place: { directory }, packages, offered = [] }: RunRequest,
  records: Records,
): Promise<readonly AlongPackage[]> {
  const refs = packages.map(({ source }) => source.ref);
  return Promise.all(
    wantedAlong(offered, refs, records).map(async ({ source, role, because }) => {
      const { ref, addon } = source;
      return {
        source,
        label: alongLabel(ref),
        ref,
        digest: addon.digest,
        images: addon.images,
        omitted: source.omitted,
        inPlace: await digestInPlace(directory, ref, source),
        because,
        isStep: role === 'step',
      };
    }),
  );
}

async function factsOf(
  { place: { directory }, hookLimit: general }: RunRequest,
  { source, settings }: WantedPackage,
): Promise<PackageFacts> {
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
    inPlace: await digestInPlace(directory, ref, source),
    remote: source.remote !== undefined,
    hookLimit: hookLimit(addon, settings, general),
  };
}
