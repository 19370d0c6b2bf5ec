/** Plans a bundle from a store and an installer spec, and opens its sources. */
import type { ArchiveIndex } from '../../formats/archive/entry.ts';
import type { Catalog } from '../../core/catalog.ts';
import { compareDiagnostics, hasErrors, type Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import type { OsId } from '../../core/os.ts';
import type { Arch } from '../../core/ref.ts';
import type { Installer } from '../../spec/installer.ts';
import { refusingTypos, settingsError } from '../../spec/shipped-schema.ts';
import type { SourceStore } from '../store/source.ts';
import { chooseExtras, NO_EXTRAS, type ExtraOptions, type ResolvedExtra } from './extras.ts';
import type { BundleSource } from './write/bytes.ts';
import { readKurlScripts, requireDockerArchives } from './kurl-layout.ts';
import { checkSettings, openPackages, readSchemas, secretsOfSpec, type OpenOptions } from './open-packages.ts';
import { planBundle, type BundlePlan } from './bundle-plan.ts';
import { resolveSpec } from './resolve.ts';
import { openExecutable, readRootFiles } from '../../own/root-files.ts';

export interface PlanFromOptions extends OpenOptions {
  /** The spec, as stored in the bundle. */
  readonly spec: Uint8Array;
  /** The catalog with the packages. */
  readonly catalog: Catalog;
  readonly arch: Arch;
  /** Packages in addition to the spec. */
  readonly extras?: ExtraOptions | undefined;
  /** Operating systems whose folders stay in packages; undefined for all. */
  readonly os?: readonly OsId[] | undefined;
  /** Folder with kURL's own scripts, for a bundle that they install. */
  readonly kurlScripts?: string | undefined;
  /** Opens packages from outside of the store; called after the spec is checked. */
  readonly given?: (() => Promise<readonly GivenPackage[]>) | undefined;
  /**
   * Which invalid settings of the spec stop the plan. `enforce`: those that the schemas of its packages reject, as nodes do.
   * `strict`: also settings that look misspelled. `allow`: none.
   */
  readonly settings?: 'enforce' | 'strict' | 'allow' | undefined;
  /** Hint for invalid settings. */
  readonly settingsHint?: string | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Folder with the tool for nodes; default is that of this build. */
  readonly executables?: string | undefined;
  /** Opens the tool for nodes instead of that folder. */
  readonly executable?: typeof openExecutable | undefined;
}

/** An extra package with its source. */
export interface GivenPackage {
  readonly resolved: ResolvedExtra;
  readonly source: PlanSource;
  readonly index: ArchiveIndex;
}

/** A source of a plan's ranges. */
export interface PlanSource extends BundleSource {
  readonly size: number;
}

/** A plan with its open sources. Dispose after reading. */
export interface OpenPlan extends AsyncDisposable {
  readonly plan: BundlePlan;
  /** Source n is the plan's source n. */
  readonly sources: readonly PlanSource[];
  /** The parts of the spec that have secrets: add-ons, installed or not, and sections. */
  readonly secrets: readonly string[];
}

export interface PlannedSpec extends OpenPlan {
  /** Findings about settings that did not stop the plan. */
  readonly findings: readonly Diagnostic[];
}

/**
 * Reads only the end and the addon.json of each package. Reports missing add-ons and invalid settings
 * together.
 */
export async function planFrom(
  store: SourceStore,
  installer: Installer,
  {
    spec,
    catalog,
    arch,
    extras = NO_EXTRAS,
    os,
    kurlScripts,
    given: openGiven = async () => [],
    settings = 'enforce',
    settingsHint,
    tool,
    executables,
    executable: open = openExecutable,
    maxTocBytes,
    signal,
  }: PlanFromOptions,
): Promise<PlannedSpec> {
  const { packages: resolved, error } = resolveSpec(installer, catalog, arch);
  const chosen =
    error === undefined ? chooseExtras(resolved, extras, { catalog, arch, forKurl: kurlScripts !== undefined }) : [];
  const packages = await openPackages(store, resolved, { maxTocBytes, signal });
  const schemas = await readSchemas(installer, packages, { signal });
  const problems = await checkSettings(schemas, { signal });
  const findings = settings === 'strict' ? refusingTypos(problems) : problems;
  requireSpec(findings, error, { rule: settings, hint: settingsHint });
  const supplied = await openGiven();
  const others = await openPackages(store, chosen, { maxTocBytes, signal });
  if (kurlScripts !== undefined) await requireDockerArchives([...packages, ...others], { signal });
  const rootFiles = kurlScripts === undefined ? await readRootFiles() : await readKurlScripts(kurlScripts);
  const executable = kurlScripts === undefined ? await open(arch, { folder: executables, signal }) : undefined;
  const close = async (): Promise<void> => executable?.[Symbol.asyncDispose]();
  try {
    const plan = planBundle({
      release: catalog.release,
      arch,
      installer: spec,
      rootFiles,
      executable: executable?.index,
      packages,
      extras: [...others, ...supplied],
      os,
      tool,
    });
    const toolSource = executable === undefined ? [] : [executable.source];
    const sources = [...[...packages, ...others, ...supplied].map(({ source }): PlanSource => source), ...toolSource];
    const secrets = secretsOfSpec(spec, schemas);
    return { plan, sources, secrets, findings, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Throws `SPEC_INVALID` for add-ons that were not resolved and for settings that the rule refuses, together. */
export function requireSpec(
  findings: readonly Diagnostic[],
  unresolved: CurlewError | undefined,
  { rule, hint }: { readonly rule: PlanFromOptions['settings']; readonly hint?: string | undefined },
): void {
  const stops = rule !== 'allow' && hasErrors(findings);
  if (!stops && unresolved === undefined) return;
  if (unresolved === undefined) throw settingsError(findings, hint);
  if (!stops) throw unresolved;
  const diagnostics = [...unresolved.diagnostics, ...findings].toSorted(compareDiagnostics);
  throw new CurlewError('SPEC_INVALID', 'the spec does not match the packages in the store', { diagnostics });
}
