/** The installer spec of a run: that of the packages, a site's overlay, flags of kURL and `--set`, in this order. */
import { resolve } from 'node:path';
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import { hasErrors, type Diagnostic } from '../../core/diagnostic.ts';
import { CurlewError } from '../../core/errors.ts';
import { readFlags, withFlags, type GivenFlags } from '../../spec/flags.ts';
import { installerId } from '../../spec/id.ts';
import type { Installer } from '../../spec/installer.ts';
import { installerYaml } from '../../spec/merge.ts';
import { withField, withSettings } from '../../spec/set.ts';
import { uncheckedSettings } from '../../spec/unchecked-settings.ts';
import type { SourcePackage } from '../../runtime/node/source.ts';
import { readGivenFile } from '../../platform/files/state-file.ts';
import type { Context } from '../../core/context.ts';
import type { InstallSource } from '../sources/install-source.ts';
import { installerText, noteWarnings, readRunSpec } from '../sources/run-source.ts';
import type { FlagRequest, SpecRequest } from '../../requests/node.ts';

/** Parses the flags and applies those for the run itself to the request. Reports flags without effect. */
export function flagsOf<Request extends FlagRequest>(
  request: Request,
  { cwd, report }: Pick<Context, 'cwd' | 'report'>,
): { readonly flags: GivenFlags; readonly request: Request } {
  const flags = readFlags(request.flags ?? []);
  for (const text of flags.notes) report({ type: 'note', level: 'warning', text });
  const folder = flags.installDirectory;
  if (folder === undefined) return { flags, request };
  const other = request.installDir;
  if (other !== undefined && resolve(cwd, other) !== resolve(cwd, folder)) {
    throw new CurlewError('USAGE', `--install-dir and the flag kurl-install-directory name different folders`, {
      hint: `the flag means the folder kurl in the named one: ${folder}`,
    });
  }
  return { flags, request: { ...request, installDir: folder } };
}

export interface NodeSpec {
  readonly installer: Installer;
  /** Text to save with the run: it includes the overlay, but not flags and settings. */
  readonly text: string;
  /** Shell variables in addition to those of settings. */
  readonly variables: ReadonlyMap<string, string>;
}

/** `recorded` is the saved text of a resumed run. With a bundle, `kurl.airgap` is set. */
export async function specOf(
  request: SpecRequest,
  context: Context,
  {
    source,
    flags,
    recorded,
  }: {
    readonly source: Pick<InstallSource, 'installerText' | 'airgap'>;
    readonly flags: GivenFlags;
    readonly recorded: string | undefined;
  },
): Promise<NodeSpec> {
  const overlay = recorded === undefined ? flags.overlay : undefined;
  const above = overlay === undefined ? undefined : { file: overlay, text: await overlayText(overlay, context) };
  const hasBase = above === undefined || request.installer !== undefined || source.installerText !== undefined;
  const below = hasBase ? (recorded ?? (await installerText(request, context, source))) : undefined;
  const { installer, document } = readRunSpec(request, context, below, above);
  const variables = new Map([['INSTALLER_ID', installerId(installer)], ...flags.variables]);
  const changed = withSettings(withFlags(installer, flags), request.set ?? []);
  return {
    installer: source.airgap ? withField(changed, { specName: 'kurl', field: 'airgap', value: true }) : changed,
    text: above === undefined && below !== undefined ? below : installerYaml(document),
    variables,
  };
}

async function overlayText(file: string, { cwd }: Context): Promise<string> {
  const text = await readGivenFile(resolve(cwd, file), INSTALLER_LIMIT);
  if (text !== undefined) return text;
  throw new CurlewError('NOT_FOUND', `installer-spec-file: ${file} does not exist`);
}

/** Checks settings against the schemas in the packages. */
export async function settingsFindings(
  { addons }: Installer,
  packages: readonly SourcePackage[],
): Promise<readonly Diagnostic[]> {
  const rows = addons.map((one) => [one, packages.find(({ ref }) => ref.name === one.name)?.addon.settings] as const);
  const withSchema = rows.filter(([, schema]) => schema !== undefined);
  if (withSchema.length === 0) return [];
  // Loaded on use: few packages have a schema.
  const { checkShipped } = await import('../../spec/shipped-schema.ts');
  return withSchema.flatMap(([one, schema]) => checkShipped(one, schema));
}

/** Findings about arguments of `--set` that nothing else has checked. */
export function setFindings(
  installer: Installer,
  packages: readonly SourcePackage[],
  set: readonly string[] = [],
): readonly Diagnostic[] {
  const owners = packages.map(({ ref, addon }) => {
    return [ref.name, { title: `${ref.name} ${ref.version}`, schema: addon.settings }] as const;
  });
  return uncheckedSettings(installer, set, new Map(owners));
}

/** Throws `SPEC_INVALID` with all invalid settings, and reports warnings; `set` are the arguments of `--set`. */
export async function requireValidSettings(
  installer: Installer,
  packages: readonly SourcePackage[],
  { report }: Pick<Context, 'report'>,
  set: readonly string[] = [],
): Promise<void> {
  const diagnostics = [...(await settingsFindings(installer, packages)), ...setFindings(installer, packages, set)];
  if (hasErrors(diagnostics)) {
    const { settingsError } = await import('../../spec/shipped-schema.ts');
    throw settingsError(diagnostics);
  }
  noteWarnings(report, diagnostics);
}
