/** What `curlew installer` can do with an installer spec: one function a verb, each giving data. */
import { resolve } from 'node:path';
import { INSTALLER_LIMIT } from '../core/bundle.ts';
import { withFurther, type Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { INSTALL_DIRECTORY } from '../core/layout.ts';
import { readFlags, withFlags, type GivenFlags } from '../spec/flags.ts';
import { installerId } from '../spec/id.ts';
import type { Installer } from '../spec/installer.ts';
import { installerYaml } from '../spec/merge.ts';
import { parseInstaller, parseMerged, type ParsedInstaller, type SpecText } from '../spec/parse.ts';
import { shownLine, shownText } from '../spec/secret-settings.ts';
import { withSettings } from '../spec/set.ts';
import { refusingSlips } from '../spec/shipped-schema.ts';
import { shellVariables } from '../spec/variables.ts';
import { resolveVersion } from '../spec/version.ts';
import type { JsonObject } from '../formats/yaml/yaml.ts';
import { readGivenFile } from '../platform/files/state-file.ts';
import type { Arguments, CommandContext } from './command.ts';
import type { InstallSource } from '../app/ports/install-source.ts';
import { judgeSettings, settingsFindings } from './node-spec.ts';
import { noteWarnings, openSource } from '../app/ports/run-source.ts';

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

export type InstallerResult = Validated | Merged | Environment | Identified | ResolvedSpec;

interface Specs {
  readonly texts: readonly [base: SpecText, ...overlay: SpecText[]];
  readonly flags: GivenFlags;
}

async function readText(file: string, { cwd }: CommandContext): Promise<SpecText> {
  const text = await readGivenFile(resolve(cwd, file), INSTALLER_LIMIT);
  if (text === undefined) throw new CurlewError('NOT_FOUND', `read ${file}: no such file`);
  return { file, text };
}

/** A spec, and flags behind it; the overlay is one of these, or for `merge` the second word. */
async function specsOf(words: readonly string[], context: CommandContext): Promise<Specs> {
  const [base, ...flagWords] = words;
  if (base === undefined) throw usage('name an installer spec');
  const other = flagWords.find((word) => /^[^=]*\.ya?ml$/i.test(word));
  if (other !== undefined)
    throw usage(`${other}: one spec at a time; an overlay is installer-spec-file=FILE, or see merge`);
  const flags = readFlags(flagWords);
  for (const text of flags.notes) context.report({ type: 'note', level: 'warning', text });
  const first = await readText(base, context);
  return { texts: flags.overlay === undefined ? [first] : [first, await readText(flags.overlay, context)], flags };
}

function parse([base, overlay]: Specs['texts']): ParsedInstaller {
  return overlay === undefined ? parseInstaller(base.file, base.text) : parseMerged(base, overlay);
}

function usage(what: string): CurlewError {
  return new CurlewError('USAGE', `curlew installer: ${what}`, { hint: 'curlew installer --help shows the verbs' });
}

/** What is read without a mistake; warnings are told. */
function valid({ texts }: Pick<Specs, 'texts'>, { report }: CommandContext) {
  const { installer, document, diagnostics } = parse(texts);
  if (installer === undefined || document === undefined) {
    const files = texts.map(({ file }) => file).join(' and ');
    throw new CurlewError('SPEC_INVALID', `read ${files}: not a valid installer spec`, { diagnostics });
  }
  noteWarnings(report, diagnostics);
  return { installer, document };
}

/** With flags and `--set`. */
async function changed(args: Arguments, words: readonly string[], context: CommandContext) {
  const specs = await specsOf(words, context);
  const read = valid(specs, context).installer;
  const installer = withSettings(withFlags(read, specs.flags), args.texts('set'));
  return { id: installerId(read), installer, flags: specs.flags };
}

async function validate(args: Arguments, words: readonly string[], context: CommandContext): Promise<Validated> {
  const { texts, flags } = await specsOf(words, context);
  const { installer, readable, diagnostics: read } = parse(texts);
  const given = readable && withSettings(withFlags(readable, flags), args.texts('set'));
  const more = given !== undefined && hasSource(args) ? await mistakesBeside(given, args, context) : [];
  const diagnostics = withFurther(read, more);
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
}

/** What the packages do not have, or refuse, of a spec. */
async function mistakesBeside(
  installer: Installer,
  args: Arguments,
  context: CommandContext,
): Promise<readonly Diagnostic[]> {
  await using source = await openSource(args.options, context, { directory: INSTALL_DIRECTORY, remember: false });
  const { packages, unresolved } = await chooseEach(source, installer);
  return [...unresolved, ...refusingSlips(settingsFindings(installer, packages))];
}

/** The packages of all add-ons that can be found, with findings about the others. */
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

async function merge(_: Arguments, words: readonly string[], context: CommandContext): Promise<Merged> {
  const [base, overlay, ...more] = words;
  if (base === undefined || overlay === undefined || more.length > 0) throw usage('merge needs a base and an overlay');
  const texts = [await readText(base, context), await readText(overlay, context)] as const;
  const { document } = valid({ texts }, context);
  return { verb: 'merge', document, yaml: installerYaml(document) };
}

async function env(args: Arguments, words: readonly string[], context: CommandContext): Promise<Environment> {
  const { installer, flags } = await changed(args, words, context);
  const found = hasSource(args) ? await versionsOf(installer, args, context) : undefined;
  const versions = new Map(found?.addons.map(({ name, version }) => [name, version]));
  const all = new Map([...shellVariables(installer, versions), ...flags.variables]);
  const shown = [...all].filter(([, value]) => value !== '' || !args.flag('filled'));
  const rows = shown.map(([name, value]) => [name, shownText(name, value)] as const);
  return { verb: 'env', variables: Object.fromEntries(rows.toSorted(([a], [b]) => (a < b ? -1 : 1))) };
}

async function id(_: Arguments, words: readonly string[], context: CommandContext): Promise<Identified> {
  return { verb: 'id', id: installerId(valid(await specsOf(words, context), context).installer) };
}

async function resolveSpec(args: Arguments, words: readonly string[], context: CommandContext): Promise<ResolvedSpec> {
  if (!hasSource(args)) throw usage('resolve needs --from, --bundle or --dir');
  const { installer } = await changed(args, words, context);
  return { verb: 'resolve', ...(await versionsOf(installer, args, context)) };
}

function hasSource(args: Arguments): boolean {
  return args.text('bundle') !== undefined || args.text('dir') !== undefined || args.texts('from').length > 0;
}

/** In the order of the spec. */
async function versionsOf(
  installer: Installer,
  args: Arguments,
  context: CommandContext,
): Promise<Omit<ResolvedSpec, 'verb'>> {
  await using source = await openSource(args.options, context, { directory: INSTALL_DIRECTORY, remember: false });
  const packages = await source.choose(installer);
  judgeSettings(installer, packages, context);
  const addons = installer.addons.map(({ name, requested }) => {
    const found = packages.find(({ ref }) => ref.name === name);
    if (found === undefined) throw new CurlewError('NOT_FOUND', `${name}: there is no package of it`);
    const { version } = found.ref;
    const { because } = resolveVersion(name, requested, [version]);
    return { name, requested, version, because, digest: found.addon.digest };
  });
  return { release: source.release, addons };
}

interface Verb {
  readonly run: (args: Arguments, words: readonly string[], context: CommandContext) => Promise<InstallerResult>;
  /** Of the options that not every verb takes. */
  readonly takes: readonly string[];
}

const SOURCES = ['from', 'release', 'bundle', 'dir'];

export const VERBS: Readonly<Record<string, Verb>> = {
  validate: { run: validate, takes: ['set', ...SOURCES] },
  merge: { run: merge, takes: [] },
  env: { run: env, takes: ['set', 'filled', ...SOURCES] },
  id: { run: id, takes: [] },
  resolve: { run: resolveSpec, takes: ['set', ...SOURCES] },
};

/** Options that some verbs take; all others are of the store and the network, and do no harm. */
export const VERB_OPTIONS: readonly string[] = ['set', 'filled', ...SOURCES];
