/** Where a registry's images are asked for: mirrors in order, then the registry itself; https before plain http. */
import { CurlewError } from '../core/errors.ts';
import type { Http } from '../platform/http/http.ts';
import { hostKey } from './docker-config.ts';
import { createSingleFlightCache } from '../platform/limit/single-flight-cache.ts';

/**
 * By registry host (`docker.io`): addresses `host`, `host:port`, with or without scheme and path. A path is the project that
 * repositories are in, as Harbor and other registries serve theirs (`/v2/PROJECT/…`); one that ends in `/v2` is the API's
 * own place, as containerd's `override_path` takes it.
 */
export type Mirrors = ReadonlyMap<string, readonly string[]>;

export interface Endpoint {
  /** Address below which `/v2/` lies; its path has no slash at the end. */
  readonly base: URL;
  /** Comes before the name of a repository; empty, or with a slash at the end. */
  readonly project: string;
  /** Host whose credentials are used. */
  readonly host: string;
  readonly isMirror: boolean;
}

/** An endpoint whose scheme is not settled yet. */
export interface Candidate {
  readonly address: string;
  readonly host: string;
  readonly isMirror: boolean;
}

const PING_LIMIT = 64 * 1024;
/** A path with the API's own place at its end, which is left out of a base. */
const API_PATH = /^(.*)\/v2\/*$/;

/**
 * Reads `HOST=ADDRESS` as it is written on the command line, such as `docker.io=127.0.0.1:5000` or
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
export function candidates(registry: string, mirrors: Mirrors): readonly Candidate[] {
  const listed = mirrors.get(hostKey(registry)) ?? [];
  const origin = registry === 'docker.io' ? 'registry-1.docker.io' : registry;
  return [
    ...listed.map((address) => ({ address, host: hostOf(address), isMirror: true })),
    { address: origin, host: registry, isMirror: false },
  ];
}

/**
 * Settles an endpoint's scheme: as written; https; and where plain http is allowed and https is not spoken there, http.
 * Each address is asked once.
 */
export function createEndpoints(
  http: Http,
): (candidate: Candidate, doing: string, options: { readonly signal: AbortSignal }) => Promise<Endpoint> {
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
    // A certificate that is refused is an answer: what the same port says without TLS does not count.
    if (!outcome.retryable) throw outcome.error;
    await http.small({ doing, url: `${trimmed(plain)}/v2/` }, { limit: PING_LIMIT, signal });
    return plain;
  };
  return async ({ address, host, isMirror }, doing, { signal }) => {
    const base = await settled.get(address, async () => settle(address, doing, signal));
    return { base, project: projectOf(address), host, isMirror };
  };
}

/** The text of a base address, to put a path behind. */
export function trimmed(base: URL): string {
  return base.href.replace(/\/+$/, '');
}
