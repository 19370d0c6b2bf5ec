/** Plans builds, and refuses add-ons with errors. */
import { relative, resolve, sep } from 'node:path';
import type { LockMode } from '../../build/committed-lock.ts';
import { planBuild, type AddonPlan, type BuildPlan } from '../../build/plan.ts';
import { counted } from '../../core/counted.ts';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { findAddons, type AddonFolder, type FoundAddons } from '../../manifest/find-addons.ts';
import { lintAddons, type LintOptions } from '../../manifest/lint.ts';
import { planManifest } from '../../manifest/directives.ts';
import type { RuleId } from '../../manifest/rules.ts';
import { listAddon, type AddonListing } from '../../manifest/read-addon.ts';
import type { Context } from '../../core/context.ts';
import type { BuildRequest } from '../../requests/build.ts';

/**
 * Plans the add-ons that match the patterns, to build packages. Errors of `curlew lint` are errors here, too, except those of
 * shellcheck, which not every machine has. Reports all errors at once, and warns about images that no package has.
 */
export async function planPackages(
  patterns: readonly string[],
  request: BuildRequest,
  context: Context,
): Promise<BuildPlan> {
  const { cwd, signal } = context;
  const selection = await findAddons(cwd, patterns, { signal });
  const plans = new Map<string, AddonPlan>();
  await refuseLinted(selection, context, (listing) => plans.set(listing.folder, planOf(listing)));
  return planFor(
    selection.folders.flatMap(({ folder }) => plans.get(folder) ?? []),
    request,
  );
}

/** Lints the folders of a saved plan in the same way: they may have changed since. */
export async function requireBuildable(plan: BuildPlan, context: Context): Promise<void> {
  const folders = plan.addons.map(({ ref, root: folder }): AddonFolder => {
    const shown = relative(context.cwd, folder).split(sep).join('/') || '.';
    return { ...ref, folder, root: resolve(folder, '../../..'), shown };
  });
  await refuseLinted({ folders, diagnostics: [] }, context);
}

async function refuseLinted(
  selection: FoundAddons,
  { env, report, signal }: Context,
  onListed?: LintOptions['onListed'],
): Promise<void> {
  const searchPath = env['PATH'];
  const options = { shellcheck: false, complete: false, searchPath, onListed, signal };
  const { diagnostics } = await lintAddons(selection, options);
  refuseErrors(diagnostics);
  const warnings = diagnostics.filter(({ code, severity }) => severity === 'warning' && code === NEEDS_INTERNET);
  for (const { place, code, message, hint } of warnings.slice(0, MAX_WARNINGS)) {
    const text = `${place.file}:${place.line}:${place.column} ${code}: ${message} (${hint})`;
    report({ type: 'note', level: 'warning', text });
  }
  if (warnings.length <= MAX_WARNINGS) return;
  const text = `${warnings.length - MAX_WARNINGS} more images are missing: curlew lint shows all`;
  report({ type: 'note', level: 'warning', text });
}

/** What lint only warns about although the package then fails without internet. */
const NEEDS_INTERNET: RuleId = 'image/not-listed';
const MAX_WARNINGS = 10;

/** Like {@link planPackages}, but only errors of Manifests and folders are errors. */
export async function planAddons(
  patterns: readonly string[],
  request: BuildRequest,
  { cwd, signal }: Context,
): Promise<BuildPlan> {
  const selection = await findAddons(cwd, patterns, { signal });
  const listings = [];
  for (const folder of selection.folders) listings.push(await listAddon(folder, { signal }));
  refuseErrors([...selection.diagnostics, ...listings.flatMap(({ diagnostics }) => diagnostics)]);
  return planFor(listings.map(planOf), request);
}

function planOf({ ref, folder, manifest }: AddonListing): AddonPlan {
  return { ref, root: folder, steps: planManifest(manifest) };
}

function planFor(addons: readonly AddonPlan[], { arch = 'amd64', imageFormat = 'oci' }: BuildRequest): BuildPlan {
  return planBuild(addons, { arch, imageFormat });
}

function refuseErrors(diagnostics: readonly Diagnostic[]): void {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return;
  throw new CurlewError('MANIFEST_INVALID', `${counted(errors.length, 'error')} in the add-ons to be built`, {
    diagnostics: errors,
    hint: 'curlew lint shows them with their lines',
  });
}

/** The handling of committed locks. */
export function lockMode({ locked: require = false, updateLock: update = false }: BuildRequest): LockMode {
  if (require && update) throw new CurlewError('USAGE', '--locked and --update-lock cannot be used together');
  if (require) return 'require';
  return update ? 'update' : 'compare';
}
