/** What of a repository made for kURL works here, what differs, what is missing. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileError } from '../core/errors.ts';
import { INSTALL_SH } from '../core/layout.ts';
import { shellVariables } from '../spec/variables.ts';
import { batches, checkSyntax } from '../manifest/lint-shell.ts';
import { planManifest } from '../manifest/plan.ts';
import { readTextFile } from '../manifest/text-file.ts';
import { parsePreflight } from '../runtime/preflight/parse.ts';
import { NO_INSTALLATION, type Situation, templateData } from '../runtime/preflight/situation.ts';
import { type Finding, findings, placeOf, type Tell } from './finding.ts';
import { judgeAddon, type JudgedScript, type Knowledge, ownPath, settingPrefix, type Uses } from './judge.ts';
import { FUNCTIONS } from './compatibility/functions.ts';
import type { Row } from './compatibility/rows.ts';
import { SETTING_ROWS } from './compatibility/settings.ts';
import { VARIABLES } from './compatibility/variables.ts';
import { HOST_PREFLIGHT, type ReadAddon, readRepository, readTemplate, type Repository } from './repository.ts';
import { scriptFacts, type ScriptFacts } from './script-facts.ts';
import type { AddonTree } from '../core/ref.ts';
import { folderName } from '../spec/installer.ts';
import { VERSION_LISTS, type VersionLists } from './version-lists.ts';

export type Verdict = 'works' | 'differs' | 'missing';

export interface MigratedAddon {
  readonly tree: 'addons' | 'packages';
  readonly name: string;
  readonly version: string;
  /** Below the repository. */
  readonly path: string;
  readonly verdict: Verdict;
  /** Of the library, that work as they do in kURL. */
  readonly uses: Uses;
  readonly findings: readonly Finding[];
}

export interface Migration {
  readonly repository: string;
  readonly addons: readonly MigratedAddon[];
  /** Of the repository as a whole. */
  readonly findings: readonly Finding[];
  readonly orders: readonly VersionOrder[];
}

export interface MigrateOptions {
  /** The folder of the functions that hooks find. */
  readonly library: string;
  /** Where bash is looked for. */
  readonly searchPath: string;
  readonly signal: AbortSignal;
}

const LIBRARY_LIMIT = 1 << 20;
/** Scripts that one bash process checks. */
const BATCH = 64;

/** Looks at the repository at `root`. Nothing is written, and nothing of it is run. */
export async function lookAtRepository(root: string, options: MigrateOptions): Promise<Migration> {
  const { signal } = options;
  const repository = await readRepository(root, { signal });
  const knowledge = knowledgeOf(repository, readLibrary(options.library));
  const broken = await brokenScripts(repository, options);
  const preflights = new Map<string, readonly Finding[]>();
  const addons = repository.addons.map((addon): MigratedAddon => {
    signal.throwIfAborted();
    const { found, tell } = findings();
    const uses = judge(addon, knowledge, tell);
    const all = [...addon.findings, ...(broken.get(addon) ?? []), ...found, ...preflightFindings(addon, preflights)];
    const { tree, name, version, shown: path } = addon.folder;
    return { tree, name, version, path, verdict: verdictOf(all), uses, findings: all };
  });
  const { found, tell } = findings();
  tellPackages(repository, tell);
  const orders = versionOrders(versionsOf(repository), repository.versions, tell);
  return { repository: root, addons, findings: [...repository.findings, ...found], orders };
}

function verdictOf(all: readonly Finding[]): Verdict {
  if (all.some(({ grade }) => grade === 'missing')) return 'missing';
  return all.some(({ grade }) => grade === 'differs') ? 'differs' : 'works';
}

/** Of the library: names of its functions, and of the variables that they set. */
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

function knowledgeOf({ addons, scripts }: Repository, library: readonly ScriptFacts[]): Knowledge {
  const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
    rows.map((row) => [row.name, row] as const);
  // Where two settings fill one variable, the first row tells of it.
  const settings = SETTING_ROWS.map(
    ({ variable, ...row }) => [variable, { ...row, name: variable }] as const,
  ).toReversed();
  const facts = addons.flatMap((addon) => addon.scripts.map((script) => script.facts));
  const first = (of: (facts: ScriptFacts) => ReadonlySet<string>): ReadonlyMap<string, string> =>
    new Map(
      scripts.toReversed().flatMap((script) => [...of(script.facts)].map((name) => [name, script.shown] as const)),
    );
  return {
    functions: new Map(byName(FUNCTIONS.flatMap(([, rows]) => rows))),
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

function judge({ folder, listing, scripts }: ReadAddon, knowledge: Knowledge, tell: Tell): Uses {
  if (listing === undefined) return { functions: [], variables: [] };
  const { name, version, shown } = folder;
  const judged: JudgedScript[] = [];
  const asJudged = (path: string, text: string, facts: ScriptFacts): void => {
    judged.push({ shown: `${shown}/${path}`, text, facts });
  };
  const install = scripts.find(({ path }) => path === INSTALL_SH);
  const waiting = install === undefined ? [] : [install];
  const seen = new Set<string>([INSTALL_SH]);
  for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
    asJudged(script.path, script.text, script.facts);
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
  return judgeAddon({ name, version, shown, scripts: judged, others, files, built: builtBy(listing) }, knowledge, tell);
}

/** What a build puts into the package besides its own files. */
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

/** What bash itself finds wrong with scripts, each text checked once. */
async function brokenScripts(
  { addons }: Repository,
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
        const { found, tell } = findings();
        const what = message.includes('Segmentation fault') ? 'nested too deeply: bash itself gives up' : message;
        tell('missing', 'script', INSTALL_SH, what, { ...place, file: `${addon.folder.shown}/${INSTALL_SH}` });
        broken.set(addon, found);
      }
    }
  }
  return broken;
}

/** Specs are templates: what stands in them depends on what a machine is to become. */
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
  const known = cache.get(hostPreflight) ?? judgePreflight(hostPreflight);
  cache.set(hostPreflight, known);
  return known.map((one) => ({ ...one, place: { ...one.place, file: `${folder.shown}/${HOST_PREFLIGHT}` } }));
}

function judgePreflight(text: string): readonly Finding[] {
  const { found, tell } = findings();
  const told = new Set<string>();
  for (const situation of SITUATIONS) {
    const { diagnostics } = parsePreflight(HOST_PREFLIGHT, text, templateData(situation));
    for (const { code, severity, message, place, hint } of diagnostics) {
      const key = `${place.line} ${message}`;
      if (told.has(key)) continue;
      told.add(key);
      tell(severity === 'error' ? 'missing' : 'differs', 'preflight', code, message, place, hint);
    }
  }
  return found;
}

function versionsOf({ addons }: Repository): readonly AddonVersions[] {
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

/** What kURL makes of folders by rules of its own. */
function tellPackages({ addons }: Repository, tell: Tell): void {
  const kubernetes = addons.filter(({ folder }) => folder.name === 'kubernetes');
  const [first] = kubernetes;
  if (first !== undefined && kubernetes.every(({ scripts }) => scripts.every(({ path }) => path !== INSTALL_SH))) {
    const hint = 'without one, images and files of Kubernetes are brought to nodes, and no cluster is made';
    const message =
      "kURL's own scripts install Kubernetes; here an install.sh beside its Manifest does, and there is none";
    tell('missing', 'package', 'kubernetes', message, placeOf(first.folder.shown), hint);
  }
  const conformance = addons.filter(({ listing }) => listing?.files.some(({ path }) => path === CONFORMANCE) === true);
  for (const { folder } of conformance.slice(0, 1)) {
    const message = `${conformance.length} ${conformance.length === 1 ? 'version has' : 'versions have'} a ${CONFORMANCE} below, which is no package of its own here`;
    const hint = 'move each to packages/kubernetes-conformance/<version>/Manifest';
    tell('differs', 'package', 'kubernetes-conformance', message, placeOf(`${folder.shown}/${CONFORMANCE}`), hint);
  }
}

export interface VersionOrder {
  readonly tree: AddonTree;
  readonly name: string;
  /** Those that have a folder, in the order of the list. */
  readonly versions: readonly string[];
}

export interface AddonVersions {
  readonly tree: AddonTree;
  readonly name: string;
  /** That have a folder. */
  readonly versions: readonly string[];
}

/** One for each add-on whose name is a key of the lists; the others descend, as they do in kURL's catalogue. */
export function versionOrders(
  addons: readonly AddonVersions[],
  versions: VersionLists | undefined,
  tell: Tell,
): readonly VersionOrder[] {
  const lists = versions?.lists;
  if (lists === undefined) {
    tell(
      'note',
      'order',
      VERSION_LISTS,
      'not there: the latest version of each add-on is its greatest',
      placeOf(VERSION_LISTS),
    );
    return [];
  }
  return addons.flatMap(({ tree, name, versions: there }): readonly VersionOrder[] => {
    const list = lists.get(name);
    if (list === undefined) {
      tellUnlisted(name, lists, tell);
      return [];
    }
    const order = list.filter((version) => there.includes(version));
    const gone = list.filter((version) => !there.includes(version));
    const more = there.filter((version) => !list.includes(version));
    const place = placeOf(VERSION_LISTS);
    if (gone.length > 0) tell('note', 'order', name, `listed, but without a folder: ${some(gone)}`, place);
    if (more.length > 0) tell('note', 'order', name, `not listed, so behind those that are: ${some(more)}`, place);
    return order.length === 0 ? [] : [{ tree, name, versions: order }];
  });
}

function tellUnlisted(name: string, lists: VersionLists['lists'], tell: Tell): void {
  const key = [...lists.keys()].find((one) => one !== name && folderName(one) === name);
  const why = key === undefined ? 'it has no list' : `its list is called ${key}, which kURL's catalogue does not find`;
  tell('note', 'order', name, `the latest is the greatest version: ${why}`, placeOf(VERSION_LISTS));
}

const MOST_NAMED = 6;

function some(names: readonly string[]): string {
  const more = names.length - MOST_NAMED;
  return `${names.slice(0, MOST_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
