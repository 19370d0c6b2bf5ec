/** The plan of a bundle, made from a store and an installer spec, with everything that its ranges are read from. */
import type { ArchiveIndex } from '../formats/archive/entry.ts';
import type { Catalogue } from '../core/catalogue.ts';
import { compareDiagnostics, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import type { OsId } from '../core/os.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer } from '../spec/installer.ts';
import { refusingTypos, settingsError } from '../spec/shipped-schema.ts';
import type { SourceStore } from '../store/source.ts';
import { chooseBeside, NOTHING_BESIDE, type BesideOptions, type ResolvedBeside } from './beside.ts';
import type { BundleSource } from './write/bytes.ts';
import { readKurlScripts, requireDockerArchives } from './kurl-layout.ts';
import { checkSettings, openPackages, type OpenOptions } from './open-packages.ts';
import { planBundle, type BundlePlan } from './plan.ts';
import { resolveSpec } from './resolve.ts';
import { openExecutable, readRootFiles } from './root-files.ts';

export interface PlanFromOptions extends OpenOptions {
  /** Bytes of the spec, as the bundle holds them. */
  readonly spec: Uint8Array;
  /** The one to take packages from. */
  readonly catalogue: Catalogue;
  readonly arch: Arch;
  /** Packages that the spec does not name. */
  readonly beside?: BesideOptions | undefined;
  /** Folders of operating systems that stay in packages; undefined: all. */
  readonly os?: readonly OsId[] | undefined;
  /** Folder with kURL's own scripts, for a bundle that those install. */
  readonly kurlScripts?: string | undefined;
  /** Packages that lie elsewhere than in the store; they are asked for when the spec has been judged. */
  readonly given?: (() => Promise<readonly GivenPackage[]>) | undefined;
  /**
   * What settings of the spec stop the plan: those that the schemas of its packages refuse, which nodes would refuse, too; with
   * `strict` also those that look misspelled; with `allow` none.
   */
  readonly settings?: 'enforce' | 'strict' | 'allow' | undefined;
  /** What to do about them. */
  readonly settingsHint?: string | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Folder with the tool for nodes, by default that of this build. */
  readonly executables?: string | undefined;
  /** Opens the tool for nodes in the place of what is in that folder. */
  readonly executable?: typeof openExecutable | undefined;
}

/** A package beside the spec, with what its bytes are read from. */
export interface GivenPackage {
  readonly resolved: ResolvedBeside;
  readonly source: PlanSource;
  readonly index: ArchiveIndex;
}

/** What ranges of a plan are read from. */
export interface PlanSource extends BundleSource {
  readonly size: number;
}

/** To be disposed of when nothing is read any more. */
export interface OpenPlan extends AsyncDisposable {
  readonly plan: BundlePlan;
  /** Source n is what the plan calls so. */
  readonly sources: readonly PlanSource[];
}

export interface PlannedSpec extends OpenPlan {
  /** Of settings that did not stop it. */
  readonly findings: readonly Diagnostic[];
}

/**
 * Reads of each package its end and its addon.json, nothing more. Add-ons that cannot be found and settings
 * that do not fit are reported together.
 */
export async function planFrom(
  store: SourceStore,
  installer: Installer,
  {
    spec,
    catalogue,
    arch,
    beside = NOTHING_BESIDE,
    os,
    kurlScripts,
    given: openGiven = async () => [],
    settings = 'enforce',
    settingsHint,
    tool,
    executables,
    executable: open = openExecutable,
    mostToc,
    signal,
  }: PlanFromOptions,
): Promise<PlannedSpec> {
  const { packages: resolved, error } = resolveSpec(installer, catalogue, arch);
  const extra =
    error === undefined ? chooseBeside(resolved, beside, { catalogue, arch, forKurl: kurlScripts !== undefined }) : [];
  const packages = await openPackages(store, resolved, { mostToc, signal });
  const found = await checkSettings(installer, packages, { signal });
  const findings = settings === 'strict' ? refusingTypos(found) : found;
  requireSpec(findings, error, { rule: settings, hint: settingsHint });
  const given = await openGiven();
  const others = await openPackages(store, extra, { mostToc, signal });
  if (kurlScripts !== undefined) await requireDockerArchives([...packages, ...others], { signal });
  const rootFiles = kurlScripts === undefined ? await readRootFiles() : await readKurlScripts(kurlScripts);
  const executable = kurlScripts === undefined ? await open(arch, { folder: executables, signal }) : undefined;
  const close = async (): Promise<void> => executable?.[Symbol.asyncDispose]();
  try {
    const plan = planBundle({
      release: catalogue.release,
      arch,
      installer: spec,
      rootFiles,
      executable: executable?.index,
      packages,
      beside: [...others, ...given],
      os,
      tool,
    });
    const toolSource = executable === undefined ? [] : [executable.source];
    const sources = [...[...packages, ...others, ...given].map(({ source }): PlanSource => source), ...toolSource];
    return { plan, sources, findings, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

function requireSpec(
  findings: readonly Diagnostic[],
  unresolved: CurlewError | undefined,
  { rule, hint }: { readonly rule: PlanFromOptions['settings']; readonly hint: string | undefined },
): void {
  const stops = rule !== 'allow' && findings.some(({ severity }) => severity === 'error');
  if (!stops && unresolved === undefined) return;
  if (unresolved === undefined) throw settingsError(findings, hint);
  if (!stops) throw unresolved;
  const diagnostics = [...unresolved.diagnostics, ...findings].toSorted(compareDiagnostics);
  throw new CurlewError('SPEC_INVALID', 'the spec does not fit what the store has', { diagnostics });
}
