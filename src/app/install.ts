/** Runs of an installer spec: `install`, `join` and `upgrade`, and what they would do. */
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import { requirePrograms } from '../runtime/node/exec-folder.ts';
import { plainPlace } from '../runtime/node/node-place.ts';
import { readRecords } from '../runtime/node/records.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { settingText } from '../runtime/preflight/situation.ts';
import { dryRun, type DryRun } from '../runtime/run/dry-run.ts';
import { execute } from '../runtime/run/execute.ts';
import { readable } from '../runtime/run/history.ts';
import { formatPlan, readPlan, requireSamePlan, type SavedPlan } from '../runtime/run/plan-file.ts';
import { kindOnNode, stayingAddons, type StayingAddon } from '../runtime/run/plan.ts';
import { prepare, viewRun } from '../runtime/run/prepare.ts';
import { pruneRequest } from '../runtime/run/removal.ts';
import {
  CHECK_MODES,
  type CheckMode,
  type CheckRequest,
  type RunRequest,
  type RunView,
} from '../runtime/run/request.ts';
import type { SpecKind } from '../runtime/run/run-plan.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { GivenFlags } from '../spec/flags.ts';
import type { Installer } from '../spec/installer.ts';
import { hookVariables } from '../spec/variables.ts';
import type { NotCurrent } from '../store/release/signed-release.ts';
import type { Context } from './context.ts';
import { askedFor, type Shape } from './node/asked.ts';
import { clusterOf } from './node/cluster.ts';
import { KEPT_FIELDS, type KeptRequest } from './node/kept-run.ts';
import { planWords, withPlanWords } from './node/plan-words.ts';
import { flagsOf, judgeSettings, specOf, type FlagRequest, type SpecRequest } from './node/spec.ts';
import { hookEnv, hookLimitOf, placeOf, placesOf, targetOf, usage, whySkipImages } from './node/target.ts';
import { ownScripts } from './own-scripts.ts';
import type { InstallSource } from './ports/install-source.ts';
import { openSource, type SourceRequest } from './ports/run-source.ts';
import { toolVersion } from './version.ts';

export interface InstallRequest extends SourceRequest, SpecRequest, FlagRequest, KeptRequest {
  readonly kind: SpecKind;
  /** What is applied already is installed, too. */
  readonly reapply?: boolean | undefined;
  /** No former packages are kept: this run cannot be rolled back. */
  readonly dropPrevious?: boolean | undefined;
  /** Add-ons that left the spec are removed. */
  readonly prune?: boolean | undefined;
  /** Of `prune`: hooks are asked to leave data alone. */
  readonly keepData?: boolean | undefined;
  /** A cluster that kURL has made is taken over. */
  readonly adopt?: boolean | undefined;
  readonly skipImages?: boolean | undefined;
  /** Which host preflights stop the run; `enforce` when absent, `ignore` with `root`. */
  readonly preflights?: CheckMode | undefined;
  /** Titles of host preflights that do not count. */
  readonly ignore?: readonly string[] | undefined;
  /** File of a saved plan: it is carried out, or refused when it no longer holds. */
  readonly plan?: string | undefined;
  /** Text of the installer spec in place of the one that `installer` names, as a run that is resumed has kept it. */
  readonly installerText?: string | undefined;
}

export interface PlanRequest extends InstallRequest {
  /** File that the plan is saved in. */
  readonly out?: string | undefined;
  /** A file that is there is replaced. */
  readonly force?: boolean | undefined;
}

/** What of a request is kept with its run; one that is resumed has a plan of its own. */
export const INSTALL: Shape<Omit<InstallRequest, 'kind' | 'plan' | 'installerText'>> = {
  fields: {
    ...KEPT_FIELDS,
    flags: 'texts',
    bundle: 'text',
    dir: 'text',
    from: 'texts',
    release: 'text',
    installer: 'text',
    set: 'texts',
    reapply: 'flag',
    allowDowngrade: 'flag',
    dropPrevious: 'flag',
    prune: 'flag',
    keepData: 'flag',
    adopt: 'flag',
    skipImages: 'flag',
    preflights: CHECK_MODES,
    ignore: 'texts',
    key: 'texts',
    requireSigned: 'flag',
    signature: 'text',
    signedAs: 'text',
    s3Endpoint: 'text',
    s3Region: 'text',
    s3Profile: 'text',
    s3PathStyle: 'flag',
    allowHttp: 'texts',
    caFile: 'text',
    config: 'text',
  },
  operands: 'flags',
};

/** What a run did, or would do. */
export type NodeResult = (RunResult | DryRun) & {
  /** Add-ons that stay installed though the spec no longer has them; absent when there are none. */
  readonly stays?: readonly StayingAddon[] | undefined;
  /** What the store says against the release that was named; absent when it says nothing. */
  readonly notCurrent?: NotCurrent | undefined;
};

interface Asked {
  readonly request: InstallRequest;
  readonly flags: GivenFlags;
  readonly saved: SavedPlan | undefined;
}

/** The request with what its plan and its flags say; an upgrade of the node that add-ons were installed from is an install. */
async function askedOf(given: InstallRequest, context: Context): Promise<Asked> {
  const { plan } = given;
  const saved = plan === undefined ? undefined : await readPlan(resolve(context.cwd, plan));
  const whole = saved === undefined ? given : { ...given, ...withPlanWords(given, saved, INSTALL) };
  const { flags, request } = flagsOf(whole, context);
  const kind = await kindOf(request, context);
  if (saved !== undefined && saved.plan.kind !== kind) {
    throw new CurlewError('USAGE', `${plan} is the plan of another kind of run`, {
      hint: `curlew ${saved.plan.kind} --plan ${plan}`,
    });
  }
  return { request: { ...request, kind }, flags, saved };
}

/** Carries out a run of this kind; an upgrade of the node that add-ons were installed from is an install. */
export async function install(given: InstallRequest, context: Context): Promise<NodeResult> {
  const { request, flags, saved } = await askedOf(given, context);
  const target = targetOf(request, context);
  await requirePrograms(target.directory, context);
  await using source = await openSource(request, context, { directory: target.directory, remember: true });
  const wanted = await wantedOf(request, context, { source, flags });
  const place = await placeOf(target, context);
  await using prepared = await prepare({ ...wanted, place, scripts: ownScripts() }, context);
  if (saved !== undefined) requireSamePlan(saved, prepared, toolVersion());
  await source.remember?.();
  const { report, ask, signal } = context;
  const result = await execute(prepared, prepared.plan, { report, ask, signal });
  return { ...result, ...staysOf(prepared), ...notCurrentOf(source) };
}

/** What {@link install} would do. Nothing is changed: no lock, no folder, no hook. */
export async function planInstall(given: PlanRequest, context: Context): Promise<NodeResult> {
  const { cwd, report, signal } = context;
  const { request, flags, saved } = await askedOf(given, context);
  const { directory } = placesOf(request, context);
  const force = given.force === true;
  const out = given.out === undefined ? undefined : resolve(cwd, given.out);
  if (out !== undefined) await refuseExisting(out, force);
  await requirePrograms(directory, context);
  await using source = await openSource(request, context, { directory, remember: false });
  const wanted = await wantedOf(request, context, { source, flags });
  const view = await readable(directory, async () =>
    viewRun({ ...wanted, place: plainPlace(directory), scripts: ownScripts() }, context),
  );
  for (const text of view.view.notes) report({ type: 'note', level: 'warning', text });
  if (saved !== undefined) requireSamePlan(saved, view, toolVersion());
  const words = planWords(request, context);
  const told = await dryRun(view, { words, tool: toolVersion(), out, report, signal });
  if (out !== undefined) await writeText(out, formatPlan(told), { force, mode: 0o600 });
  return { ...told, ...staysOf(view), ...notCurrentOf(source) };
}

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
  const kind = kindOnNode(request.kind, await readable(directory, async () => readRecords(directory)));
  if (kind !== request.kind) {
    const text = 'the add-ons of this cluster were installed from this node: it is upgraded as by an install';
    context.report({ type: 'note', level: 'info', text });
  }
  return kind;
}

/** What is to be run, without where. */
async function wantedOf(
  request: InstallRequest,
  context: Context,
  { source, flags }: { readonly source: InstallSource; readonly flags: GivenFlags },
): Promise<Omit<RunRequest, 'place' | 'scripts'>> {
  const { kind } = request;
  const hookLimit = hookLimitOf(request);
  const from = { source, flags, recorded: request.installerText };
  const { installer, text, variables: told } = await specOf(request, context, from);
  const packages = await source.choose(installer);
  judgeSettings(installer, packages, context);
  if (request.keepData === true && request.prune !== true) throw usage('--keep-data goes with --prune');
  const pruned = request.prune === true ? await pruneOf(packages, request, context) : undefined;
  const versions = new Map(packages.map(({ ref }) => [ref.name, ref.version] as const));
  const schemas = new Map(packages.map(({ ref, addon }) => [ref.name, addon.settings]));
  const settings = new Map(installer.addons.map((addon) => [addon.name, addon.settings] as const));
  return {
    kind,
    offered: await source.offered(packages),
    packages: packages.map((one) => ({ source: one, settings: settings.get(one.ref.name) ?? {} })),
    removal: pruned?.removal,
    variables: [...new Map([...(pruned?.variables ?? []), ...hookVariables(installer, versions), ...told])],
    env: hookEnv(request, context),
    reapply: request.reapply === true,
    allowDowngrade: request.allowDowngrade === true,
    keepsPrevious: request.dropPrevious !== true,
    skipImages: whySkipImages(request),
    hookLimit,
    checks: checksOf(request, installer),
    command: askedFor({ name: kind, request, cwd: context.cwd, installer: text }, INSTALL),
    cluster: clusterOf(request, context, { installer, versions, schemas, release: source.release }),
  };
}

async function pruneOf(
  wanted: readonly SourcePackage[],
  request: InstallRequest,
  context: Context,
): ReturnType<typeof pruneRequest> {
  const { directory } = placesOf(request, context);
  const options = { keepGoing: false, keepData: request.keepData === true, pruneImages: false };
  return readable(directory, async () => pruneRequest(directory, wanted, options, context));
}

/**
 * What a run asks of the machine, as it is asked for and by the settings of kURL that mean the same. With `root` the machine is
 * not the one that is to be served: its fitness is told, but stops nothing.
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
