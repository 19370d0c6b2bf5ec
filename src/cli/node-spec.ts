/** The installer spec of a run: what came with the packages, a site's overlay, flags of kURL and `--set`, in this order. */
import { resolve } from 'node:path';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { readFlags, withFlags, type GivenFlags } from '../spec/flags.ts';
import { installerId } from '../spec/id.ts';
import type { Installer } from '../spec/installer.ts';
import { installerYaml } from '../spec/merge.ts';
import { withField, withSettings } from '../spec/set.ts';
import { checkShipped, settingsError } from '../spec/shipped-schema.ts';
import type { SourcePackage } from '../runtime/node/source.ts';
import { readGivenFile } from '../platform/files/state-file.ts';
import type { Arguments, CommandContext } from './command.ts';
import type { InstallSource } from '../app/ports/install-source.ts';
import { installerText, noteWarnings, readSpec } from '../app/ports/run-source.ts';

/** The operands of a run, and its words with what the flags say of the run itself. What does nothing is told. */
export function flagsOf(
  given: Arguments,
  { cwd, report }: CommandContext,
): { readonly flags: GivenFlags; readonly args: Arguments } {
  const flags = readFlags(given.positionals);
  for (const text of flags.notes) report({ type: 'note', level: 'warning', text });
  const folder = flags.installDirectory;
  if (folder === undefined) return { flags, args: given };
  const other = given.text('install-dir');
  if (other !== undefined && resolve(cwd, other) !== resolve(cwd, folder)) {
    throw new CurlewError('USAGE', `--install-dir and the flag kurl-install-directory name two folders`, {
      hint: `the flag means the folder kurl below the one that it names: ${folder}`,
    });
  }
  const options = { ...given.options, installDir: folder } as unknown as Arguments['options'];
  return { flags, args: { ...given, options, text: (name) => (name === 'install-dir' ? folder : given.text(name)) } };
}

export interface NodeSpec {
  readonly installer: Installer;
  /** To be kept with the run: the overlay is in it, flags and settings are not. */
  readonly text: string;
  /** Shell variables besides those of settings. */
  readonly variables: ReadonlyMap<string, string>;
}

/** `recorded` is the text that was kept with a run that is gone on with. What is in a bundle is installed without a network. */
export async function specOf(
  args: Arguments,
  context: CommandContext,
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
  const hasBase = above === undefined || args.text('installer') !== undefined || source.installerText !== undefined;
  const below = hasBase ? (recorded ?? (await installerText(args.options, context, source))) : undefined;
  const { installer, document } = readSpec(args.options, context, below, above);
  const variables = new Map([['INSTALLER_ID', installerId(installer)], ...flags.variables]);
  const changed = withSettings(withFlags(installer, flags), args.texts('set'));
  return {
    installer: source.airgap ? withField(changed, { specName: 'kurl', field: 'airgap', value: true }) : changed,
    text: above === undefined && below !== undefined ? below : installerYaml(document),
    variables,
  };
}

async function overlayText(file: string, { cwd }: CommandContext): Promise<string> {
  const text = await readGivenFile(resolve(cwd, file), INSTALLER_LIMIT);
  if (text !== undefined) return text;
  throw new CurlewError('NOT_FOUND', `installer-spec-file: there is no file ${file}`);
}

/** Settings against the schemas that the packages ship. */
export function settingsFindings({ addons }: Installer, packages: readonly SourcePackage[]): readonly Diagnostic[] {
  return addons.flatMap((one) => {
    return checkShipped(one, packages.find(({ ref }) => ref.name === one.name)?.addon.settings);
  });
}

/** The same for a run: `SPEC_INVALID` with all that does not fit; warnings are told. */
export function judgeSettings(
  installer: Installer,
  packages: readonly SourcePackage[],
  { report }: Pick<CommandContext, 'report'>,
): void {
  const diagnostics = settingsFindings(installer, packages);
  if (diagnostics.some(({ severity }) => severity === 'error')) {
    throw settingsError(diagnostics);
  }
  noteWarnings(report, diagnostics);
}
