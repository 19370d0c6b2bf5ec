/** Authorizes requests to a registry: anonymously, by password, or by tokens of the registry's token service. */
import { CurlewError } from '../../core/errors.ts';
import { basic, succeeded, type Http } from '../../platform/http/http.ts';
import type { Authorize, Headers, HttpRequest, HttpRefusal } from '../../platform/http/message.ts';
import { parseChallenges, type Challenge } from './challenge.ts';
import type { Credentials } from './credentials.ts';
import type { Credential } from './docker-config.ts';
import { parseOciObject } from '../../formats/oci/manifest.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

export interface AuthOptions {
  readonly http: Http;
  readonly credentials: Credentials;
  /** Hosts that may receive the credentials of a registry that names them as its token service. */
  readonly trustRealms: readonly string[];
  readonly now: () => number;
}

/** The registry and repository of a request. */
export interface AuthTarget {
  readonly doing: string;
  /** Address of the registry, such as `https://registry-1.docker.io`. */
  readonly base: URL;
  /** Host whose credentials are used. */
  readonly host: string;
  readonly repository: string;
}

/** Token services of the registry's own organization on another host. */
const SAME_ORGANIZATION: ReadonlyMap<string, string> = new Map([
  ['registry-1.docker.io', 'auth.docker.io'],
  ['registry.gitlab.com', 'gitlab.com'],
]);

const TOKEN_LIMIT = 256 * 1024;
/** Lifetime of a token if its service does not specify it (distribution spec, token authentication). */
const DEFAULT_LIFE_S = 60;
/** A token is not used in its last seconds. */
const MARGIN_S = 10;

interface Token {
  readonly headers: Headers;
  /** Milliseconds of the clock. */
  readonly until: number;
}

interface Realm {
  readonly url: URL;
  readonly service: string | undefined;
}

/**
 * True if the token service may receive the registry's credentials. On the registry's host, that is a service on the same port
 * or on the default port of its scheme, like GitLab's for its registry on 5050; a service on any other port may belong to
 * another user.
 */
export function isTrustedRealm(realm: URL, base: URL, trustRealms: readonly string[]): boolean {
  if (realm.protocol !== 'https:' && realm.protocol !== base.protocol) return false;
  const { hostname, host, port } = realm;
  return (
    (hostname === base.hostname && (port === '' || port === base.port)) ||
    SAME_ORGANIZATION.get(base.host) === host ||
    trustRealms.some((trusted) => trusted.toLowerCase() === host || trusted.toLowerCase() === hostname)
  );
}

function realmOf({ parameters }: Challenge, { doing, base }: AuthTarget): Realm {
  const text = parameters.get('realm') ?? '';
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:') || url.username !== '') {
    throw new CurlewError('AUTH_FAILED', `cannot ${doing}: ${base.host} does not name a usable token service`);
  }
  return { url, service: parameters.get('service') };
}

function readToken(body: Uint8Array, doing: string): { readonly token: string; readonly lifeS: number } {
  let answer: ReturnType<typeof parseOciObject>;
  try {
    answer = parseOciObject(body, doing);
  } catch (error) {
    throw new CurlewError('AUTH_FAILED', `cannot ${doing}: the token service returned no token`, { cause: error });
  }
  // Either name may be used; the other one may be present and empty.
  const token = [answer['token'], answer['access_token']].find((text) => typeof text === 'string' && text !== '');
  const life = answer['expires_in'];
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new CurlewError('AUTH_FAILED', `cannot ${doing}: the token service returned no token`);
  }
  return { token, lifeS: typeof life === 'number' && life > 0 ? Math.min(life, 86_400) : DEFAULT_LIFE_S };
}

/** Requests a token to pull one repository, and no other scope that a challenge may name. */
async function fetchToken(
  { http, now }: AuthOptions,
  target: AuthTarget,
  { url, service }: Realm,
  credential: Credential | undefined,
  signal: AbortSignal,
): Promise<Token> {
  const doing = `${target.doing}: request a token from ${url.host}`;
  const parameters: [string, string][] = [['scope', `repository:${target.repository}:pull`]];
  if (service !== undefined) parameters.unshift(['service', service]);
  const base = { doing, via: target.base.href } as const;
  let request: HttpRequest;
  if (credential?.kind === 'identity-token') {
    const form: [string, string][] = [
      ['grant_type', 'refresh_token'],
      ['client_id', 'curlew'],
      ['refresh_token', credential.token.reveal()],
    ];
    const body = new URLSearchParams([...parameters, ...form]).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    request = { ...base, url: url.href, method: 'POST', headers, body };
  } else {
    const tokenUrl = new URL(url);
    for (const [name, value] of parameters) tokenUrl.searchParams.set(name, value);
    const headers =
      credential === undefined ? {} : { authorization: basic(credential.username, credential.password.reveal()) };
    request = { ...base, url: tokenUrl.href, headers };
  }
  const started = now();
  const response = succeeded(http, request, await http.small(request, { limit: TOKEN_LIMIT, signal }));
  const { token, lifeS } = readToken(response.body, doing);
  const until = started + Math.max(1, lifeS - MARGIN_S) * 1000;
  return { headers: { authorization: `Bearer ${token}` }, until };
}

/** Caches how each registry authorizes, and tokens until they expire. */
export function createAuth(options: AuthOptions): (target: AuthTarget) => Authorize {
  const tokens = createSingleFlightCache<Token>({ failures: 'own' });
  /** By registry address: its token service, or `basic`. */
  const methods = new Map<string, Realm | 'basic'>();

  const find = async ({ host, repository }: AuthTarget, signal: AbortSignal): Promise<Credential | undefined> =>
    options.credentials.find(`${host}/${repository}`, { signal });

  const bearer = async (
    target: AuthTarget,
    realm: Realm,
    sent: Headers | undefined,
    signal: AbortSignal,
  ): Promise<Headers> => {
    const key = [target.base.origin, realm.url.href, realm.service ?? '', target.repository].join(' ');
    const fetch = async (): Promise<Token> => {
      const credential = await find(target, signal);
      if (credential !== undefined) refuseForeign(target, realm, options.trustRealms);
      return fetchToken(options, target, realm, credential, signal);
    };
    const cached = await tokens.get(key, fetch);
    const refused = cached.headers['authorization'] === sent?.['authorization'];
    if (!refused && cached.until > options.now()) return cached.headers;
    tokens.drop(key);
    return (await tokens.get(key, fetch)).headers;
  };

  const password = async (target: AuthTarget, signal: AbortSignal): Promise<Headers | undefined> => {
    const credential = await find(target, signal);
    if (credential?.kind !== 'password') return undefined;
    return { authorization: basic(credential.username, credential.password.reveal()) };
  };

  const answer = async (
    target: AuthTarget,
    { head, sent }: HttpRefusal,
    signal: AbortSignal,
  ): Promise<Headers | undefined> => {
    const challenges = parseChallenges(head.headers['www-authenticate'] ?? '') ?? [];
    const chosen = challenges.find(({ scheme }) => scheme === 'bearer') ?? challenges[0];
    if (chosen === undefined) return undefined;
    if (chosen.scheme === 'basic') {
      // A password that was refused is not sent again.
      if (sent?.['authorization']?.startsWith('Basic ') === true) return undefined;
      methods.set(target.base.origin, 'basic');
      return password(target, signal);
    }
    const realm = realmOf(chosen, target);
    methods.set(target.base.origin, realm);
    return bearer(target, realm, sent, signal);
  };

  return (target) =>
    async (refusal, { signal }) => {
      if (refusal !== undefined) return answer(target, refusal, signal);
      const method = methods.get(target.base.origin);
      if (method === undefined) return undefined;
      return method === 'basic' ? password(target, signal) : bearer(target, method, undefined, signal);
    };
}

function refuseForeign({ doing, base }: AuthTarget, { url }: Realm, trustRealms: readonly string[]): void {
  if (isTrustedRealm(url, base, trustRealms)) return;
  const another = url.hostname === base.hostname ? 'another port' : 'another host';
  throw new CurlewError(
    'AUTH_FAILED',
    `cannot ${doing}: ${base.host} requests its credentials for ${url.protocol}//${url.host}, ${another}`,
    { hint: `if both belong to the same operator, allow it by name: --trust-realm ${url.host}` },
  );
}
