/** Judges add-on folders by all rules and reports every finding of all of them at once. */
import { availableParallelism } from 'node:os';
import { join, posix } from 'node:path';
import { compareDiagnostics, type Diagnostic, type Word } from '../core/diagnostic.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { maskSecrets } from '../core/errors.ts';
import { INSTALL_SH, MANIFEST } from '../core/layout.ts';
import { compareText } from '../core/ref.ts';
import type { Request } from './directives.ts';
import type { AddonFolder, FoundAddons } from './find-addons.ts';
import { definedHooks, hookFunction } from './hooks.ts';
import { checkHooks } from './lint-hooks.ts';
import { applyIgnores, type FileContext } from './lint/apply-ignores.ts';
import type { IgnoreComment } from './lint/ignore-comments.ts';
import { type LintConfig, readLintConfig } from './lint/lint-config.ts';
import { checkOwnFiles, createKnownTexts, type KnownTexts, lineKey, type SourceLines } from './lint/own-files.ts';
import { checkNames, checkProduction } from './lint/production.ts';
import { batches, checkSyntax, runShellcheck, type Script } from './lint-shell.ts';
import { type AddonListing, listAddon } from './read-addon.ts';
import { type Find, finding, quoted } from './rules.ts';
import { findFunctions } from '../formats/bash/shell.ts';
import { statOf } from './text-file.ts';
import { parseImageRef } from '../core/image-ref.ts';

interface LintedAddon {
  readonly name: string;
  readonly version: string;
  /** Relative to where the search began. */
  readonly path: string;
  /** Full names of the lifecycle functions that install.sh defines. */
  readonly hooks: readonly string[];
  /** Number of well-formed directives. */
  readonly directives: number;
}

/** A finding with the text of its line, secrets masked; undefined when there is no such line or it is very long. */
export interface LintFinding extends Diagnostic {
  readonly source: string | undefined;
  /** How many versions share the file, where it is found for each of them. */
  readonly versions?: number;
}

export interface LintReport {
  readonly addons: readonly LintedAddon[];
  /** By add-on, file and place. */
  readonly diagnostics: readonly LintFinding[];
  readonly errors: number;
  readonly warnings: number;
  readonly infos: number;
  /** `absent`: not installed; `off`: not wanted. */
  readonly shellcheck: 'ran' | 'absent' | 'off';
}

export interface LintOptions {
  /** All add-ons of their repositories are there: what a configuration ignores in vain is told. */
  readonly complete: boolean;
  readonly shellcheck: boolean;
  /** Where bash and shellcheck are looked for. */
  readonly searchPath: string;
  readonly signal: AbortSignal;
}

/** Add-ons whose scripts one bash process checks. */
const BATCH = 64;
const LONGEST_SOURCE = 2000;

interface Judged {
  readonly folder: AddonFolder;
  readonly addon: LintedAddon;
  readonly diagnostics: readonly Diagnostic[];
  /** Those of them for which a build refuses the add-on. */
  readonly binding: readonly Diagnostic[];
  readonly comments: readonly IgnoreComment[];
  readonly lines: SourceLines;
  readonly script: Script | undefined;
  /** Texts that findings may be shown in. */
  readonly texts: readonly (readonly [file: string, text: string])[];
}

/** Scripts by their text: versions of an add-on often share it, and other programs need to see it once. */
type Copies = Map<string, Script[]>;

/** Looks at all folders; bad input becomes findings, only I/O errors and cancellation throw. */
export async function lintAddons(found: FoundAddons, options: LintOptions): Promise<LintReport> {
  const copies: Copies = new Map();
  const known = createKnownTexts();
  // While bash checks the scripts of one batch, the next batch is read.
  const done = await mapLimited(
    batches(found.folders, BATCH),
    async (batch, { signal }) => {
      const judged: Judged[] = [];
      for (const folder of batch) judged.push(await judge(folder, { known, signal }));
      return { judged, syntax: await checkSyntax(firstCopies(judged, copies), { ...options, signal }) };
    },
    { width: availableParallelism() + 1, signal: options.signal },
  );
  const judged = done.flatMap((batch) => batch.judged);
  const syntax = done.flatMap((batch) => batch.syntax);
  const broken = new Set(syntax.map(({ place }) => place.file));
  const sound = [...copies.values()].flatMap(([first]) =>
    first === undefined || broken.has(first.shown) ? [] : [first],
  );
  const style = options.shellcheck && sound.length > 0 ? await runShellcheck(sound, options) : [];
  const ofScripts = forAllCopies([...syntax, ...(style ?? [])], copies);
  const together: Diagnostic[] = [];
  const find: Find = (one) => {
    together.push(one);
  };
  checkNames(found.folders, find);
  const clashes = together.filter(({ severity }) => severity === 'error');
  checkProduction(found.folders, new Map(judged.map(({ folder, addon }) => [folder, addon.hooks])), find);
  const { configs, contextOf } = readConfigs(found.folders, find);
  const all = [...found.diagnostics, ...judged.flatMap((one) => one.diagnostics), ...together, ...ofScripts];
  const judgedAll = applyIgnores({
    diagnostics: all,
    configs,
    contextOf,
    complete: options.complete,
    shellcheck: options.shellcheck && style !== undefined,
    binding: new Set([...found.diagnostics, ...clashes, ...judged.flatMap((one) => one.binding)]),
    comments: judged.flatMap((one) => one.comments),
  }).toSorted((a, b) => compareDiagnostics(a, b) || compareText(a.code, b.code));
  const diagnostics = onceForAll(judgedAll);
  const count = (wanted: Diagnostic['severity']): number =>
    diagnostics.filter(({ severity }) => severity === wanted).length;
  return {
    addons: judged.map(({ addon }) => addon),
    diagnostics: withSources(diagnostics, judged),
    errors: count('error'),
    warnings: count('warning'),
    infos: count('info'),
    shellcheck: options.shellcheck ? (style === undefined ? 'absent' : 'ran') : 'off',
  };
}

/** The configuration of each repository, and which one rules where. */
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

/** Notes the scripts, and hands back those whose text was not there before. */
function firstCopies(judged: readonly Judged[], copies: Copies): readonly Script[] {
  return judged.flatMap(({ script }) => {
    if (script === undefined) return [];
    const known = copies.get(script.text);
    if (known === undefined) copies.set(script.text, [script]);
    else known.push(script);
    return known === undefined ? [script] : [];
  });
}

/** Repeats what was found in the first copy of a script for the others. */
function forAllCopies(found: readonly Diagnostic[], copies: Copies): readonly Diagnostic[] {
  const byFirst = new Map([...copies.values()].map((scripts) => [scripts[0]?.shown, scripts]));
  return found.flatMap((one) =>
    (byFirst.get(one.place.file) ?? []).map(({ shown }) => ({ ...one, place: { ...one.place, file: shown } })),
  );
}

/** Versions of one add-on share categories.json, and each finds what is wrong with it. */
function onceForAll(diagnostics: readonly Diagnostic[]): readonly (Diagnostic & Pick<LintFinding, 'versions'>)[] {
  const counts = new Map<string, { readonly found: Diagnostic; count: number }>();
  for (const found of diagnostics) {
    const { file, line, column } = found.place;
    const key = JSON.stringify([found.code, file, line, column, found.message]);
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { found, count: 1 });
    else known.count += 1;
  }
  return [...counts.values()].map(({ found, count }) => (count === 1 ? found : { ...found, versions: count }));
}

function withSources(diagnostics: ReturnType<typeof onceForAll>, judged: readonly Judged[]): readonly LintFinding[] {
  const kept = new Map(judged.flatMap((one) => [...one.lines]));
  const texts = new Map(judged.flatMap((one) => one.texts));
  const lines = new Map<string, readonly string[]>();
  return diagnostics.map((found) => {
    const { file, line } = found.place;
    if (!lines.has(file)) lines.set(file, (texts.get(file) ?? '').split('\n'));
    const source = kept.get(lineKey(found.place)) ?? lines.get(file)?.[line - 1] ?? '';
    return { ...found, source: source === '' || source.length > LONGEST_SOURCE ? undefined : maskSecrets(source) };
  });
}

async function judge(
  folder: AddonFolder,
  { known, signal }: { readonly known: KnownTexts; readonly signal: AbortSignal },
): Promise<Judged> {
  const listing = await listAddon(folder, { signal });
  const binding = listing.diagnostics.filter(({ severity }) => severity === 'error');
  const diagnostics: Diagnostic[] = [...listing.diagnostics];
  const find: Find = (one) => {
    diagnostics.push(one);
  };
  checkLocalSources(listing, find);
  const { manifest, manifestText, installScript } = listing;
  checkPins(manifest.requests, find);
  checkFinalNewline(manifest.file, manifestText, find);
  if (isSchema(listing.settings)) {
    // Loaded only here, for the same reason as the judge of Troubleshoot specs.
    const { checkSettingsSchema } = await import('./lint/settings-schema.ts');
    checkSettingsSchema(`${folder.shown}/schema.json`, listing.settings, find);
  }
  const { lines, comments } = await checkOwnFiles(listing, find, { known, signal });
  const { name, version } = folder;
  const { hooks, script } = judgeScript(folder, installScript, find);
  const texts: (readonly [string, string])[] = [[manifest.file, manifestText]];
  if (installScript !== undefined) texts.push([`${folder.shown}/${INSTALL_SH}`, installScript]);
  const addon = { name, version, path: folder.shown, hooks, directives: manifest.requests.length };
  return { folder, addon, diagnostics, binding, comments, lines, script, texts };
}

function isSchema(settings: unknown): settings is Readonly<Record<string, unknown>> {
  return typeof settings === 'object' && settings !== null;
}

function judgeScript(
  { name, version, folder, shown, tree }: AddonFolder,
  text: string | undefined,
  find: Find,
): { readonly hooks: readonly string[]; readonly script: Script | undefined } {
  const file = `${shown}/${INSTALL_SH}`;
  if (text === undefined) return { hooks: [], script: undefined };
  const functions = findFunctions(file, text);
  // What lies under packages/ is installed by the add-ons; its install.sh need not define a hook.
  if (tree === 'addons') checkHooks({ name, version }, file, { text, functions }, find);
  const defined = new Set(functions.map((one) => one.name));
  const hooks = definedHooks(name, defined).map((hook) => hookFunction(name, hook));
  const unreadable = badText(file, text);
  if (unreadable !== undefined) find(unreadable);
  const script = unreadable === undefined ? { path: join(folder, INSTALL_SH), shown: file, text } : undefined;
  return { hooks, script };
}

/** What makes a script unreadable for bash as a whole: told once, in place of what bash would say. */
function badText(file: string, text: string): Diagnostic | undefined {
  const at = text.search(/\r\n|[\0\u{FFFD}]/u);
  if (at === -1) return undefined;
  const before = text.slice(0, at);
  const place = { file, line: before.split('\n').length, column: at - before.lastIndexOf('\n'), length: 1 };
  if (text[at] !== '\r') return finding('install/encoding', place, 'the script is not UTF-8 text', 'save it as UTF-8');
  const hint = "use Unix line ends: sed -i 's/\\r$//' install.sh; in .gitattributes: *.sh text eol=lf";
  return finding('install/crlf', place, 'the line ends in CR LF', hint);
}

function localSource(request: Request): Word | undefined {
  if (request.kind === 'dockerout') return request.dockerfile;
  if (request.kind === 'image' && request.archive !== undefined) return request.source;
  return request.kind === 'asset' && request.local ? request.source : undefined;
}

/** Files that directives name: may be made by an earlier step of a pipeline, so their absence is a warning. */
function checkLocalSources({ manifest, folder, root }: AddonListing, find: Find): void {
  for (const request of manifest.requests) {
    const word = localSource(request);
    if (word === undefined) continue;
    const base = request.kind === 'dockerout' ? root : folder;
    const path = word.text.startsWith('/') ? word.text : join(base, word.text);
    if (statOf(path) !== undefined) continue;
    const from = base === root ? 'the root of the repository' : `the folder of the ${MANIFEST}`;
    find(
      finding('source/not-found', word.place, `there is no file ${quoted(word.text)}`, `the path begins at ${from}`),
    );
  }
}

/** Tags that name another image from time to time, whoever publishes it; `latest` has a rule of its own. */
const FLOATING =
  /^(?:main|master|trunk|head|edge|dev|devel|develop|development|nightly|stable|canary|unstable|next|current|snapshot|rolling)$/i;

function checkPins(requests: readonly Request[], find: Find): void {
  for (const request of requests) {
    if (request.kind === 'image' && request.reference !== undefined) {
      const ref = parseImageRef(request.reference);
      if (typeof ref === 'string' || ref.digest !== undefined || !FLOATING.test(ref.tag ?? '')) continue;
      const message = `the tag ${quoted(ref.tag ?? '')} names another image from time to time`;
      find(finding('image/floating', request.source.place, message, 'name a version, or add @sha256:…'));
    }
    if (request.kind === 'asset' && !request.local && request.digest === undefined) {
      const hint = 'add #sha256=<64 hex digits>; Manifest.lock pins it too';
      find(finding('asset/no-digest', request.source.place, 'nothing says what this file has to be', hint));
    }
  }
}

/** kURL's reader of Manifests on a node drops a last line without its end. */
export function checkFinalNewline(file: string, text: string, find: Find): void {
  if (text === '' || text.endsWith('\n')) return;
  const start = text.lastIndexOf('\n') + 1;
  const place = { file, line: text.split('\n').length, column: text.length - start + 1, length: 1 };
  find(finding('manifest/no-final-newline', place, 'the last line has no line end'));
}
