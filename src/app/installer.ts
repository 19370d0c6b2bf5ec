/** Validates, merges and resolves installer specs. */
import { resolve } from 'node:path';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { withFurther, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError, errorAbout, noSuchFile } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { readFlags, withFlags, type GivenFlags } from '../spec/flags.ts';
import { installerId } from '../spec/id.ts';
import type { Installer } from '../spec/installer.ts';
import { installerYaml } from '../spec/merge.ts';
import { parseInstaller, parseMerged, withoutNameGuesses, type ParsedInstaller, type SpecText } from '../spec/parse.ts';
import { shownLine, shownText } from '../spec/secret-settings.ts';
import { withSettings } from '../spec/set.ts';
import { refusingTypos } from '../spec/shipped-schema.ts';
import { shellVariables } from '../spec/variables.ts';
import { channelOf, channelReason, resolveVersion } from '../spec/version.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';
import { readGivenFile } from '../platform/files/state-file.ts';
import { requireValidSettings, setFindings, settingsFindings } from '../steps/node/spec.ts';
import type { Context } from '../core/context.ts';
import type { InstallSource } from '../steps/sources/install-source.ts';
import { noteWarnings, openSource } from '../steps/sources/run-source.ts';
import type { SourceRequest, SpecRequest } from '../requests/node.ts';
import {
  INSTALLER_MERGE,
  INSTALLER_ENV,
  INSTALLER_ID,
  INSTALLER_RESOLVE,
  INSTALLER_VALIDATE,
  type InstallerRequest,
  type InstallerSourceRequest,
} from '../requests/installer.ts';
import { useCase } from '../core/request.ts';

/** A finding, with the text of its line. */
export type SourcedDiagnostic = Diagnostic & { readonly source: string | undefined };

export interface Validated {
  readonly verb: 'validate';
  readonly files: readonly string[];
  readonly valid: boolean;
  readonly addons: number;
  readonly diagnostics: readonly SourcedDiagnostic[];
}

export interface Merged {
  readonly verb: 'merge';
  readonly document: JsonObject;
  readonly yaml: string;
}

export interface Environment {
  readonly verb: 'env';
  readonly variables: Readonly<Record<string, string>>;
}

export interface Identified {
  readonly verb: 'id';
  readonly id: string;
}

export interface ResolvedSpec {
  readonly verb: 'resolve';
  readonly release: string | undefined;
  readonly addons: readonly {
    readonly name: string;
    readonly requested: string;
    readonly version: string;
    readonly because: string;
    readonly digest: string;
  }[];
}

interface Specs {
  readonly texts: readonly [base: SpecText, ...overlay: SpecText[]];
  readonly flags: GivenFlags;
}

async function readText(file: string, { cwd }: Context): Promise<SpecText> {
  const text = await readGivenFile(resolve(cwd, file), INSTALLER_LIMIT);
  if (text === undefined) throw noSuchFile(`read ${file}`);
  return { file, text };
}

/** The spec and the flags, one of which may name an overlay. */
async function specsOf({ spec, flags: texts = [] }: InstallerRequest, context: Context): Promise<Specs> {
  const other = texts.find((flag) => /^[^=]*\.ya?ml$/i.test(flag));
  if (other !== undefined)
    throw usage(`${other}: only one spec is allowed; for an overlay, use installer-spec-file=FILE or merge`);
  const flags = readFlags(texts);
  for (const text of flags.notes) context.report({ type: 'note', level: 'warning', text });
  const first = await readText(spec, context);
  return { texts: flags.overlay === undefined ? [first] : [first, await readText(flags.overlay, context)], flags };
}

function parse([base, overlay]: Specs['texts']): ParsedInstaller {
  return overlay === undefined ? parseInstaller(base.file, base.text) : parseMerged(base, overlay);
}

const usage = errorAbout('USAGE', 'curlew installer', 'curlew installer --help lists the commands');

/** Throws `SPEC_INVALID` for errors and reports warnings. `isResolved`: its names are looked up in packages afterwards. */
function valid({ texts }: Pick<Specs, 'texts'>, { report }: Context, { isResolved = false } = {}) {
  const { installer, document, diagnostics } = parse(texts);
  if (installer === undefined || document === undefined) {
    const files = texts.map(({ file }) => file).join(' and ');
    throw new CurlewError('SPEC_INVALID', `cannot read ${files}: not a valid installer spec`, { diagnostics });
  }
  noteWarnings(report, isResolved ? withoutNameGuesses(diagnostics) : diagnostics);
  return { installer, document };
}

/** The spec with flags and `--set` applied. */
async function changed(request: InstallerSourceRequest, context: Context) {
  const specs = await specsOf(request, context);
  const read = valid(specs, context, { isResolved: hasSource(request) }).installer;
  const installer = withSettings(withFlags(read, specs.flags), request.set ?? []);
  return { id: installerId(read), installer, flags: specs.flags };
}

/** Reports all errors at once; with a source also missing versions and settings that the packages refuse. */
export const validateSpec = useCase(INSTALLER_VALIDATE, async (request, context): Promise<Validated> => {
  const { texts, flags } = await specsOf(request, context);
  const { installer, readable, diagnostics: read } = parse(texts);
  const changed = readable && withSettings(withFlags(readable, flags), request.set ?? []);
  const more = changed === undefined ? [] : await furtherFindings(changed, request, context);
  const diagnostics = withFurther(hasSource(request) ? withoutNameGuesses(read) : read, more);
  const lines = new Map(texts.map(({ file, text }) => [file, text.split(/\r?\n/)]));
  return {
    verb: 'validate',
    files: texts.map(({ file }) => file),
    valid: diagnostics.every(({ severity }) => severity !== 'error'),
    addons: installer?.addons.length ?? 0,
    diagnostics: diagnostics.map((one) => {
      const all = lines.get(one.place.file) ?? [];
      const at = one.place.line - 1;
      return { ...one, source: all[at] === undefined ? undefined : shownLine(all, at) };
    }),
  };
});

/** Findings about `--set`, and, with a source, about versions and settings of a spec that the packages do not have or refuse. */
async function furtherFindings(
  installer: Installer,
  { set, ...request }: Omit<SourceRequest, 'installer'> & Pick<SpecRequest, 'set'>,
  context: Context,
): Promise<readonly Diagnostic[]> {
  if (!hasSource(request)) return setFindings(installer, [], set);
  await using source = await openSource(request, context, { directory: INSTALL_DIRECTORY, remember: false });
  const { packages, unresolved } = await chooseEach(source, installer);
  return [
    ...unresolved,
    ...refusingTypos(await settingsFindings(installer, packages)),
    ...setFindings(installer, packages, set),
  ];
}

/** The packages of all add-ons that are found, and findings about the others. */
async function chooseEach({ choose }: Pick<InstallSource, 'choose'>, installer: Installer) {
  try {
    return { packages: await choose(installer), unresolved: [] };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    const places = error.diagnostics.map(({ place }) => place);
    const addons = installer.addons.filter(({ place }) => !places.includes(place));
    if (addons.length === installer.addons.length) throw error;
    return { packages: await choose({ ...installer, addons }), unresolved: error.diagnostics };
  }
}

/** Merges a site's overlay into a spec. */
export const mergeSpecs = useCase(INSTALLER_MERGE, async ({ base, overlay }, context): Promise<Merged> => {
  const texts = [await readText(base, context), await readText(overlay, context)] as const;
  const { document } = valid({ texts }, context);
  return { verb: 'merge', document, yaml: installerYaml(document) };
});

/** The shell variables of the spec, as kURL's yamltobash prints them; with a source, versions are resolved. */
export const specVariables = useCase(INSTALLER_ENV, async (request, context): Promise<Environment> => {
  const { installer, flags } = await changed(request, context);
  const chosen = hasSource(request) ? await versionsOf(installer, request, context) : undefined;
  const versions = new Map(chosen?.addons.map(({ name, version }) => [name, version]));
  const all = new Map([...shellVariables(installer, versions), ...flags.variables]);
  const shown = [...all].filter(([, value]) => value !== '' || request.filled !== true);
  const rows = shown.map(([name, value]) => [name, shownText(name, value)] as const);
  return { verb: 'env', variables: Object.fromEntries(rows.toSorted(([a], [b]) => (a < b ? -1 : 1))) };
});

/** kURL's seven-digit ID of a spec; its name and the order of its keys do not matter. */
export const specId = useCase(INSTALLER_ID, async (request, context): Promise<Identified> => {
  return { verb: 'id', id: installerId(valid(await specsOf(request, context), context).installer) };
});

/** Resolves the version of each add-on in a source, with the reason. */
export const resolveSpec = useCase(INSTALLER_RESOLVE, async (request, context): Promise<ResolvedSpec> => {
  if (!hasSource(request)) throw usage('resolve needs --from, --bundle or --dir');
  const { installer } = await changed(request, context);
  return { verb: 'resolve', ...(await versionsOf(installer, request, context)) };
});

function hasSource({ bundle, dir, from = [] }: SourceRequest): boolean {
  return bundle !== undefined || dir !== undefined || from.length > 0;
}

/** Versions in the order of the spec. */
async function versionsOf(
  installer: Installer,
  request: SourceRequest,
  context: Context,
): Promise<Omit<ResolvedSpec, 'verb'>> {
  await using source = await openSource(request, context, { directory: INSTALL_DIRECTORY, remember: false });
  const packages = await source.choose(installer);
  await requireValidSettings(installer, packages, context);
  const addons = installer.addons.map(({ name, requested }) => {
    const chosen = packages.find(({ ref }) => ref.name === name);
    if (chosen === undefined) throw new CurlewError('NOT_FOUND', `${name}: no package found`);
    const { version } = chosen.ref;
    const channel = channelOf(requested);
    const because =
      channel === undefined
        ? resolveVersion(name, requested, [version]).because
        : channelReason(channel, packages.find(({ ref }) => ref.name === 'kubernetes')?.ref.version ?? 'unknown');
    return { name, requested, version, because, digest: chosen.addon.digest };
  });
  return { release: source.release, addons };
}
