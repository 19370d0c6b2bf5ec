/** Routes of the server. Pure. */
import { isChannelName, isRelease } from '../../core/catalog.ts';
import { BUNDLE_SCRIPTS, storeKey } from '../../core/layout.ts';
import { type Arch, ARCHES, isAddonName } from '../../core/ref.ts';

export type Route =
  | { readonly kind: 'overview' | 'health' | 'metrics' | 'current-release' }
  /** Parts of the page for browsers, which is at `/`. */
  | { readonly kind: 'contents' | 'changes' | 'style' | 'behavior' }
  /** An object of the store. */
  | { readonly kind: 'object'; readonly key: string }
  /** A package of the current release. */
  | { readonly kind: 'latest'; readonly file: string }
  | (Omit<BundleRoute, 'id'> & { readonly kind: 'bundle'; readonly id: SpecId })
  /** `names` as requested: `flannel-0.28.7`, or `flannel`. */
  | (BundleRoute & { readonly kind: 'packages'; readonly names: readonly string[] })
  | { readonly kind: 'installers' | 'validate' }
  | { readonly kind: 'installer'; readonly id: SpecId; readonly resolve: boolean }
  | { readonly kind: 'script'; readonly id: SpecId; readonly release: string | undefined; readonly script: string }
  /** A package, bundle or tool for an architecture that does not exist. */
  | { readonly kind: 'unknown-arch'; readonly arch: string }
  /** The curlew for nodes. */
  | { readonly kind: 'tool'; readonly arch: Arch }
  | { readonly kind: 'registry-base' }
  | { readonly kind: 'registry-list' }
  | { readonly kind: 'tags' | 'manifest' | 'blob' | 'referrers'; readonly name: string; readonly reference: string };

/** Undefined for the spec that the query of the address is. */
type SpecId = string | undefined;

interface BundleRoute {
  readonly id: string;
  readonly release: string | undefined;
  readonly arch: Arch;
}

export type Routed = { readonly route: Route; readonly target: Target } | 'bad' | 'unknown';

/** Names that specs cannot have, because addresses begin with them. */
const RESERVED = 'bundle dist healthz installer latest metrics tool v2 validate version versions'.split(' ');
const ARCHIVE = '.tar.gz';
const CHANNELS = storeKey.channels.slice(0, -1);
const RELEASE_FILE = /^[A-Za-z0-9][A-Za-z0-9._+-]*\.(?:tar\.gz|json)$/;

/** True for the id of a spec: seven hex digits computed from its content, or a name given by the server's operator. */
export function isInstallerName(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text) && !RESERVED.includes(text);
}

/** True for addresses of the registry, valid or not, whose clients read errors only in its format. */
export function isRegistryPath(target: string): boolean {
  return /^\/v2(?:[/?]|$)/.test(target);
}

export function parseRoute(text: string): Routed {
  const target = parseTarget(text);
  if (target === undefined) return 'bad';
  const route = routeOf(target);
  return route === undefined ? 'unknown' : { route, target };
}

function routeOf(target: Target): Route | undefined {
  const [first, ...rest] = target.segments;
  if (first === undefined) return { kind: 'overview' };
  if (first === 'v2') return registryRoute(rest, target.folder);
  if (target.folder) return undefined;
  if (first === 'dist') return distRoute(rest);
  if (first === 'bundle') return bundleRoute(rest, target.query);
  if (first === 'installer') return installerRoute(rest, target.query);
  if (first === 'tool') return toolRoute(rest);
  if (first === 'healthz' && rest.length === 0) return { kind: 'health' };
  if (first === 'metrics' && rest.length === 0) return { kind: 'metrics' };
  if (rest.length === 0 && first.includes('.')) return pageRoute(first, target.query);
  if (first === 'version') {
    const [release, ...segments] = rest;
    return release !== undefined && isRelease(release) ? scriptRoute(segments, release) : undefined;
  }
  return scriptRoute([first, ...rest], undefined);
}

/** Addresses of the page, and of what is chosen there. No id of a spec has a dot. */
function pageRoute(file: string, query: URLSearchParams): Route | undefined {
  if (file === 'addon.html') return { kind: 'contents' };
  if (file === 'changes.html') return { kind: 'changes' };
  if (file === 'page.css') return { kind: 'style' };
  if (file === 'page.js') return { kind: 'behavior' };
  const { release, arch } = chosenPlace(query);
  if (release !== undefined && !isRelease(release)) return undefined;
  const chosen = query.get('_arch') ?? '';
  if (chosen !== '' && chosen !== arch) return { kind: 'unknown-arch', arch: chosen };
  if (file === 'bundle.tar.gz') return { kind: 'bundle', id: undefined, release, arch };
  if (file === 'installer.yaml') return { kind: 'installer', id: undefined, resolve: query.has('_resolve') };
  return BUNDLE_SCRIPTS.includes(file) ? { kind: 'script', id: undefined, release, script: file } : undefined;
}

/** The release of a choice, undefined for the current one, and its architecture. */
export function chosenPlace(query: URLSearchParams): { readonly release: string | undefined; readonly arch: Arch } {
  const release = query.get('_release') ?? '';
  const arch = ARCHES.find((one) => one === query.get('_arch')) ?? 'amd64';
  return { release: release === '' ? undefined : release, arch };
}

function distRoute(segments: readonly string[]): Route | undefined {
  const [first = '', second, third] = segments;
  if (first === CHANNELS && second !== undefined && third === undefined) return channelRoute(first, second);
  if (second === CHANNELS && third !== undefined && segments.length === 3 && isRelease(first))
    return channelRoute(`${first}/${second}`, third);
  if (segments.length > 2) return undefined;
  if (second !== undefined) {
    const known = first === 'external' || isRelease(first);
    return known && RELEASE_FILE.test(second) ? { kind: 'object', key: `${first}/${stored(second)}` } : undefined;
  }
  if (first === 'VERSION') return { kind: 'current-release' };
  if (!RELEASE_FILE.test(first)) return undefined;
  return first.endsWith(ARCHIVE) ? { kind: 'latest', file: stored(first) } : { kind: 'object', key: first };
}

function channelRoute(folder: string, file: string): Route | undefined {
  const name = file.endsWith('.yaml') ? file.slice(0, -'.yaml'.length) : '';
  return isChannelName(name) ? { kind: 'object', key: `${folder}/${file}` } : undefined;
}

/** Keys have "-" instead of "+". */
function stored(file: string): string {
  return file.replaceAll('+', '-');
}

function bundleRoute(segments: readonly string[], query: URLSearchParams): Route | undefined {
  const [first, second] = segments;
  const release = first === 'version' ? second : undefined;
  const [name = '', folder, list = '', ...more] = first === 'version' ? segments.slice(2) : segments;
  if (more.length > 0 || (first === 'version' && (release === undefined || !isRelease(release)))) return undefined;
  const id = folder === undefined ? withoutSuffix(name) : name;
  const arch = query.get('arch') ?? 'amd64';
  const known = ARCHES.find((one) => one === arch);
  if (!isInstallerName(id)) return undefined;
  if (known === undefined) return { kind: 'unknown-arch', arch };
  if (folder === undefined) return { kind: 'bundle', id, release, arch: known };
  if (folder !== 'packages' || !list.endsWith(ARCHIVE)) return undefined;
  const names = withoutSuffix(list).split(',');
  return { kind: 'packages', id, release, arch: known, names };
}

function withoutSuffix(name: string): string {
  return name.endsWith(ARCHIVE) ? name.slice(0, -ARCHIVE.length) : name;
}

function installerRoute(segments: readonly string[], query: URLSearchParams): Route | undefined {
  const [id, ...more] = segments;
  if (id === undefined) return { kind: 'installers' };
  if (more.length > 0) return undefined;
  if (id === 'validate') return { kind: 'validate' };
  return isInstallerName(id) ? { kind: 'installer', id, resolve: query.has('resolve') } : undefined;
}

function toolRoute(segments: readonly string[]): Route | undefined {
  const [file = '', ...more] = segments;
  const [, arch] = /^curlew-linux-(.+)\.tar\.gz$/.exec(file) ?? [];
  if (arch === undefined || more.length > 0) return undefined;
  const known = ARCHES.find((one) => one === arch);
  return known === undefined ? { kind: 'unknown-arch', arch } : { kind: 'tool', arch: known };
}

/** `/<id>` alone means install.sh, as with kURL. */
function scriptRoute(segments: readonly string[], release: string | undefined): Route | undefined {
  const [id = '', script = 'install.sh', ...more] = segments;
  if (more.length > 0 || !isInstallerName(id) || !BUNDLE_SCRIPTS.includes(script)) return undefined;
  return { kind: 'script', id, release, script };
}

/** Names of repositories contain slashes; the resource follows the name. */
function registryRoute(segments: readonly string[], folder: boolean): Route | undefined {
  if (segments.length === 0) return { kind: 'registry-base' };
  if (folder) return undefined;
  if (segments.length === 1 && segments[0] === '_catalog') return { kind: 'registry-list' };
  const verb = segments.at(-2);
  const reference = segments.at(-1) ?? '';
  const names = segments.slice(0, -2);
  if (names.length === 0 || names.some((part) => !isRepositoryPart(part))) return undefined;
  const name = names.join('/');
  if (verb === 'tags' && reference === 'list') return { kind: 'tags', name, reference: '' };
  if (verb === 'manifests') return { kind: 'manifest', name, reference };
  if (verb === 'referrers') return { kind: 'referrers', name, reference };
  return verb === 'blobs' ? { kind: 'blob', name, reference } : undefined;
}

/** The first part may be a host with port. */
function isRepositoryPart(text: string): boolean {
  return isAddonName(text) || /^[A-Za-z0-9._-]+(?::\d{1,5})?$/.test(text);
}

interface Target {
  /** Without empty segments, `.` and `..`. Empty for `/`. */
  readonly segments: readonly string[];
  /** The path ends with a slash. */
  readonly folder: boolean;
  readonly query: URLSearchParams;
}

/** Characters of names of add-ons, versions, releases, images and digests. */
const SEGMENT = /^[A-Za-z0-9._+,:~_-]{1,300}$/;
const MAX_SEGMENTS = 32;

/**
 * Undefined for a path with an empty segment, `.`, `..`, or a character that no name contains, in any encoding. Decodes segments
 * once.
 */
function parseTarget(text: string): Target | undefined {
  if (!text.startsWith('/') || text.includes('#')) return undefined;
  const question = text.indexOf('?');
  const path = question === -1 ? text : text.slice(0, question);
  const query = new URLSearchParams(question === -1 ? '' : text.slice(question + 1));
  if (path === '/') return { segments: [], folder: true, query };
  const folder = path.endsWith('/');
  const segments: string[] = [];
  for (const encoded of path.slice(1, folder ? -1 : undefined).split('/', MAX_SEGMENTS + 1)) {
    const segment = decoded(encoded);
    if (segment === undefined || !SEGMENT.test(segment) || /^\.+$/.test(segment)) return undefined;
    segments.push(segment);
  }
  return segments.length > MAX_SEGMENTS ? undefined : { segments, folder, query };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
