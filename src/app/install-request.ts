/** The request of a run, from that of `install`, `join` or `upgrade`: its plan, its kind, its packages, its checks. */
import { join, resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { formatRef } from '../core/ref.ts';
import { readRecords } from '../runtime/node/records.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { settingText } from '../runtime/preflight/situation.ts';
import { readable } from '../runtime/history/history.ts';
import { readPlan, type SavedPlan } from '../runtime/run/saved-plan.ts';
import { kindOnNode } from '../runtime/plan/plan.ts';
import { pruneRequest } from '../runtime/prepare/removal.ts';
import type { CheckMode, CheckRequest, RunRequest } from '../runtime/prepare/request.ts';
import type { SpecKind } from '../runtime/plan/run-plan.ts';
import type { GivenFlags } from '../spec/flags.ts';
import type { Installer } from '../spec/installer.ts';
import { hookVariables } from '../spec/variables.ts';
import type { Context } from '../core/context.ts';
import { madeIn } from '../cluster/kube/kubeadm-made.ts';
import { savedCommandOf } from '../steps/node/saved-command.ts';
import { runClusterOf } from '../steps/node/cluster.ts';
import { withSavedOptions } from '../steps/node/saved-options.ts';
import { flagsOf, requireValidSettings, specOf } from '../steps/node/spec.ts';
import { requireFolders } from '../steps/node/install-folder.ts';
import { hookEnv, hookLimitOf, placesOf, usage, whySkipImages } from '../steps/node/target.ts';
import { ownScripts } from '../own/scripts.ts';
import type { InstallSource } from '../steps/sources/install-source.ts';
import { toolVersion } from '../own/version.ts';
import { RUN, type InstallRequest } from '../requests/node.ts';

/** Merges the request with its plan and its flags. An upgrade of the node that add-ons were installed from is an install. */
export async function resolveRequest(
  input: InstallRequest,
  context: Context,
): Promise<{ readonly request: InstallRequest; readonly flags: GivenFlags; readonly saved: SavedPlan | undefined }> {
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

async function kindOf(request: InstallRequest, context: Context): Promise<SpecKind> {
  const { directory } = placesOf(request, context);
  const records = await readable(directory, async () => readRecords(directory));
  const kind = kindOnNode(request.kind, records);
  if (kind !== request.kind) {
    const from = request.root !== undefined ? 'in this trial' : 'from this node';
    const text = `the add-ons were installed ${from}, so this upgrade runs their install hooks, which apply the new versions`;
    context.report({ type: 'note', level: 'info', text });
  }
  return kind;
}

/** An upgrade of no node, where nothing is installed, runs no hook and would report success. */
async function requireInstalled(request: InstallRequest, context: Context): Promise<void> {
  if (request.kind !== 'upgrade') return;
  const { directory } = placesOf(request, context);
  const { applied } = await readable(directory, async () => readRecords(directory));
  // The cluster of a node may have its add-ons from elsewhere.
  if (Object.keys(applied).length > 0 || (await isNode(request, context))) return;
  const where = request.root === undefined ? 'on this machine, which is no node of a cluster' : 'in this trial';
  throw new CurlewError('USAGE', `curlew upgrade: nothing is installed ${where}`, {
    hint: 'curlew install installs the add-ons',
  });
}

/** Whether the machine, or the one that a trial is for, is a node of a cluster. */
async function isNode({ root = '/' }: InstallRequest, { cwd }: Context): Promise<boolean> {
  return (await madeIn(join(resolve(cwd, root), 'etc/kubernetes'))) !== 'none';
}

/** The request of the run but for its place. */
export async function runRequest(
  request: InstallRequest,
  context: Context,
  { source, flags }: { readonly source: InstallSource; readonly flags: GivenFlags },
): Promise<Omit<RunRequest, 'place'>> {
  const { kind } = request;
  await requireInstalled(request, context);
  const hookLimit = hookLimitOf(request);
  const from = { source, flags, recorded: request.installerText };
  const { installer, text, variables: extra } = await specOf(request, context, from);
  const packages = await source.choose(installer);
  if (request.digest !== undefined) requireDigest(packages, request.digest);
  await requireValidSettings(installer, packages, context, request.set);
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
