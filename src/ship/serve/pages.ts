/** The page for browsers: reads what it shows from the store, and answers with HTML. */
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { resolvePackage, resolveSpec, type ResolvedPackage } from '../bundle/resolve.ts';
import { folderName } from '../../spec/installer.ts';
import { channelOf } from '../../spec/version.ts';
import { listReleases } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import type { Bundles, BundlesOptions } from './bundles.ts';
import type { SeenCatalog } from './catalogs.ts';
import { type Answer, dataContent, textAnswer } from './content.ts';
import { asServerError, forClients, statusOf } from './failure.ts';
import type { KnownSpec } from './installers.ts';
import type { ChosenSpecs } from './chosen-specs.ts';
import { type Choice, formatChoice, parseChoice, specNameOf, withAddons } from './page/choice.ts';
import { changesPage } from './page/changes.ts';
import { choosePage, type ChoiceResult } from './page/choose.ts';
import { contentsPage } from './page/contents.ts';
import { settingFields, type PageFields } from './page/fields.ts';
import { PAGE_HEADERS, pageText } from './page/frame.ts';
import { html, type Html } from './page/html.ts';
import type { Description } from './plan-protocol.ts';
import { chosenPlace } from './route.ts';

export interface PageRequest {
  readonly kind: 'overview' | 'contents' | 'changes';
  readonly query: URLSearchParams;
  readonly base: string;
  /** The path prefix that a proxy has added; empty if none. */
  readonly root: string;
  readonly signal: AbortSignal;
}

export interface PagesOptions extends Pick<
  BundlesOptions,
  'planner' | 'catalogs' | 'executable' | 'tool' | 'now' | 'signal'
> {
  readonly bundles: Bundles;
  readonly chosenSpecs: ChosenSpecs;
  /** Nodes must get signed releases. */
  readonly signed: boolean;
}

/** Answers a request for a page; mistakes in its address become a page that says them. */
export type Pages = (request: PageRequest) => Promise<Answer>;

/** Memory for descriptions of packages, in characters. */
const DESCRIBED = 8 << 20;
/** Milliseconds for which a list of releases is cached. */
const LISTED_MS = 60_000;

export function createPages(store: Store, options: PagesOptions): Pages {
  const { catalogs, bundles, chosenSpecs, planner, executable, signed, tool, signal: own } = options;
  const listed = createSingleFlightCache<readonly string[]>({ freshMs: LISTED_MS, now: options.now });
  const described = createSingleFlightCache<Description>({
    most: DESCRIBED,
    weigh: (description) => JSON.stringify(description).length,
  });
  const describe = async (resolved: ResolvedPackage): Promise<Description> =>
    described.get(`${resolved.key} ${resolved.sha256}`, async () =>
      asServerError(async () => planner.run({ kind: 'describe', resolved }, { signal: own })),
    );

  /** The fields of chosen add-ons. Packages are read one after the other, as a connection has one job at a time. */
  const fieldsOf = async (
    { packages }: ChoiceResult,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, PageFields>> => {
    const fields = new Map([['kurl', settingFields('kurl', undefined)]]);
    for (const resolved of packages) {
      signal.throwIfAborted();
      const { addon } = await describe(resolved);
      const specName = specNameOf(resolved.name);
      fields.set(specName, settingFields(specName, addon.settings));
    }
    return fields;
  };

  const outcomeOf = async (choice: Choice, { catalog }: SeenCatalog, signal: AbortSignal): Promise<ChoiceResult> => {
    const { arch, release } = choice;
    let made: ChoiceResult['made'];
    let packages: ChoiceResult['packages'] | undefined;
    const packagesOf = ({ installer }: KnownSpec): ChoiceResult['packages'] =>
      resolveSpec(installer, catalog, arch).packages;
    try {
      const { id, spec } = await chosenSpecs(choice, { signal });
      made = { id, yaml: spec.text };
      packages = packagesOf(spec);
      const { size, etag } = await bundles.whole({ spec, release, arch, signal });
      const { index } = await executable(arch);
      return { packages, made, bundle: { size, tool: index.size, toc: `sha256:${etag.slice(1, -1)}` }, problems: [] };
    } catch (error) {
      const problems = problemsOf(error);
      // Settings that no spec can have must not hide the packages, whose schemas describe them.
      packages ??= packagesOf((await chosenSpecs({ ...choice, settings: new Map() }, { signal })).spec);
      return { packages, made, problems };
    }
  };

  const choose = async ({ query, base, root, signal }: PageRequest): Promise<Answer> => {
    const read = parseChoice(query);
    const seen = await catalogs.of(read.release);
    const choice = withAddons(read, query.getAll('_add'), seen.catalog);
    const canonical = new URLSearchParams(formatChoice(choice));
    for (const name of ['_find', '_page']) {
      const value = query.get(name) ?? '';
      if (value !== '' && value !== '1') canonical.append(name, value);
    }
    // Forms send all their fields: the address has only those that say something.
    if (canonical.toString() !== query.toString())
      return moved(`${root}/?${canonical.toString().replaceAll('%3A', ':')}`);
    const page = { catalog: seen.catalog, choice, query, base, root: `${root}/`, signed };
    const outcome = choice.versions.size === 0 ? undefined : await outcomeOf(choice, seen, signal);
    const fields = outcome === undefined ? new Map() : await fieldsOf(outcome, signal);
    return pageAnswer(
      { title: 'Installer – curlew', tool, root: `${root}/` },
      choosePage({ ...page, fields, outcome }),
    );
  };

  const contents = async ({ query, root, signal }: PageRequest): Promise<Answer> => {
    const choice = parseChoice(query);
    const { arch, versions } = choice;
    const { catalog } = await catalogs.of(choice.release);
    const name = nameOf(query, choice);
    const chosen = versions.get(specNameOf(name)) ?? 'latest';
    const requested = query.get('_version') ?? (channelOf(chosen) === undefined ? chosen : 'latest');
    const { resolved } = resolvePackage({ name, requested }, { catalog, arch });
    signal.throwIfAborted();
    const page = { catalog, choice, query, root: `${root}/`, resolved, description: await describe(resolved) };
    return pageAnswer({ title: `${name} ${resolved.version} – curlew`, tool, root: page.root }, contentsPage(page));
  };

  const changes = async ({ query, root }: PageRequest): Promise<Answer> => {
    const [from, to] = ['_from', '_to'].map((name) => query.get(name)?.trim() ?? '');
    const { catalog: after } = await catalogs.of(to === '' ? undefined : to);
    const releases = await listed.get('', async () => releasesOf(store, own));
    const at = releases.indexOf(after.release);
    const earlier = at === -1 ? undefined : releases[at + 1];
    const named = from === '' ? earlier : from;
    const before = named === undefined ? undefined : (await catalogs.of(named)).catalog;
    const page = { before, after, arch: chosenPlace(query).arch, releases, query, root: `${root}/` };
    return pageAnswer({ title: 'Changes – curlew', tool, root: page.root }, changesPage(page));
  };

  const kinds = { overview: choose, contents, changes };
  return async (request) => {
    try {
      return await kinds[request.kind](request);
    } catch (error) {
      const status = statusOf(error);
      if (status >= 500) throw error;
      return mistakePage(status, problemsOf(error), { title: 'Not found – curlew', tool, root: `${request.root}/` });
    }
  };
}

/** The add-on that an address of its page names: the chosen one, if there is no other. */
function nameOf(query: URLSearchParams, { versions }: Choice): string {
  const name = query.get('_name') ?? '';
  if (name !== '') return name;
  const [chosen, ...others] = versions.keys();
  if (chosen !== undefined && others.length === 0) return folderName(chosen);
  throw new CurlewError('USAGE', 'this address does not say which add-on to show', {
    hint: 'add _name=NAME to it, and _version=VERSION for another version than the newest',
  });
}

type Frame = Parameters<typeof pageText>[0];

function pageAnswer(frame: Frame, content: Html): Answer {
  const data = Buffer.from(pageText(frame, content));
  const etag = `"${hexOf(digestOf(data))}"`;
  return dataContent(data, { etag, type: 'text/html; charset=utf-8', cache: 'ask', headers: PAGE_HEADERS });
}

function mistakePage(status: number, lines: readonly string[], frame: Frame): Answer {
  const content = html`<h1>This page cannot be shown</h1>
    <ul class="problems">
      ${lines.map((line) => html`<li>${line}</li>`)}
    </ul>
    <p><a href="${frame.root}">Choose again</a></p>`;
  return {
    kind: 'text',
    status,
    type: 'text/html; charset=utf-8',
    text: pageText(frame, content),
    headers: PAGE_HEADERS,
  };
}

function moved(location: string): Answer {
  return textAnswer(303, `${location}\n`, { Location: location, 'Cache-Control': 'no-cache', Vary: 'Accept' });
}

/** The text of an error that a client can fix; other errors are thrown. */
function problemsOf(error: unknown): readonly string[] {
  if (!(error instanceof CurlewError) || statusOf(error) >= 500) throw error;
  const withHint = (text: string, hint: string | undefined): string =>
    hint === undefined ? text : `${text} (${forClients(hint)})`;
  const { message, hint, diagnostics } = error;
  return diagnostics.length === 0
    ? [withHint(message, hint)]
    : diagnostics.map((one) => withHint(one.message, one.hint));
}

/** Releases of a store, the newest first; none if it cannot list. */
async function releasesOf(store: Store, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await listReleases(store, signal);
  } catch (error) {
    if (error instanceof CurlewError) return [];
    throw error;
  }
}
