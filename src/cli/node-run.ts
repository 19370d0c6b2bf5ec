/** What `install`, `join` and `upgrade` have in common: their options, from words to a run, and its result as text. */
import { SIGNED_OPTIONS, STORE_OPTIONS, WEB_OPTIONS } from './options.ts';
import { resolve } from 'node:path';
import { CurlewError } from '../core/errors.ts';
import type { GivenFlags } from '../spec/flags.ts';
import { hookVariables } from '../spec/variables.ts';
import type { NotCurrent } from '../store/release/signed-release.ts';
import { dryRun, type DryRun } from '../runtime/run/dry-run.ts';
import { requirePrograms } from '../runtime/node/exec-folder.ts';
import { execute } from '../runtime/run/execute.ts';
import { readable } from '../runtime/run/history.ts';
import { plainPlace } from '../runtime/node/node-place.ts';
import { kindOnNode, stayingAddons, type StayingAddon } from '../runtime/run/plan.ts';
import { formatPlan, readPlan, requireSamePlan, type SavedPlan } from '../runtime/run/plan-file.ts';
import { prepare, viewRun } from '../runtime/run/prepare.ts';
import { readRecords } from '../runtime/node/records.ts';
import { pruneRequest } from '../runtime/run/removal.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { refuseExisting } from '../platform/files/name-file.ts';
import { writeText } from '../platform/files/write-whole.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { checksOf, IGNORE_OPTION } from './node-checks.ts';
import { clusterOf } from './node-cluster.ts';
import { ownScripts } from '../app/own-scripts.ts';
import type { InstallSource } from '../app/ports/install-source.ts';
import { askedFor } from './asked-command.ts';
import {
  hookEnv,
  hookLimitOf,
  HOOK_OPTIONS,
  outliveTerminal,
  placeOf,
  placesOf,
  TARGET_OPTIONS,
  targetOf,
  usage,
  whySkipImages,
} from './node-target.ts';
import { flagsOf, judgeSettings, specOf } from './node-spec.ts';
import { openSource } from '../app/ports/run-source.ts';

import { checkPlanOptions, PLAN_OPTIONS, planWords, withPlanWords } from './plan-words.ts';
import { toolVersion } from '../app/version.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import { CHECK_MODES, type RunRequest, type RunView } from '../runtime/run/request.ts';
import type { SpecKind } from '../runtime/run/run-plan.ts';

/** Options of every command that runs hooks of a spec. */
export const RUN_OPTIONS = {
  bundle: { type: 'string', value: 'FILE', help: 'take the packages from a bundle' },
  dir: { type: 'string', value: 'DIR', help: 'take them from an unpacked bundle; its files are moved' },
  from: {
    type: 'string',
    multiple: true,
    value: 'STORE|URL',
    help: 'fetch them from a store, or the web server in front of one; mirrors by repeating it',
  },
  release: { type: 'string', value: 'R', help: 'with --from: another release than the current one' },
  installer: { type: 'string', value: 'FILE', help: 'installer spec: which add-ons, with which settings' },
  set: { type: 'string', multiple: true, value: 'NAME.FIELD=VALUE', help: 'a setting on top of the spec' },
  ...TARGET_OPTIONS,
  reapply: { type: 'boolean', help: 'install what is applied already, too' },
  'allow-downgrade': {
    type: 'boolean',
    help: 'install an older version of an add-on than the one that is installed, or a signed bundle older than one seen',
  },
  'drop-previous': { type: 'boolean', help: 'keep no former packages: curlew rollback cannot undo this run' },
  prune: { type: 'boolean', help: 'remove add-ons that left the spec, as curlew uninstall does' },
  'keep-data': { type: 'boolean', help: 'with --prune: ask their hooks to leave data alone (CURLEW_KEEP_DATA=1)' },
  adopt: { type: 'boolean', help: 'take over a cluster that kURL has made; nothing of kURL is deleted' },
  'skip-images': { type: 'boolean', help: 'load no images' },
  preflights: {
    type: 'string',
    value: CHECK_MODES.join('|'),
    help: 'what host preflights may stop the run by (default: enforce; with --root: ignore)',
  },
  ...IGNORE_OPTION,
  ...HOOK_OPTIONS,
  ...PLAN_OPTIONS,
  ...SIGNED_OPTIONS,
  ...STORE_OPTIONS,
  ...WEB_OPTIONS,
} satisfies OptionSpecs;

/** What a run did, or would do. */
export type NodeResult = (RunResult | DryRun) & {
  /** Add-ons that stay installed though the spec no longer has them; absent when there are none. */
  readonly stays?: readonly StayingAddon[] | undefined;
  /** What the store says against the release that was named; absent when it says nothing. */
  readonly notCurrent?: NotCurrent | undefined;
};

/**
 * Carries out a run of this kind as the words ask for it, or tells what it would do; an upgrade of the node that add-ons were
 * installed from is an install. `recorded` is the text of the installer spec that the words name, where a run that is gone
 * on with has kept it.
 */
export async function runNode(
  asked: SpecKind,
  given: Arguments,
  context: CommandContext,
  recorded?: string,
): Promise<NodeResult> {
  checkPlanOptions(given);
  const saved = await savedPlan(given, context);
  const { flags, args } = flagsOf(saved === undefined ? given : withPlanWords(given, saved), context);
  const kind = await kindOf(asked, args, context);
  if (saved !== undefined) requireSameKind(kind, saved, args.text('plan') ?? '');
  if (given.flag('dry-run')) return tellRun(kind, { args, flags }, context, saved);
  const restore = outliveTerminal();
  try {
    const target = targetOf(args, context);
    await requirePrograms(target.directory, context);
    await using source = await openSource(args.options, context, { directory: target.directory, remember: true });
    const wanted = await wantedOf(kind, args, context, { source, flags, recorded });
    const place = await placeOf(target, context);
    await using prepared = await prepare({ ...wanted, place, scripts: ownScripts() }, context);
    if (saved !== undefined) requireSamePlan(saved, prepared, toolVersion());
    await source.remember?.();
    const { report, ask, signal } = context;
    const result = await execute(prepared, prepared.plan, { report, ask, signal });
    return { ...result, ...staysOf(prepared), ...notCurrentOf(source) };
  } finally {
    restore();
  }
}

/** Nothing is changed: no lock, no folder, no hook. */
async function tellRun(
  kind: SpecKind,
  { args, flags }: ReturnType<typeof flagsOf>,
  context: CommandContext,
  saved: SavedPlan | undefined,
): Promise<NodeResult> {
  const { cwd, report, signal } = context;
  const { directory } = placesOf(args, context);
  const file = args.text('out');
  const out = file === undefined ? undefined : resolve(cwd, file);
  const force = args.flag('force');
  if (out !== undefined) await refuseExisting(out, force);
  await requirePrograms(directory, context);
  await using source = await openSource(args.options, context, { directory, remember: false });
  const wanted = await wantedOf(kind, args, context, { source, flags, recorded: undefined });
  const view = await readable(directory, async () =>
    viewRun({ ...wanted, place: plainPlace(directory), scripts: ownScripts() }, context),
  );
  for (const text of view.view.notes) context.report({ type: 'note', level: 'warning', text });
  if (saved !== undefined) requireSamePlan(saved, view, toolVersion());
  const told = await dryRun(view, { words: planWords(args, context), tool: toolVersion(), out, report, signal });
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

async function kindOf(asked: SpecKind, args: Arguments, context: CommandContext): Promise<SpecKind> {
  const { directory } = placesOf(args, context);
  const kind = kindOnNode(asked, await readable(directory, async () => readRecords(directory)));
  if (kind !== asked) {
    const text = 'the add-ons of this cluster were installed from this node: it is upgraded as by an install';
    context.report({ type: 'note', level: 'info', text });
  }
  return kind;
}

async function savedPlan(args: Arguments, { cwd }: CommandContext): Promise<SavedPlan | undefined> {
  const file = args.text('plan');
  return file === undefined ? undefined : readPlan(resolve(cwd, file));
}

function requireSameKind(kind: SpecKind, { plan }: SavedPlan, file: string): void {
  if (plan.kind === kind) return;
  throw new CurlewError('USAGE', `${file} is the plan of another kind of run`, {
    hint: `curlew ${plan.kind} --plan ${file}`,
  });
}

/** What is to be run, without where. */
async function wantedOf(
  kind: SpecKind,
  args: Arguments,
  context: CommandContext,
  from: { readonly source: InstallSource; readonly flags: GivenFlags; readonly recorded: string | undefined },
): Promise<Omit<RunRequest, 'place' | 'scripts'>> {
  const { source } = from;
  const hookLimit = hookLimitOf(args);
  const { installer, text, variables: told } = await specOf(args, context, from);
  const packages = await source.choose(installer);
  judgeSettings(installer, packages, context);
  if (args.flag('keep-data') && !args.flag('prune')) throw usage('--keep-data goes with --prune');
  const pruned = args.flag('prune') ? await pruneOf(packages, args, context) : undefined;
  const versions = new Map(packages.map(({ ref }) => [ref.name, ref.version] as const));
  const settings = new Map(installer.addons.map((addon) => [addon.name, addon.settings] as const));
  return {
    kind,
    offered: await source.offered(packages),
    packages: packages.map((one) => ({ source: one, settings: settings.get(one.ref.name) ?? {} })),
    removal: pruned?.removal,
    variables: [...new Map([...(pruned?.variables ?? []), ...hookVariables(installer, versions), ...told])],
    env: hookEnv(args, context),
    reapply: args.flag('reapply'),
    allowDowngrade: args.flag('allow-downgrade'),
    keepsPrevious: !args.flag('drop-previous'),
    skipImages: whySkipImages(args),
    hookLimit,
    checks: checksOf(args, installer),
    command: askedFor(kind, args, { specs: RUN_OPTIONS, cwd: context.cwd, installer: text }),
    cluster: clusterOf({
      args,
      context,
      installer,
      versions,
      schemas: new Map(packages.map(({ ref, addon }) => [ref.name, addon.settings])),
      release: source.release,
    }),
  };
}

async function pruneOf(
  wanted: readonly SourcePackage[],
  args: Arguments,
  context: CommandContext,
): ReturnType<typeof pruneRequest> {
  const { directory } = placesOf(args, context);
  const options = { keepGoing: false, keepData: args.flag('keep-data'), pruneImages: false };
  return readable(directory, async () => pruneRequest(directory, wanted, options, context));
}
