/** The endpoints of a registry: mirrors in order, then the registry itself; https before plain http. */
import { CurlewError } from '../../core/errors.ts';
import type { Http } from '../../platform/http/http.ts';
import { hostKey } from './docker-config.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

/**
 * By registry host (`docker.io`): addresses `host`, `host:port`, with or without scheme and path. A path is the project of the
 * repositories, as in Harbor and other registries (`/v2/PROJECT/…`); a path that ends in `/v2` is the location of the API, like
 * containerd's `override_path`.
 */
export type Mirrors = ReadonlyMap<string, readonly string[]>;

export interface Endpoint {
  /** Base address of `/v2/`; its path has no trailing slash. */
  readonly base: URL;
  /** Prefix of the repository name; empty, or with a trailing slash. */
  readonly project: string;
  /** Host whose credentials are used. */
  readonly host: string;
}

/** An endpoint whose scheme is not determined yet. */
export interface Untried {
  readonly address: string;
  readonly host: string;
}

const PING_LIMIT = 64 * 1024;
/** A path that ends with the API's location, which a base omits. */
const API_PATH = /^(.*)\/v2\/*$/;

/**
 * Reads `HOST=ADDRESS` as written on the command line, such as `docker.io=127.0.0.1:5000` or
 * `quay.io=https://cache.example.com/quay`. Throws `USAGE`.
 */
export function parseMirror(text: string): readonly [host: string, address: string] {
  const [, host = '', address = ''] = /^([^=\s/]+)=(\S+)$/.exec(text) ?? [];
  const usable = host !== '' && URL.canParse(withScheme(address)) && withScheme(address).startsWith('http');
  if (usable) return [hostKey(host), address];
  const shown = text.replace(/^([^=]*=)?.*@/s, '$1').slice(0, 200);
  throw new CurlewError('USAGE', `not a mirror: ${JSON.stringify(shown)}`, {
    hint: 'write REGISTRY=HOST[:PORT][/PROJECT], such as docker.io=mirror.example.com/hub',
  });
}

function withScheme(address: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(address) ? address : `https://${address}`;
}

function hostOf(address: string): string {
  return new URL(withScheme(address)).host;
}

function projectOf(address: string): string {
  const path = new URL(withScheme(address)).pathname.replace(/\/+$/, '');
  return path === '' || API_PATH.test(path) ? '' : `${path.slice(1)}/`;
}

/** Mirrors of a registry in their order, then the registry itself. */
export function candidates(registry: string, mirrors: Mirrors): readonly Untried[] {
  const listed = mirrors.get(hostKey(registry)) ?? [];
  const origin = registry === 'docker.io' ? 'registry-1.docker.io' : registry;
  return [...listed.map((address) => ({ address, host: hostOf(address) })), { address: origin, host: registry }];
}

/**
 * Determines an endpoint's scheme: as written; or else https; or http, if plain http is allowed and the server does not speak
 * TLS. Probes each address once.
 */
export function createEndpoints(
  http: Http,
): (candidate: Untried, doing: string, options: { readonly signal: AbortSignal }) => Promise<Endpoint> {
  const settled = createSingleFlightCache<URL>({ failures: 'own' });
  const settle = async (address: string, doing: string, signal: AbortSignal): Promise<URL> => {
    const secure = new URL(withScheme(address));
    secure.pathname = API_PATH.exec(secure.pathname)?.[1] ?? '';
    const plain = new URL(secure);
    plain.protocol = 'http:';
    if (secure.protocol === 'http:' || address.includes('://') || !http.allowsPlain(plain)) return secure;
    const url = `${trimmed(secure)}/v2/`;
    const sink = { head: () => undefined, data: (): false => false };
    const outcome = await http.exchange({ doing, url, headers: {} }, sink, { signal });
    if (outcome.kind === 'complete') return secure;
    if (outcome.notTls) return plain;
    // A rejected certificate proves that the server speaks TLS, so plain http is not tried.
    if (!outcome.retryable) throw outcome.error;
    await http.small({ doing, url: `${trimmed(plain)}/v2/` }, { limit: PING_LIMIT, signal });
    return plain;
  };
  return async ({ address, host }, doing, { signal }) => {
    const base = await settled.get(address, async () => settle(address, doing, signal));
    return { base, project: projectOf(address), host };
  };
}

/** The text of a base address, without trailing slashes. */
export function trimmed(base: URL): string {
  return base.href.replace(/\/+$/, '');
}
