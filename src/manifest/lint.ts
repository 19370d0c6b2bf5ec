/** Judges add-on folders by all rules and reports every finding of all of them at once. */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { compareDiagnostics, type Diagnostic, type Word } from '../core/diagnostic.ts';
import { mapLimited } from '../core/each.ts';
import { maskSecrets } from '../core/errors.ts';
import { INSTALL_SH, MANIFEST } from '../core/layout.ts';
import { compareText } from '../core/ref.ts';
import type { Request } from './directives.ts';
import type { AddonFolder, FoundAddons } from './find-addons.ts';
import { definedHooks, hookFunction } from './hooks.ts';
import { checkHooks } from './lint-hooks.ts';
import { batches, checkSyntax, runShellcheck, type Script } from './lint-shell.ts';
import { listAddon, type AddonListing } from './read-addon.ts';
import { finding, quoted, type Find } from './rules.ts';
import { findFunctions } from './shell.ts';
import { statOf } from './text-file.ts';

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
interface LintFinding extends Diagnostic {
  readonly source: string | undefined;
}

export interface LintReport {
  readonly addons: readonly LintedAddon[];
  /** By add-on, file and place. */
  readonly diagnostics: readonly LintFinding[];
  readonly errors: number;
  readonly warnings: number;
  /** `absent`: not installed; `off`: not wanted. */
  readonly shellcheck: 'ran' | 'absent' | 'off';
}

export interface LintOptions {
  readonly shellcheck: boolean;
  /** Where bash and shellcheck are looked for. */
  readonly searchPath: string;
  readonly signal: AbortSignal;
}

/** Add-ons whose scripts one bash process checks. */
const BATCH = 64;
const LONGEST_SOURCE = 2000;

interface Judged {
  readonly addon: LintedAddon;
  readonly diagnostics: readonly Diagnostic[];
  readonly script: Script | undefined;
  /** Texts that findings may be shown in. */
  readonly texts: readonly (readonly [file: string, text: string])[];
}

/** Scripts by their text: versions of an add-on often share it, and other programs need to see it once. */
type Copies = Map<string, Script[]>;

/** Looks at all folders; bad input becomes findings, only I/O errors and cancellation throw. */
export async function lintAddons(found: FoundAddons, options: LintOptions): Promise<LintReport> {
  const copies: Copies = new Map();
  // While bash checks the scripts of one batch, the next batch is read.
  const done = await mapLimited(
    batches(found.folders, BATCH),
    async (batch, { signal }) => {
      const judged: Judged[] = [];
      for (const folder of batch) judged.push(await judge(folder, { signal }));
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
  const texts = new Map(judged.flatMap((one) => one.texts));
  const diagnostics = [...found.diagnostics, ...judged.flatMap((one) => one.diagnostics), ...ofScripts]
    .toSorted((a, b) => compareDiagnostics(a, b) || compareText(a.code, b.code))
    .filter((one, index, all) => index === 0 || !isSame(one, all[index - 1]));
  const errors = diagnostics.filter(({ severity }) => severity === 'error').length;
  return {
    addons: judged.map(({ addon }) => addon),
    diagnostics: withSources(diagnostics, texts),
    errors,
    warnings: diagnostics.length - errors,
    shellcheck: options.shellcheck ? (style === undefined ? 'absent' : 'ran') : 'off',
  };
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

/** Versions of one add-on share categories.json, and each would tell of it. */
function isSame(a: Diagnostic, b: Diagnostic | undefined): boolean {
  return b !== undefined && a.code === b.code && a.message === b.message && compareDiagnostics(a, b) === 0;
}

function withSources(diagnostics: readonly Diagnostic[], texts: ReadonlyMap<string, string>): readonly LintFinding[] {
  const lines = new Map<string, readonly string[]>();
  return diagnostics.map((found) => {
    const { file, line } = found.place;
    if (!lines.has(file)) lines.set(file, (texts.get(file) ?? '').split('\n'));
    const source = lines.get(file)?.[line - 1] ?? '';
    return { ...found, source: source === '' || source.length > LONGEST_SOURCE ? undefined : maskSecrets(source) };
  });
}

async function judge(folder: AddonFolder, { signal }: { readonly signal: AbortSignal }): Promise<Judged> {
  const listing = await listAddon(folder, { signal });
  const diagnostics: Diagnostic[] = [...listing.diagnostics];
  const find: Find = (one) => {
    diagnostics.push(one);
  };
  checkLocalSources(listing, find);
  const { name, version } = folder;
  const { hooks, script } = judgeScript(folder, listing.installScript, find);
  const texts: (readonly [string, string])[] = [[listing.manifest.file, listing.manifestText]];
  if (listing.installScript !== undefined) texts.push([`${folder.shown}/${INSTALL_SH}`, listing.installScript]);
  const addon = { name, version, path: folder.shown, hooks, directives: listing.manifest.requests.length };
  return { addon, diagnostics, script, texts };
}

function judgeScript(
  { name, folder, shown, tree }: AddonFolder,
  text: string | undefined,
  find: Find,
): { readonly hooks: readonly string[]; readonly script: Script | undefined } {
  const file = `${shown}/${INSTALL_SH}`;
  if (text === undefined) return { hooks: [], script: undefined };
  const functions = findFunctions(file, text);
  // What lies under packages/ is installed by the add-ons; its install.sh need not define a hook.
  if (tree === 'addons') checkHooks(name, file, functions, find);
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
