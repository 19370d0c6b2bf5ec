/** Checks add-on folders by all rules and reports all findings at once. */
import { availableParallelism } from 'node:os';
import { join, posix, relative } from 'node:path';
import { compareDiagnostics, type Diagnostic, type Word } from '../core/diagnostic.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { maskSecrets } from '../core/errors.ts';
import { INSTALL_SH, MANIFEST } from '../core/layout.ts';
import { compareText, type AddonVersion } from '../core/ref.ts';
import type { FetchedSource } from './directives.ts';
import type { AddonFolder, FoundAddons } from './find-addons.ts';
import { definedHooks, hookFunction } from './hooks.ts';
import { checkHooks } from './lint-hooks.ts';
import { applyIgnores, type FileContext } from './lint/apply-ignores.ts';
import type { IgnoreComment } from './lint/ignore-comments.ts';
import { type LintConfig, readLintConfig } from './lint/lint-config.ts';
import { checkOwnFiles, createKnownTexts, type KnownTexts, lineKey, type SourceLines } from './lint/own-files.ts';
import { checkNames, checkProduction } from './lint/production.ts';
import { checkScriptFiles } from './lint/script-files.ts';
import { placer } from './lint/spot.ts';
import { batches, checkSyntax, runShellcheck, type Script } from './lint-shell.ts';
import { type AddonListing, listAddon } from './read-addon.ts';
import { finder, type Find, finding, quoted } from './rules.ts';
import { findFunctions } from '../formats/bash/shell.ts';
import { statOf } from './text-file.ts';
import { outsideProblem } from './within-repository.ts';

interface LintedAddon extends AddonVersion {
  /** Relative to the start of the search. */
  readonly path: string;
  /** Full names of the lifecycle functions that install.sh defines. */
  readonly hooks: readonly string[];
  /** Number of well-formed directives. */
  readonly directives: number;
}

/** A finding with the text of its line, secrets masked; undefined if there is none or it is very long. */
export interface LintFinding extends Diagnostic {
  readonly source: string | undefined;
  /** Number of versions that share the file, if all of them have this finding. */
  readonly versions?: number;
}

export interface LintReport {
  readonly addons: readonly LintedAddon[];
  /** By add-on, file and place. */
  readonly diagnostics: readonly LintFinding[];
  readonly errors: number;
  readonly warnings: number;
  readonly infos: number;
  /** `absent`: not installed; `off`: not requested. */
  readonly shellcheck: 'ran' | 'absent' | 'off';
}

export interface LintOptions {
  /** All add-ons of their repositories are checked, so unused ignores of a configuration are reported. */
  readonly complete: boolean;
  readonly shellcheck: boolean;
  /** PATH for bash and shellcheck. */
  readonly searchPath: string | undefined;
  /** Called with each add-on as it was read, for what else needs it. */
  readonly onListed?: ((listing: AddonListing) => void) | undefined;
  readonly signal: AbortSignal;
}

/** Add-ons whose scripts one bash process checks. */
const BATCH = 64;
const MAX_SOURCE = 2000;

interface CheckedAddon {
  readonly folder: AddonFolder;
  readonly addon: LintedAddon;
  readonly diagnostics: readonly Diagnostic[];
  /** The findings for which a build refuses the add-on. */
  readonly binding: readonly Diagnostic[];
  readonly comments: readonly IgnoreComment[];
  readonly lines: SourceLines;
  readonly script: Script | undefined;
  /** Texts in which findings may be shown. */
  readonly texts: readonly (readonly [file: string, text: string])[];
}

/** Scripts by their text, which versions of an add-on often share: other programs check it once. */
type Copies = Map<string, Script[]>;

/** Checks all folders; bad input becomes findings, and only I/O errors and cancellation throw. */
export async function lintAddons(selection: FoundAddons, options: LintOptions): Promise<LintReport> {
  const copies: Copies = new Map();
  const known = createKnownTexts();
  // Reads the next batch while bash checks the scripts of the previous one.
  const done = await mapLimited(
    batches(selection.folders, BATCH),
    async (batch, { signal }) => {
      const checked: CheckedAddon[] = [];
      for (const folder of batch) checked.push(await checkAddon(folder, { ...options, known, signal }));
      return { checked, syntax: await checkSyntax(firstCopies(checked, copies), { ...options, signal }) };
    },
    { width: availableParallelism() + 1, signal: options.signal },
  );
  const checked = done.flatMap((batch) => batch.checked);
  const syntax = done.flatMap((batch) => batch.syntax);
  const broken = new Set(syntax.map(({ place }) => place.file));
  const sound = [...copies.values()].flatMap(([first]) =>
    first === undefined || broken.has(first.shown) ? [] : [first],
  );
  const style = options.shellcheck && sound.length > 0 ? await runShellcheck(sound, options) : [];
  const ofScripts = forAllCopies([...syntax, ...(style ?? [])], copies);
  const together: Diagnostic[] = [];
  const find = finder((one) => together.push(one));
  checkNames(selection.folders, find);
  const clashes = together.filter(({ severity }) => severity === 'error');
  checkProduction(selection.folders, new Map(checked.map(({ folder, addon }) => [folder, addon.hooks])), find);
  const { configs, contextOf } = readConfigs(selection.folders, find);
  const all = [...selection.diagnostics, ...checked.flatMap((one) => one.diagnostics), ...together, ...ofScripts];
  const remaining = applyIgnores({
    diagnostics: all,
    configs,
    contextOf,
    complete: options.complete,
    shellcheck: options.shellcheck && style !== undefined,
    binding: new Set([...selection.diagnostics, ...clashes, ...checked.flatMap((one) => one.binding)]),
    comments: checked.flatMap((one) => one.comments),
  }).toSorted((a, b) => compareDiagnostics(a, b) || compareText(a.code, b.code));
  const diagnostics = mergeVersions(remaining);
  const count = (level: Diagnostic['severity']): number =>
    diagnostics.filter(({ severity }) => severity === level).length;
  return {
    addons: checked.map(({ addon }) => addon),
    diagnostics: withSources(diagnostics, checked),
    errors: count('error'),
    warnings: count('warning'),
    infos: count('info'),
    shellcheck: options.shellcheck ? (style === undefined ? 'absent' : 'ran') : 'off',
  };
}

/** The configuration of each repository, and a lookup for files. */
function readConfigs(
  folders: readonly AddonFolder[],
  find: Find,
): { readonly configs: readonly LintConfig[]; readonly contextOf: (file: string) => FileContext } {
  const byRoot = new Map<string, LintConfig | undefined>();
  const contexts = new Map<string, FileContext>();
  for (const { tree, name, version, root, shown } of folders) {
    const above = posix.join(shown, '../../..');
    if (!byRoot.has(root)) byRoot.set(root, readLintConfig(root, above === '.' ? '' : `${above}/`, find));
    const config = byRoot.get(root);
    contexts.set(shown, { path: `${tree}/${name}/${version}`, config });
    contexts.set(posix.dirname(shown), { path: `${tree}/${name}`, config });
  }
  const contextOf = (file: string): FileContext => {
    for (let at = file; at !== '.' && at !== '/'; at = posix.dirname(at)) {
      const context = contexts.get(at);
      if (context !== undefined) return { ...context, path: context.path + file.slice(at.length) };
    }
    return { path: file, config: undefined };
  };
  return { configs: [...byRoot.values()].flatMap((config) => config ?? []), contextOf };
}

/** Records the scripts, and returns those with a new text. */
function firstCopies(checked: readonly CheckedAddon[], copies: Copies): readonly Script[] {
  return checked.flatMap(({ script }) => {
    if (script === undefined) return [];
    const known = copies.get(script.text);
    if (known === undefined) copies.set(script.text, [script]);
    else known.push(script);
    return known === undefined ? [script] : [];
  });
}

/** Repeats the findings of the first copy of a script for the others. */
function forAllCopies(diagnostics: readonly Diagnostic[], copies: Copies): readonly Diagnostic[] {
  const byFirst = new Map([...copies.values()].map((scripts) => [scripts[0]?.shown, scripts]));
  return diagnostics.flatMap((one) =>
    (byFirst.get(one.place.file) ?? []).map(({ shown }) => ({ ...one, place: { ...one.place, file: shown } })),
  );
}

/** Merges equal findings of several versions: they share categories.json, and each reports its problems. */
function mergeVersions(diagnostics: readonly Diagnostic[]): readonly (Diagnostic & Pick<LintFinding, 'versions'>)[] {
  const counts = new Map<string, { readonly diagnostic: Diagnostic; count: number }>();
  for (const diagnostic of diagnostics) {
    const { file, line, column } = diagnostic.place;
    const key = JSON.stringify([diagnostic.code, file, line, column, diagnostic.message]);
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { diagnostic, count: 1 });
    else known.count += 1;
  }
  return [...counts.values()].map(({ diagnostic, count }) =>
    count === 1 ? diagnostic : { ...diagnostic, versions: count },
  );
}

function withSources(
  diagnostics: ReturnType<typeof mergeVersions>,
  checked: readonly CheckedAddon[],
): readonly LintFinding[] {
  const knownLines = new Map(checked.flatMap((one) => [...one.lines]));
  const texts = new Map(checked.flatMap((one) => one.texts));
  const lines = new Map<string, readonly string[]>();
  return diagnostics.map((diagnostic) => {
    const { file, line } = diagnostic.place;
    if (!lines.has(file)) lines.set(file, (texts.get(file) ?? '').split('\n'));
    const source = knownLines.get(lineKey(diagnostic.place)) ?? lines.get(file)?.[line - 1] ?? '';
    return { ...diagnostic, source: source === '' || source.length > MAX_SOURCE ? undefined : maskSecrets(source) };
  });
}

async function checkAddon(
  folder: AddonFolder,
  { known, onListed, signal }: Pick<LintOptions, 'onListed' | 'signal'> & { readonly known: KnownTexts },
): Promise<CheckedAddon> {
  const listing = await listAddon(folder, { signal });
  onListed?.(listing);
  const binding = listing.diagnostics.filter(({ severity }) => severity === 'error');
  const diagnostics: Diagnostic[] = [...listing.diagnostics];
  const find = finder((one) => diagnostics.push(one));
  checkLocalSources(listing, find);
  const { manifest, manifestText, installScript } = listing;
  checkPins(manifest.requests, find);
  checkFinalNewline(manifest.file, manifestText, find);
  if (isSchema(listing.settings)) {
    // Loaded on use, like the checks of Troubleshoot specs.
    const { checkSettingsSchema } = await import('./lint/settings-schema.ts');
    checkSettingsSchema(`${folder.shown}/schema.json`, listing.settings, find);
  }
  const { lines, comments } = await checkOwnFiles(listing, find, { known, signal });
  const { name, version } = folder;
  const { hooks, script } = checkScript(folder, installScript, find);
  if (installScript !== undefined) {
    checkScriptFiles(
      listing,
      installScript,
      placer(`${folder.shown}/${INSTALL_SH}`, () => installScript),
      find,
    );
  }
  const texts: (readonly [string, string])[] = [[manifest.file, manifestText]];
  if (installScript !== undefined) texts.push([`${folder.shown}/${INSTALL_SH}`, installScript]);
  const addon = { name, version, path: folder.shown, hooks, directives: manifest.requests.length };
  return { folder, addon, diagnostics, binding, comments, lines, script, texts };
}

function isSchema(settings: unknown): settings is Readonly<Record<string, unknown>> {
  return typeof settings === 'object' && settings !== null;
}

function checkScript(
  { name, version, folder, shown, tree }: AddonFolder,
  text: string | undefined,
  find: Find,
): { readonly hooks: readonly string[]; readonly script: Script | undefined } {
  const file = `${shown}/${INSTALL_SH}`;
  if (text === undefined) return { hooks: [], script: undefined };
  const functions = findFunctions(file, text);
  // Add-ons install the content of packages/, so its install.sh need not define a hook.
  if (tree === 'addons') checkHooks({ name, version }, file, { text, functions }, find);
  const defined = new Set(functions.map((one) => one.name));
  const hooks = definedHooks(name, defined).map((hook) => hookFunction(name, hook));
  const unreadable = badText(file, text);
  if (unreadable !== undefined) find(unreadable);
  const script = unreadable === undefined ? { path: join(folder, INSTALL_SH), shown: file, text } : undefined;
  return { hooks, script };
}

/** Why bash cannot read a script at all: one finding instead of bash's errors. */
function badText(file: string, text: string): Diagnostic | undefined {
  const at = text.search(/\r\n|[\0\u{FFFD}]/u);
  if (at === -1) return undefined;
  const before = text.slice(0, at);
  const place = { file, line: before.split('\n').length, column: at - before.lastIndexOf('\n'), length: 1 };
  if (text[at] !== '\r') return finding('install/encoding', place, 'the script is not UTF-8 text', 'save it as UTF-8');
  const hint = "use Unix line endings: sed -i 's/\\r$//' install.sh; in .gitattributes: *.sh text eol=lf";
  return finding('install/crlf', place, 'the line ends in CR LF', hint);
}

function localSource(request: FetchedSource): Word | undefined {
  if (request.kind === 'dockerout') return request.dockerfile;
  if (request.kind === 'image' && request.archive !== undefined) return request.source;
  return request.kind === 'asset' && request.local ? request.source : undefined;
}

/** Checks files that directives name. An earlier step of a pipeline may create them, so a missing one is a warning. */
function checkLocalSources({ manifest, folder, root, files }: AddonListing, find: Find): void {
  const own = new Set(files.map(({ path }) => path));
  for (const request of manifest.requests) {
    const word = localSource(request);
    if (word === undefined) continue;
    const base = request.kind === 'dockerout' ? root : folder;
    const path = word.text.startsWith('/') ? word.text : join(base, word.text);
    const outside = outsideProblem(path, root);
    if (outside !== undefined) {
      const hint = 'copy the file into the repository; curlew build --allow-outside-files packs it from there';
      find('source/outside', word.place, `${quoted(word.text)} ${outside}`, hint);
      continue;
    }
    const inside = relative(folder, path);
    if (request.kind === 'asset' && own.has(inside)) {
      const hint =
        'remove the asset if scripts can use the file where it is, or move it out of the folder of the add-on';
      find('asset/packed-twice', word.place, `${quoted(inside)} is packed as a file of the add-on already`, hint);
    }
    if (statOf(path) !== undefined) continue;
    const from = base === root ? 'the root of the repository' : `the folder of the ${MANIFEST}`;
    find('source/not-found', word.place, `no file ${quoted(word.text)}`, `the path is relative to ${from}`);
  }
}

/** Tags whose image changes over time, by convention; `latest` has a separate rule. */
const FLOATING =
  /^(?:main|master|trunk|head|edge|dev|devel|develop|development|nightly|stable|canary|unstable|next|current|snapshot|rolling)$/i;

function checkPins(requests: readonly FetchedSource[], find: Find): void {
  for (const request of requests) {
    if (request.kind === 'image' && request.archive === undefined && request.ref !== undefined) {
      const { ref } = request;
      if (ref.digest !== undefined || !FLOATING.test(ref.tag ?? '')) continue;
      const message = `the image of the tag ${quoted(ref.tag ?? '')} changes over time`;
      find('image/floating', request.source.place, message, 'name a version, or add @sha256:…');
    }
    if (request.kind === 'asset' && !request.local && request.digest === undefined) {
      const hint = 'add #sha256=<64 hex digits>; Manifest.lock also pins it';
      find('asset/no-digest', request.source.place, 'nothing verifies the content of this file', hint);
    }
  }
}

/** kURL's Manifest reader on a node drops a last line without a line end. */
export function checkFinalNewline(file: string, text: string, find: Find): void {
  if (text === '' || text.endsWith('\n')) return;
  const start = text.lastIndexOf('\n') + 1;
  const place = { file, line: text.split('\n').length, column: text.length - start + 1, length: 1 };
  find('manifest/no-final-newline', place, 'the last line does not end with a newline');
}
