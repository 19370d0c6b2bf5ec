/** Runs of an installer spec: `install`, `join` and `upgrade`, and their dry runs. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { formatRef } from '../core/ref.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { requirePrograms } from '../runtime/host/host-facts.ts';
import { plainPlace } from '../runtime/node/node-place.ts';
import { readRecords } from '../runtime/node/records.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { settingText } from '../runtime/preflight/situation.ts';
import { dryRun, type DryRun } from '../runtime/run/dry-run.ts';
import { execute } from '../runtime/run/execute.ts';
import { readable } from '../runtime/history/history.ts';
import { formatPlan, readPlan, requireSamePlan, type SavedPlan } from '../runtime/run/plan-file.ts';
import { kindOnNode, stayingAddons, type StayingAddon } from '../runtime/plan/plan.ts';
import { prepare, viewRun } from '../runtime/prepare/prepare.ts';
import { pruneRequest } from '../runtime/prepare/removal.ts';
import type { CheckMode, CheckRequest, RunRequest, RunView } from '../runtime/prepare/request.ts';
import type { SpecKind } from '../runtime/plan/run-plan.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { GivenFlags } from '../spec/flags.ts';
import type { Installer } from '../spec/installer.ts';
import { hookVariables } from '../spec/variables.ts';
import type { NotCurrent } from '../ship/release/signed-release.ts';
import type { Context } from '../core/context.ts';
import { madeIn } from '../cluster/kube/kubeadm-made.ts';
import type { NodeUpgrade } from '../machine/run/upgrade.ts';
import { savedCommandOf } from '../steps/node/saved-command.ts';
import { runClusterOf } from '../steps/node/cluster.ts';
import { savedOptions, withSavedOptions } from '../steps/node/saved-options.ts';
import { changing } from '../steps/node/installed-run.ts';
import { findTrialCluster } from '../steps/node/trial-cluster.ts';
import { flagsOf, requireValidSettings, specOf } from '../steps/node/spec.ts';
import { requireFolders } from '../steps/node/install-folder.ts';
import { hookEnv, hookLimitOf, placeOf, placesOf, nodeTargetOf, usage, whySkipImages } from '../steps/node/target.ts';
import { ownScripts } from '../own/scripts.ts';
import type { InstallSource } from '../steps/sources/install-source.ts';
import { openSource } from '../steps/sources/run-source.ts';
import { toolVersion } from '../own/version.ts';
import { PLANNED_RUN, RUN, type InstallRequest } from '../requests/node.ts';
import { useCase } from '../core/request.ts';
import { upgradeOf } from './node-upgrade.ts';

/** The result of a run or a dry run. */
export type NodeResult = (RunResult | DryRun) & {
  /** Add-ons that stay installed although they are no longer in the spec; absent if there are none. */
  readonly stays?: readonly StayingAddon[] | undefined;
  /** Set if the named release is not the current one of the store. */
  readonly notCurrent?: NotCurrent | undefined;
  /** What a dry run shows of an upgrade of Kubernetes or its container runtime on this node; absent without one. */
  readonly upgrade?: Pick<NodeUpgrade, 'node' | 'steps'> | undefined;
  /** What is next after such an upgrade. */
  readonly next?: string | undefined;
};

interface Resolved {
  readonly request: InstallRequest;
  readonly flags: GivenFlags;
  readonly saved: SavedPlan | undefined;
}

/** Merges the request with its plan and its flags. An upgrade of the node that add-ons were installed from is an install. */
async function resolveRequest(input: InstallRequest, context: Context): Promise<Resolved> {
  const { plan } = input;
  const saved = plan === undefined ? undefined : await readPlan(resolve(context.cwd, plan), RUN.fields);
  const whole = saved === undefined ? input : withSavedOptions(RUN.fields, input, saved);
  const { flags, request } = flagsOf(whole, context);
  await requireFolders(request, context);
  const kind = await kindOf(request, context);
  if (saved !== undefined && saved.plan.kind !== kind) {
    throw new CurlewError('USAGE', `${plan} is a plan for another kind of run`, {
      hint: `curlew ${saved.plan.kind} --plan ${plan}`,
    });
  }
  return { request: { ...request, kind }, flags, saved };
}

/** Executes a run of this kind; an upgrade of the node that add-ons were installed from is an install. */
export const install = useCase(RUN, async (input, context: Context): Promise<NodeResult> => {
  return changing(context, async () => perform(input, context));
});

async function perform(input: InstallRequest, context: Context): Promise<NodeResult> {
  const { request, flags, saved } = await resolveRequest(input, context);
  const target = nodeTargetOf(request, context);
  await requirePrograms(target.directory, context);
  await using source = await openSource(request, context, { directory: target.directory, remember: true });
  const run = await runRequest(request, context, { source, flags });
  // A missing package or setting is named before a cluster is asked, and before there is a sandbox.
  const cluster = await findTrialCluster(request, context);
  const place = { ...(await placeOf(target, context)), cluster: cluster?.facts };
  await using prepared = await prepare({ ...run, place }, context);
  if (saved !== undefined) requireSamePlan(saved, prepared, toolVersion());
  await source.remember?.();
  await using _kubeconfig = await cluster?.writeIn(target.directory);
  const { report, ask, signal } = context;
  const upgrade = await upgradeOf(prepared, request, context);
  const result = await execute(prepared, { report, ask, signal, node: upgrade?.around });
  const next = upgrade?.next();
  return { ...result, ...staysOf(prepared), ...notCurrentOf(source), ...(next === undefined ? {} : { next }) };
}

/** Plans {@link install}. Changes nothing: no lock, no folder, no hook. */
export const planInstall = useCase(PLANNED_RUN, async (input, context: Context): Promise<NodeResult> => {
  const { cwd, report, signal } = context;
  const { request, flags, saved } = await resolveRequest(input, context);
  const { directory } = placesOf(request, context);
  const force = input.force === true;
  const out = input.out === undefined ? undefined : resolve(cwd, input.out);
  if (out !== undefined) await refuseExisting(out, force);
  await requirePrograms(directory, context);
  await using source = await openSource(request, context, { directory, remember: false });
  const run = await runRequest(request, context, { source, flags });
  const cluster = await findTrialCluster(request, context, { isPlan: true });
  const place = { ...plainPlace(directory), cluster: cluster?.facts };
  const view = await readable(directory, async () => viewRun({ ...run, place }, context));
  for (const text of view.view.notes) report({ type: 'note', level: 'warning', text });
  if (saved !== undefined) requireSamePlan(saved, view, toolVersion());
  const upgrade = await upgradeOf(view, request, context);
  const words = savedOptions(RUN.fields, request, context);
  const result = await dryRun(view, { words, tool: toolVersion(), out, report, signal });
  if (out !== undefined) await writeText(out, formatPlan(result), { force, mode: 0o600 });
  const steps = upgrade === undefined ? {} : { upgrade: { node: upgrade.node, steps: upgrade.steps } };
  return { ...result, ...staysOf(view), ...notCurrentOf(source), ...steps };
});

function notCurrentOf({ notCurrent }: InstallSource): Pick<NodeResult, 'notCurrent'> {
  return notCurrent === undefined ? {} : { notCurrent };
}

function staysOf({ records, plan }: Pick<RunView, 'records' | 'plan'>): Pick<NodeResult, 'stays'> {
  const about = plan.addons.map(({ ref }) => ref.name);
  const stays = stayingAddons(about, records);
  return stays.length === 0 ? {} : { stays };
}

async function kindOf(request: InstallRequest, context: Context): Promise<SpecKind> {
  const { directory } = placesOf(request, context);
  const records = await readable(directory, async () => readRecords(directory));
  const kind = kindOnNode(request.kind, records);
  const isTrial = request.root !== undefined;
  if (kind === 'upgrade' && Object.keys(records.applied).length === 0) {
    // The cluster of such a node may have its add-ons from elsewhere.
    const advice = (await isNode(request, context)) ? '' : '; curlew install installs the add-ons';
    const text = `curlew has installed nothing ${isTrial ? 'in this trial' : 'on this node'}: an upgrade does here what a further node of a cluster needs${advice}`;
    context.report({ type: 'note', level: 'warning', text });
  }
  if (kind !== request.kind) {
    const from = isTrial ? 'in this trial' : 'from this node';
    const text = `the add-ons were installed ${from}, so this upgrade runs their install hooks, which apply the new versions`;
    context.report({ type: 'note', level: 'info', text });
  }
  return kind;
}

/** Whether the machine, or the one that a trial is for, is a node of a cluster. */
async function isNode({ root = '/' }: InstallRequest, { cwd }: Context): Promise<boolean> {
  return (await madeIn(join(resolve(cwd, root), 'etc/kubernetes'))) !== 'none';
}

/** The request of the run but for its place. */
async function runRequest(
  request: InstallRequest,
  context: Context,
  { source, flags }: { readonly source: InstallSource; readonly flags: GivenFlags },
): Promise<Omit<RunRequest, 'place'>> {
  const { kind } = request;
  const hookLimit = hookLimitOf(request);
  const from = { source, flags, recorded: request.installerText };
  const { installer, text, variables: extra } = await specOf(request, context, from);
  const packages = await source.choose(installer);
  if (request.digest !== undefined) requireDigest(packages, request.digest);
  requireValidSettings(installer, packages, context, request.set);
  if (request.keepData === true && request.prune !== true) throw usage('--keep-data requires --prune');
  const pruned = request.prune === true ? await pruneOf(packages, request, context) : undefined;
  const versions = new Map(packages.map(({ ref }) => [ref.name, ref.version] as const));
  const schemas = new Map(packages.map(({ ref, addon }) => [ref.name, addon.settings]));
  const settings = new Map(installer.addons.map((addon) => [addon.name, addon.settings] as const));
  return {
    kind,
    scripts: ownScripts(),
    offered: await source.offered(packages),
    packages: packages.map((one) => ({ source: one, settings: settings.get(one.ref.name) ?? {} })),
    removal: pruned?.removal,
    variables: [...new Map([...(pruned?.variables ?? []), ...hookVariables(installer, versions), ...extra])],
    env: hookEnv(request, context),
    reapply: request.reapply === true,
    allowDowngrade: request.allowDowngrade === true,
    keepsPrevious: request.dropPrevious !== true,
    skipImages: whySkipImages(request),
    hookLimit,
    checks: checksOf(request, installer),
    command: savedCommandOf({ name: kind, request, cwd: context.cwd, installer: text }, RUN.fields),
    cluster: runClusterOf(request, context, { installer, versions, schemas, release: source.release }),
  };
}

/** Before anything of a package runs. */
function requireDigest(packages: readonly SourcePackage[], digest: string): void {
  if (packages.length !== 1) {
    const what = `cannot install the package ${digest}: the spec leads to ${packages.length} packages`;
    throw new CurlewError('DIGEST_MISMATCH', what, { hint: 'name one package in the FleetAddon' });
  }
  for (const { ref, addon } of packages) {
    if (addon.digest === digest) continue;
    throw new CurlewError('DIGEST_MISMATCH', `cannot install ${formatRef(ref)}: it is ${addon.digest}, not ${digest}`, {
      hint: 'correct the hash in the FleetAddon, or publish the package that it names',
    });
  }
}

async function pruneOf(
  packages: readonly SourcePackage[],
  request: InstallRequest,
  context: Context,
): ReturnType<typeof pruneRequest> {
  const { directory } = placesOf(request, context);
  const options = { keepGoing: false, keepData: request.keepData === true, pruneImages: false };
  return readable(directory, async () => pruneRequest(directory, packages, options, context));
}

/**
 * The host checks of a run, from the request and the equivalent settings of kURL. With `root` the add-ons are not for this
 * machine: results are reported, but do not stop the run.
 */
export function checksOf(
  { root, preflights, ignore = [] }: Pick<InstallRequest, 'root' | 'preflights' | 'ignore'>,
  installer: Installer,
): CheckRequest {
  const isTrial = root !== undefined;
  const mode = preflights ?? defaultMode(installer, isTrial);
  return { mode, ignored: ignore, installer, builtIn: !isTrial, tool: toolVersion() };
}

function defaultMode(installer: Installer, isTrial: boolean): CheckMode {
  const isSet = (field: string): boolean => settingText({ installer }, 'kurl', field) !== '';
  if (isTrial || isSet('hostPreflightIgnore')) return 'ignore';
  return isSet('hostPreflightEnforceWarnings') ? 'enforce-warnings' : 'enforce';
}
