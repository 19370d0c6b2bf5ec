/** Reports what works, differs or is missing in a repository written for kURL. */
import { firstOf } from '../core/counted.ts';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileError } from '../core/errors.ts';
import { HOST_PREFLIGHT, INSTALL_SH } from '../core/layout.ts';
import { shellVariables } from '../spec/variables.ts';
import { batches, checkSyntax } from '../manifest/lint-shell.ts';
import { planManifest } from '../manifest/directives.ts';
import { readTextFile } from '../manifest/text-file.ts';
import { parsePreflight } from '../runtime/preflight/parse-preflight.ts';
import { NO_INSTALLATION, type Situation, templateData } from '../runtime/preflight/situation.ts';
import { checkAddon, type CheckedScript, type Knowledge, ownPath, settingPrefix, type Uses } from './check-addon.ts';
import { type AddFinding, type Finding, findings, linePlace } from './finding.ts';
import { KURL_FUNCTIONS } from './compatibility/functions.ts';
import type { Row } from './compatibility/rows.ts';
import { SETTING_ROWS } from './compatibility/settings.ts';
import { VARIABLES } from './compatibility/variables.ts';
import { type ReadAddon, readRepository, readTemplate, type KurlRepository } from './repository.ts';
import { scriptFacts, type ScriptFacts } from './script-facts.ts';
import type { AddonTree, AddonVersion } from '../core/ref.ts';
import { folderName } from '../spec/installer.ts';
import { VERSION_LISTS, type VersionLists } from './version-lists.ts';

type Verdict = 'works' | 'differs' | 'missing';

export interface MigratedAddon extends AddonVersion {
  readonly tree: 'addons' | 'packages';
  /** Relative to the repository. */
  readonly path: string;
  readonly verdict: Verdict;
  /** Names of the library that work as in kURL. */
  readonly uses: Uses;
  readonly findings: readonly Finding[];
}

export interface Migration {
  readonly repository: string;
  readonly addons: readonly MigratedAddon[];
  /** About the repository as a whole. */
  readonly findings: readonly Finding[];
  readonly orders: readonly VersionOrder[];
}

export interface MigrateOptions {
  /** The folder with the shell library of hooks. */
  readonly library: string;
  /** The `PATH` to search for bash. */
  readonly searchPath: string | undefined;
  readonly signal: AbortSignal;
}

const LIBRARY_LIMIT = 1 << 20;
/** Number of scripts that one bash process checks. */
const BATCH = 64;

/** Checks the repository at `root`. Writes nothing and runs none of its scripts. */
export async function checkRepository(root: string, options: MigrateOptions): Promise<Migration> {
  const { signal } = options;
  const repository = await readRepository(root, { signal });
  const knowledge = knowledgeOf(repository, readLibrary(options.library));
  const broken = await brokenScripts(repository, options);
  const preflights = new Map<string, readonly Finding[]>();
  const addons = repository.addons.map((addon): MigratedAddon => {
    signal.throwIfAborted();
    const { list, add } = findings();
    const uses = checkOne(addon, knowledge, add);
    const all = [...addon.findings, ...(broken.get(addon) ?? []), ...list, ...preflightFindings(addon, preflights)];
    const { tree, name, version, shown: path } = addon.folder;
    return { tree, name, version, path, verdict: verdictOf(all), uses, findings: all };
  });
  const { list, add } = findings();
  checkPackages(repository, add);
  const orders = versionOrders(versionsOf(repository), repository.versions, add);
  return { repository: root, addons, findings: [...repository.findings, ...list], orders };
}

function verdictOf(all: readonly Finding[]): Verdict {
  if (all.some(({ grade }) => grade === 'missing')) return 'missing';
  return all.some(({ grade }) => grade === 'differs') ? 'differs' : 'works';
}

/** The functions of the library, and the variables that they set. */
function readLibrary(folder: string): readonly ScriptFacts[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.sh'))
      .map((name) => {
        const read = readTextFile(join(folder, name), LIBRARY_LIMIT);
        return scriptFacts(read.kind === 'text' ? read.text : '');
      });
  } catch (error) {
    throw fileError(`read the library ${folder}`, error);
  }
}

function knowledgeOf({ addons, scripts }: KurlRepository, library: readonly ScriptFacts[]): Knowledge {
  const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
    rows.map((row) => [row.name, row] as const);
  // If two settings set the same variable, the first row counts.
  const settings = SETTING_ROWS.map(
    ({ variable, ...row }) => [variable, { ...row, name: variable }] as const,
  ).toReversed();
  const facts = addons.flatMap((addon) => addon.scripts.map((script) => script.facts));
  const first = (of: (facts: ScriptFacts) => ReadonlySet<string>): ReadonlyMap<string, string> =>
    new Map(
      scripts.toReversed().flatMap((script) => [...of(script.facts)].map((name) => [name, script.shown] as const)),
    );
  return {
    functions: new Map(byName(KURL_FUNCTIONS.flatMap(([, rows]) => rows))),
    variables: new Map([...settings, ...byName(VARIABLES.flatMap(([, rows]) => rows))]),
    libraryFunctions: new Set(library.flatMap(({ functions }) => [...functions])),
    libraryVariables: new Set([
      ...library.flatMap(({ assigned }) => [...assigned]),
      ...shellVariables({ name: undefined, addons: [], sections: [] }, new Map()).map(([name]) => name),
    ]),
    addonFunctions: new Set(facts.flatMap(({ functions }) => [...functions])),
    addonVariables: new Set(facts.flatMap(({ assigned }) => [...assigned])),
    prefixes: [...new Set(addons.map(({ folder }) => settingPrefix(folder.name)))],
    repositoryFunctions: first(({ functions }) => functions),
    repositoryVariables: first(({ assigned }) => assigned),
  };
}

function checkOne({ folder, listing, scripts }: ReadAddon, knowledge: Knowledge, add: AddFinding): Uses {
  if (listing === undefined) return { functions: [], variables: [] };
  const { name, version, shown } = folder;
  const checked: CheckedScript[] = [];
  const addScript = (path: string, text: string, facts: ScriptFacts): void => {
    checked.push({ shown: `${shown}/${path}`, text, facts });
  };
  const install = scripts.find(({ path }) => path === INSTALL_SH);
  const waiting = install === undefined ? [] : [install];
  const seen = new Set<string>([INSTALL_SH]);
  for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
    addScript(script.path, script.text, script.facts);
    for (const { parts, role } of script.facts.paths) {
      const path = role === 'source' || role === 'template' ? ownPath(parts, name, version) : undefined;
      if (path === undefined || seen.has(path)) continue;
      seen.add(path);
      const next = role === 'source' ? scripts.find((one) => one.path === path) : readTemplate(listing, path);
      if (next !== undefined) waiting.push(next);
    }
  }
  const others = scripts.filter(({ path }) => !seen.has(path)).map(({ facts }) => facts);
  const files = new Set(listing.files.map(({ path }) => path));
  return checkAddon({ name, version, shown, scripts: checked, others, files, built: builtBy(listing) }, knowledge, add);
}

/** Files that a build adds to the package. */
function builtBy({ manifest }: NonNullable<ReadAddon['listing']>): readonly string[] {
  return [
    'images',
    ...planManifest(manifest).flatMap((step) => {
      if (step.kind === 'asset') return [`assets/${step.fileName}`];
      if (step.kind === 'os-packages') return [step.os];
      return step.kind === 'container-build' ? [step.destination] : [];
    }),
  ];
}

/** Syntax errors that bash finds in scripts; each text is checked once. */
async function brokenScripts(
  { addons }: KurlRepository,
  { searchPath, signal }: MigrateOptions,
): Promise<ReadonlyMap<ReadAddon, readonly Finding[]>> {
  const copies = new Map<string, ReadAddon[]>();
  for (const addon of addons) {
    const script = addon.scripts.find(({ path }) => path === INSTALL_SH);
    if (script !== undefined) copies.set(script.text, [...(copies.get(script.text) ?? []), addon]);
  }
  const scripts = [...copies].flatMap(([text, [first]]) => {
    if (first === undefined) return [];
    return [{ path: join(first.folder.folder, INSTALL_SH), shown: `${first.folder.shown}/${INSTALL_SH}`, text }];
  });
  const byFile = new Map(scripts.map(({ shown, text }) => [shown, copies.get(text) ?? []]));
  const broken = new Map<ReadAddon, readonly Finding[]>();
  for (const batch of batches(scripts, BATCH)) {
    for (const { place, message } of await checkSyntax(batch, { searchPath, signal })) {
      for (const addon of byFile.get(place.file) ?? []) {
        const { list, add } = findings();
        const what = message.includes('Segmentation fault') ? 'nested too deeply: bash crashes' : message;
        add('missing', 'script', INSTALL_SH, what, { ...place, file: `${addon.folder.shown}/${INSTALL_SH}` });
        broken.set(addon, list);
      }
    }
  }
  return broken;
}

/** Specs are templates: their content depends on the role of the machine. */
const SITUATIONS: readonly Situation[] = [
  NO_INSTALLATION,
  { ...NO_INSTALLATION, isUpgrade: true },
  { ...NO_INSTALLATION, isJoin: true, isPrimary: false, primaryHosts: ['192.0.2.1'], secondaryHosts: ['192.0.2.2'] },
];

function preflightFindings(
  { folder, hostPreflight }: ReadAddon,
  cache: Map<string, readonly Finding[]>,
): readonly Finding[] {
  if (hostPreflight === undefined) return [];
  const known = cache.get(hostPreflight) ?? checkPreflight(hostPreflight);
  cache.set(hostPreflight, known);
  return known.map((one) => ({ ...one, place: { ...one.place, file: `${folder.shown}/${HOST_PREFLIGHT}` } }));
}

function checkPreflight(text: string): readonly Finding[] {
  const { list, add } = findings();
  const reported = new Set<string>();
  for (const situation of SITUATIONS) {
    const { diagnostics } = parsePreflight(HOST_PREFLIGHT, text, templateData(situation));
    for (const { code, severity, message, place, hint } of diagnostics) {
      const key = `${place.line} ${message}`;
      if (reported.has(key)) continue;
      reported.add(key);
      add(severity === 'error' ? 'missing' : 'differs', 'preflight', code, message, place, hint);
    }
  }
  return list;
}

function versionsOf({ addons }: KurlRepository): readonly AddonVersions[] {
  const all = new Map<string, { tree: AddonVersions['tree']; name: string; versions: string[] }>();
  for (const { folder, listing } of addons) {
    const { tree, name, version } = folder;
    if (listing === undefined || (tree === 'packages' && name === 'host')) continue;
    const one = all.get(`${tree}/${name}`) ?? { tree, name, versions: [] };
    one.versions.push(version);
    all.set(`${tree}/${name}`, one);
  }
  return [...all.values()];
}

const CONFORMANCE = 'conformance/Manifest';

/** Folders for which kURL has special rules. */
function checkPackages({ addons }: KurlRepository, add: AddFinding): void {
  const kubernetes = addons.filter(({ folder }) => folder.name === 'kubernetes');
  const [first] = kubernetes;
  if (first !== undefined && kubernetes.every(({ scripts }) => scripts.every(({ path }) => path !== INSTALL_SH))) {
    const hint = 'without it, nodes get the images and files of Kubernetes, but no cluster is created';
    const message =
      "kURL's own scripts install Kubernetes; here an install.sh next to its Manifest does, and it is missing";
    add('missing', 'package', 'kubernetes', message, linePlace(first.folder.shown), hint);
  }
  const conformance = addons.filter(({ listing }) => listing?.files.some(({ path }) => path === CONFORMANCE) === true);
  for (const { folder } of conformance.slice(0, 1)) {
    const versions = conformance.length === 1 ? '1 version has' : `${conformance.length} versions have`;
    const message = `${versions} a ${CONFORMANCE}, which is not a separate package here`;
    const hint = 'move each to packages/kubernetes-conformance/<version>/Manifest';
    add('differs', 'package', 'kubernetes-conformance', message, linePlace(`${folder.shown}/${CONFORMANCE}`), hint);
  }
}

export type VersionOrder = AddonVersions;

export interface AddonVersions {
  readonly tree: AddonTree;
  readonly name: string;
  /** Versions with a folder. */
  readonly versions: readonly string[];
}

/** One for each add-on whose name is a key of the lists; others sort in descending order, as in kURL's catalog. */
export function versionOrders(
  addons: readonly AddonVersions[],
  versions: VersionLists | undefined,
  add: AddFinding,
): readonly VersionOrder[] {
  const lists = versions?.lists;
  if (lists === undefined) {
    add(
      'note',
      'order',
      VERSION_LISTS,
      'does not exist: the latest version of each add-on is the highest',
      linePlace(VERSION_LISTS),
    );
    return [];
  }
  return addons.flatMap(({ tree, name, versions: existing }): readonly VersionOrder[] => {
    const list = lists.get(name);
    if (list === undefined) {
      addUnlisted(name, lists, add);
      return [];
    }
    const order = list.filter((version) => existing.includes(version));
    const missing = list.filter((version) => !existing.includes(version));
    const unlisted = existing.filter((version) => !list.includes(version));
    const place = linePlace(VERSION_LISTS);
    if (missing.length > 0)
      add('note', 'order', name, `listed, but without a folder: ${firstOf(missing, MAX_NAMES)}`, place);
    if (unlisted.length > 0)
      add('note', 'order', name, `not listed, so after the listed versions: ${firstOf(unlisted, MAX_NAMES)}`, place);
    return order.length === 0 ? [] : [{ tree, name, versions: order }];
  });
}

function addUnlisted(name: string, lists: VersionLists['lists'], add: AddFinding): void {
  const key = [...lists.keys()].find((one) => one !== name && folderName(one) === name);
  const why = key === undefined ? 'it has no list' : `its list is named ${key}, which kURL's catalog does not find`;
  add('note', 'order', name, `the latest version is the highest: ${why}`, linePlace(VERSION_LISTS));
}

const MAX_NAMES = 6;
