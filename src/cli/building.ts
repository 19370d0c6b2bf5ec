/** What `build` and `publish` have in common: which add-ons, with what, into which folder. */
import { relative, resolve, sep } from 'node:path';
import type { BuiltPackage } from '../build/build-addon.ts';
import { buildAddons } from '../build/build.ts';
import type { LockMode } from '../build/committed-lock.ts';
import { findOutdated, type OutdatedAddon } from '../build/outdated.ts';
import { planBuild, type BuildPlan } from '../build/plan.ts';
import { counted } from '../core/counted.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { findAddons, type AddonFolder, type FoundAddons } from '../manifest/find-addons.ts';
import { lintAddons } from '../manifest/lint.ts';
import { planManifest } from '../manifest/plan.ts';
import { listAddon } from '../manifest/read-addon.ts';
import { archOf } from './arch.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { openBuildPorts } from './build-ports.ts';
import { BACKEND_OPTIONS } from './backends.ts';
import { NETWORK_OPTIONS } from './network.ts';

export const BUILD_OPTIONS = {
  out: { type: 'string', value: 'DIR', help: 'folder for packages (default: out, beside addons)' },
  arch: { type: 'string', value: 'ARCH', help: 'amd64 or arm64 (default: amd64)' },
  'image-format': { type: 'string', value: 'FORM', help: 'oci (default) or docker-archive, as kURL has it' },
  'from-engine': { type: 'boolean', help: 'take images that no registry gives from the Docker engine' },
  jobs: { type: 'string', short: 'j', value: 'N', help: 'add-ons at once (default: 4)' },
  cache: { type: 'string', value: 'DIR', help: 'folder for unfinished downloads' },
  locked: { type: 'boolean', help: 'refuse what differs from the committed Manifest.lock' },
  'update-lock': { type: 'boolean', help: 'write Manifest.lock beside the Manifest, as everything resolves now' },
  ...BACKEND_OPTIONS,
  ...NETWORK_OPTIONS,
} satisfies OptionSpecs;

const JOBS = 4;

/** A whole number of at least 1 from an option. */
export function countOf(args: Arguments, option: string, fallback: number): number {
  const text = args.text(option);
  if (text === undefined) return fallback;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new CurlewError('USAGE', `--${option} ${text}: not a number from 1`);
  return Number(text);
}

/**
 * Plans the add-ons that the patterns name, for packages to be made of them: what `curlew lint` calls an error is one here,
 * too, but for what shellcheck says, which not every machine has. All errors come at once.
 */
export async function planPackages(
  patterns: readonly string[],
  args: Arguments,
  context: CommandContext,
): Promise<BuildPlan> {
  const { cwd, signal } = context;
  await refuseLinted(await findAddons(cwd, patterns, { signal }), context);
  return planAddons(patterns, args, context);
}

/** Judges the folders of a plan that was saved in the same way: they may have changed since. */
export async function requireBuildable(plan: BuildPlan, context: CommandContext): Promise<void> {
  const folders = plan.addons.map(({ ref, root: folder }): AddonFolder => {
    const shown = relative(context.cwd, folder).split(sep).join('/') || '.';
    return { ...ref, folder, root: resolve(folder, '../../..'), shown };
  });
  await refuseLinted({ folders, diagnostics: [] }, context);
}

async function refuseLinted(found: FoundAddons, { env, signal }: CommandContext): Promise<void> {
  const searchPath = env['PATH'] ?? '/usr/bin:/bin';
  const { diagnostics } = await lintAddons(found, { shellcheck: false, complete: false, searchPath, signal });
  refuseErrors(diagnostics);
}

/** Plans the add-ons that the patterns name. Errors in any Manifest come all at once. */
export async function planAddons(
  patterns: readonly string[],
  args: Arguments,
  { cwd, signal }: CommandContext,
): Promise<BuildPlan> {
  const imageFormat = args.text('image-format') ?? 'oci';
  if (imageFormat !== 'oci' && imageFormat !== 'docker-archive') {
    throw new CurlewError('USAGE', `--image-format ${imageFormat}: known are oci, docker-archive`);
  }
  const found = await findAddons(cwd, patterns, { signal });
  const listings = [];
  for (const folder of found.folders) listings.push(await listAddon(folder, { signal }));
  refuseErrors([...found.diagnostics, ...listings.flatMap(({ diagnostics }) => diagnostics)]);
  const addons = listings.map(({ ref, folder, manifest }) => ({ ref, root: folder, steps: planManifest(manifest) }));
  return planBuild(addons, { arch: archOf(args), imageFormat });
}

function refuseErrors(diagnostics: readonly Diagnostic[]): void {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return;
  throw new CurlewError('MANIFEST_INVALID', `${counted(errors.length, 'error')} in the add-ons to be built`, {
    diagnostics: errors,
    hint: 'curlew lint shows them with their lines',
  });
}

/** Carries out a plan with the clients and folders that the flags name. */
export async function runBuild(
  plan: BuildPlan,
  args: Arguments,
  context: CommandContext,
): Promise<readonly BuiltPackage[]> {
  const lock = lockMode(args);
  await using ports = await openBuildPorts(plan.addons, args, context);
  const { signal } = context;
  return await buildAddons(plan, ports, { jobs: countOf(args, 'jobs', JOBS), lock, signal });
}

export async function runOutdated(
  plan: BuildPlan,
  args: Arguments,
  context: CommandContext,
): Promise<readonly OutdatedAddon[]> {
  await using ports = await openBuildPorts(plan.addons, args, context);
  const { signal } = context;
  return await findOutdated(plan, ports, { jobs: countOf(args, 'jobs', JOBS), signal });
}

/** How committed locks are treated, by the flags. */
export function lockMode(args: Arguments): LockMode {
  const [require, update] = [args.flag('locked'), args.flag('update-lock')];
  if (require && update) throw new CurlewError('USAGE', '--locked and --update-lock exclude each other');
  if (require) return 'require';
  return update ? 'update' : 'compare';
}
