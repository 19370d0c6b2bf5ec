/** The response of each route. */
import { BUNDLED_TOOL, INSTALL_SH, packageFileName, packedExecutableName, storeKey } from '../../core/layout.ts';
import { digestOf, hexOf } from '../../core/digest.ts';
import { CurlewError, unless } from '../../core/errors.ts';
import { shellQuote } from '../../core/shell-word.ts';
import { type Arch, ARCHES } from '../../core/ref.ts';
import { type ResolvedPackage, resolvePackages } from '../bundle/resolve.ts';
import { installerYaml } from '../../spec/merge.ts';
import { settingsError } from '../../spec/shipped-schema.ts';
import { isJsonObject } from '../../formats/yaml/yaml.ts';
import type { Store } from '../store/store.ts';
import { type BundlesOptions, createBundles, type Executable, type CachedPlans } from './bundles.ts';
import { type Catalogs, type CatalogsOptions, createCatalogs } from './catalogs.ts';
import { type Answer, type Content, dataContent, jsonAnswer, textAnswer } from './content.ts';
import { createImages } from './images.ts';
import { createChosenSpecs, requireAddons } from './chosen-specs.ts';
import { parseChoice } from './page/choice.ts';
import { createPages } from './pages.ts';
import type { Installers, KnownSpec } from './installers.ts';
import { sourceContent, storedContent } from './objects.ts';
import { createPlanner, type Planner, type PlannerOptions } from './planner.ts';
import { registryAnswer } from './registry.ts';
import { chosenPlace, type Route } from './route.ts';
import { createHash } from 'node:crypto';
import type { Catalog, CatalogPackage } from '../../core/catalog.ts';
import { openStoreSource } from '../store/source.ts';
import { asServerError } from './failure.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import type { WatchOptions } from './watch.ts';

export interface SiteOptions
  extends
    CatalogsOptions,
    Pick<BundlesOptions, 'planBytes' | 'executable' | 'allowInvalidSettings' | 'tool'>,
    PlannerOptions {
  readonly installers: Installers;
  /** Text of scripts/serve/start.sh. */
  readonly functions: string;
  /** Texts of scripts/serve/page.css and page.js. */
  readonly page: { readonly style: string; readonly behavior: string };
  /** Address of a web server with the store's objects, to which requests for packages are redirected. */
  readonly redirect: string | undefined;
  /** Called with warnings for the server's operator. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** A request with a valid route. */
export interface SiteRequest {
  readonly route: Route;
  readonly query: URLSearchParams;
  /** Address of this server as the client sees it, without a trailing slash. */
  readonly base: string;
  /** The client is a browser, or another reader of HTML. */
  readonly html: boolean;
  readonly signal: AbortSignal;
}

/** Handles the routes that depend on the store. */
export interface Site {
  readonly get: (request: SiteRequest) => Promise<Answer>;
  /** Stores a spec, or only validates it. */
  readonly post: (body: Uint8Array, request: SiteRequest & { readonly keep: boolean }) => Promise<Answer>;
  /**
   * Plans bundles of stored specs in advance, so that the first requests need not wait. Ignores specs that cannot be planned;
   * throws if the store has no readable release.
   */
  readonly warm: () => Promise<void>;
  /** Statistics of cached plans. */
  readonly plans: () => CachedPlans;
}

/** Number of specs whose bundles are planned in advance. */
const MAX_WARM = 8;

export function createSite(store: Store, options: SiteOptions): Site {
  const {
    installers,
    tool,
    executable,
    functions,
    redirect,
    verify,
    allowInvalidSettings = false,
    signal: own,
  } = options;
  const catalogs = createCatalogs(store, options);
  const planner = createPlanner(store, options);
  const bundles = createBundles(store, { ...options, planner, catalogs });
  const chosenSpecs = createChosenSpecs(planner);
  const images = createImages(store, { ...options, planner, catalogs });
  const verified = verify === undefined ? undefined : createVerifiedObjects(store, { ...options, planner, catalogs });
  const object = async (key: string, signal: AbortSignal): Promise<Answer> => {
    const content = await (verified === undefined ? storedContent(store, key, { signal }) : verified(key, { signal }));
    return content === undefined ? unknown(`${key} does not exist`) : { kind: 'content', content };
  };
  const signed = verify !== undefined;
  const pages = createPages(store, { ...options, catalogs, bundles, chosenSpecs, planner, signed });
  const specOf = async ({ query, signal }: SiteRequest, id: string | undefined) => {
    if (id !== undefined) return { id, spec: await installers.read(id, { signal }) };
    const chosen = await chosenSpecs(parseChoice(query), { signal });
    requireAddons(chosen.spec);
    return chosen;
  };
  // What a choice becomes is refused everywhere if its bundle is; a stored spec was checked when it was posted.
  const checkedSpecOf: typeof specOf = async (request, id) => {
    const { query, signal } = request;
    const made = await specOf(request, id);
    if (id === undefined) await bundles.check({ spec: made.spec, ...chosenPlace(query), signal });
    return made;
  };
  const get = async (request: SiteRequest): Promise<Answer> => {
    const { route, query, base, signal } = request;
    const root = rootOf(base);
    switch (route.kind) {
      case 'overview':
        if (!request.html) return textAnswer(200, overview(tool), { Vary: 'Accept' });
        return pages({ kind: route.kind, query, base, root, signal });
      case 'contents':
      case 'changes':
        return pages({ kind: route.kind, query, base, root, signal });
      case 'style':
        return textContent(options.page.style, 'text/css; charset=utf-8');
      case 'behavior':
        return textContent(options.page.behavior, 'text/javascript; charset=utf-8');
      case 'current-release':
        return textContent(await catalogs.current(), 'text/plain; charset=utf-8');
      case 'object':
        return redirect !== undefined && route.key.endsWith('.tar.gz')
          ? found(`${redirect}/${route.key}`)
          : object(route.key, signal);
      case 'latest': {
        const key = storeKey.package(await catalogs.current(), route.file);
        return found(redirect === undefined ? `${root}/dist/${key}` : `${redirect}/${key}`);
      }
      case 'bundle': {
        const { id, spec } = await specOf(request, route.id);
        return named(await bundles.whole({ spec, ...route, signal }), `${id}.tar.gz`);
      }
      case 'packages': {
        const spec = await installers.read(route.id, { signal });
        return named(await bundles.packages({ spec, ...route, signal }, route.names), `${route.id}-packages.tar.gz`);
      }
      case 'installer': {
        const { spec } = await checkedSpecOf(request, route.id);
        const place = chosenPlace(route.id === undefined ? query : new URLSearchParams());
        const text = route.resolve ? await resolvedText(spec, place, catalogs) : spec.text;
        return textContent(text, 'application/yaml; charset=utf-8');
      }
      case 'script': {
        const { id, spec } = await checkedSpecOf(request, route.id);
        const { catalog } = await catalogs.of(route.release);
        const sums = { amd64: await sumOf('amd64', executable), arm64: await sumOf('arm64', executable) };
        const release = catalog.release;
        const inputs = { script: route.script, id, functions, base, release, spec: spec.text, sums, signed };
        return textContent(formatScript(inputs), 'text/x-shellscript; charset=utf-8');
      }
      case 'tool': {
        const { source, index } = await executable(route.arch);
        return { kind: 'content', content: toolContent(source, `"${hexOf(index.tocDigest)}"`, route.arch) };
      }
      case 'unknown-arch':
        return unknown(`no architecture ${JSON.stringify(route.arch.slice(0, 50))}: there are ${ARCHES.join(' and ')}`);
      case 'registry-base':
      case 'registry-list':
      case 'tags':
      case 'manifest':
      case 'blob':
      case 'referrers':
        return registryAnswer(route, { query, root, images });
      case 'installers':
      case 'validate':
      case 'health':
      case 'metrics':
        return unknown('not found');
    }
  };
  const post: Site['post'] = async (body, { base, keep, signal }) => {
    const spec = await planner.run({ kind: 'spec', data: body, name: 'the request body' }, { signal });
    const resolved = await checkSpec(spec, catalogs);
    const findings = allowInvalidSettings ? [] : await bundles.settings(spec.installer, resolved, { signal });
    if (findings.some(({ severity }) => severity === 'error')) throw settingsError(findings);
    if (!keep) return jsonAnswer(200, { valid: true });
    const { id, isNew } = await installers.add(spec, { signal: AbortSignal.any([signal, own]) });
    return textAnswer(isNew ? 201 : 200, `${base}/${id}\n`, {
      Location: `${rootOf(base)}/installer/${id}`,
      'X-Kurl-Hash': id,
    });
  };
  const warm = async (): Promise<void> => {
    await catalogs.of(undefined);
    const { ids, unreachable } = await installers.list({ signal: own });
    if (unreachable.length > 0) options.warn?.(unreachableText(unreachable));
    for (const id of ids.slice(0, MAX_WARM)) {
      try {
        const spec = await installers.read(id, { signal: own });
        await bundles.whole({ spec, release: undefined, arch: 'amd64', signal: own });
      } catch (error) {
        if (!(error instanceof CurlewError)) throw error;
      }
    }
  };
  return { get, post, warm, plans: bundles.cached };
}

/**
 * The path prefix that a proxy has added; empty if none. Not parsed as a URL, because not every host name that a client may
 * use is valid in a URL.
 */
function rootOf(base: string): string {
  return base.replace(/^\w+:\/\/[^/]*/, '');
}

function unreachableText(keys: readonly string[]): string {
  return `no address leads to ${keys.join(', ')}: name specs NAME.yaml, with lowercase letters, digits and dashes, without reserved names (installer, bundle, dist, …)`;
}

function unknown(text: string): Answer {
  return textAnswer(404, `${text}\n`);
}

/** A redirect that must not be cached, because the current release changes. */
function found(location: string): Answer {
  return textAnswer(302, `${location}\n`, { Location: location, 'Cache-Control': 'no-cache' });
}

function named(content: Content, fileName: string): Answer {
  return { kind: 'content', content: { ...content, fileName } };
}

function textContent(text: string, type: string): Answer {
  const data = Buffer.from(text);
  return dataContent(data, { etag: `"${hexOf(digestOf(data))}"`, type, cache: 'ask' });
}

function toolContent(
  { size, read }: { readonly size: number; readonly read: Content['read'] },
  etag: string,
  arch: Arch,
): Content {
  return { size, read, etag, type: 'application/gzip', fileName: packedExecutableName(arch), cache: 'ask' };
}

async function sumOf(arch: Arch, executable: Executable): Promise<string | undefined> {
  const found = await unless(['UNSUPPORTED'], executable(arch));
  const entry = found?.index.entries.find(({ path }) => path === BUNDLED_TOOL);
  return entry && hexOf(entry.digest);
}

/** Rejects a spec with add-ons that no architecture has, before it is stored. Returns the packages. */
async function checkSpec({ installer }: KnownSpec, catalogs: Catalogs): Promise<readonly ResolvedPackage[]> {
  const { catalog } = await catalogs.of(undefined);
  const addons = installer.addons.filter(({ s3Override }) => s3Override === undefined);
  let failure: unknown;
  for (const arch of ARCHES) {
    try {
      return resolvePackages({ ...installer, addons }, catalog, arch);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/** The spec with the versions that it has in this release now. */
async function resolvedText(
  { installer, document }: KnownSpec,
  { release, arch }: ReturnType<typeof chosenPlace>,
  catalogs: Catalogs,
): Promise<string> {
  const { catalog } = await catalogs.of(release);
  const addons = installer.addons.filter(({ s3Override }) => s3Override === undefined);
  const versions = new Map(
    resolvePackages({ ...installer, addons }, catalog, arch).map(({ name, version }) => [name, version]),
  );
  const spec = isJsonObject(document['spec']) ? { ...document['spec'] } : {};
  for (const { specName, name } of addons) {
    const section = spec[specName];
    const version = versions.get(name);
    if (isJsonObject(section) && version !== undefined) spec[specName] = { ...section, version };
  }
  return installerYaml({ ...document, spec });
}

function overview(tool: string): string {
  return [
    `curlew ${tool}`,
    '',
    '/bundle/ID.tar.gz                     everything for an offline installation',
    '/bundle/ID/packages/NAME,NAME.tar.gz  only these packages',
    '/ID/install.sh                        for an online installation: curl URL | sudo bash',
    '/installer/ID                         the installer spec',
    '/dist/VERSION, /dist/RELEASE/FILE     the store: curlew install --from URL/dist',
    '/v2/                                  the images, for registry clients',
    '/healthz, /metrics',
    '',
  ].join('\n');
}

export interface ScriptInputs {
  /** Functions of all scripts: scripts/serve/start.sh. */
  readonly functions: string;
  /** The requested script, such as `install.sh`. */
  readonly script: string;
  /** Address of this server as clients see it, without a slash at its end. */
  readonly base: string;
  readonly release: string;
  readonly id: string;
  /** Text of the spec. */
  readonly spec: string;
  /** The called command must reject unsigned releases. The node provides the keys. */
  readonly signed: boolean;
  /** Hex SHA-256 of the curlew for nodes; undefined if not available. */
  readonly sums: { readonly amd64: string | undefined; readonly arm64: string | undefined };
}

/** A bash script that runs completely or not at all, and does not read from standard input, which may be the script. */
function formatScript({ functions, script, base, release, id, spec, sums, signed }: ScriptInputs): string {
  // A text cannot contain its own digest, so no line of the spec ends the here-document.
  const end = `CURLEW_${createHash('sha256').update(spec).digest('hex')}`;
  const text = spec.endsWith('\n') ? spec : `${spec}\n`;
  const args = [script, base, release, id, sums.amd64 ?? '-', sums.arm64 ?? '-'].map(shellQuote);
  // tasks.sh can run any command.
  if (signed && script !== 'tasks.sh') args.push('--require-signed');
  return [
    '#!/usr/bin/env bash',
    `# curlew ${script === INSTALL_SH ? 'install' : script.replace(/\.sh$/, '')}: release ${release}, installer ${id}`,
    'set -eu',
    functions.trimEnd(),
    'curlew_spec() {',
    `  cat <<'${end}'`,
    `${text}${end}`,
    '}',
    `curlew_start ${args.join(' ')} "$@"`,
    '',
  ].join('\n');
}

/** Undefined for a key that no signature covers. */
export type VerifiedObjects = (key: string, options: { readonly signal: AbortSignal }) => Promise<Content | undefined>;

interface VerifiedObjectsOptions extends Pick<WatchOptions, 'signal'> {
  readonly catalogs: Catalogs;
  readonly planner: Planner;
}

const MAX_PACKAGES = 10_000;

/**
 * Serves signatures, the signed catalog, and its packages, each with the size and the table of contents in the catalog.
 * Clients must verify that the content of a package matches its table of contents.
 */
function createVerifiedObjects(
  store: Store,
  { planner, catalogs, signal: own }: VerifiedObjectsOptions,
): VerifiedObjects {
  const results = createSingleFlightCache<boolean>({ most: MAX_PACKAGES });
  const isSigned = async (key: string, etag: string, expected: CatalogPackage): Promise<boolean> =>
    results.get(`${key} ${etag} ${expected.toc ?? ''}`, async () =>
      asServerError(async () => {
        const { object, name } = await openStoreSource(store, key, { signal: own });
        if (object.etag !== etag) throw new CurlewError('STORE_CONFLICT', `${name}: it has changed`);
        if (object.size !== expected.size) return false;
        return (await planner.run({ kind: 'toc', object }, { signal: own })) === expected.toc;
      }),
    );
  return async (key, { signal }) => {
    if (key === storeKey.versionSignature) return storedContent(store, key, { signal });
    const [release = '', file] = key.split('/');
    if (file === undefined || release === 'external') return undefined;
    if (key === storeKey.catalogSignature(release)) return storedContent(store, key, { signal });
    const { catalog, text } = await catalogs.of(release);
    if (key === storeKey.catalog(release) && text !== undefined) {
      return dataContent(text, { etag: `"${hexOf(digestOf(text))}"`, type: 'application/json', cache: 'ask' }).content;
    }
    const expected = packageAt(catalog, file);
    if (expected === undefined) return undefined;
    const source = await asServerError(async () => openStoreSource(store, key, { signal }));
    // Serves the checked object, even if it was replaced meanwhile.
    if (await isSigned(key, source.object.etag, expected)) return sourceContent(source);
    throw new CurlewError('SIGNATURE_INVALID', `${store.address}/${key}: it is not the signed package`);
  };
}

function packageAt({ addons }: Catalog, file: string): CatalogPackage | undefined {
  for (const { name, versions } of addons) {
    for (const { version, packages } of versions) {
      const arch = ARCHES.find((one) => packageFileName({ name, version }, one) === file);
      if (arch !== undefined) return packages[arch];
    }
  }
  return undefined;
}
