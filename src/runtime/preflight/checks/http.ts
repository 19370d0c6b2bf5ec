/** The status of a web server's response, and how far its clock is from this machine's. */
import * as v from 'valibot';
import { asError, redact } from '../../../core/errors.ts';
import type { Read } from '../../../core/schema.ts';
import { readLimited } from '../../../platform/files/read-limited.ts';
import { openConnections } from '../../../platform/http/connections.ts';
import { basic } from '../../../platform/http/http.ts';
import type { ResponseHead } from '../../../platform/http/message.ts';
import { decoded, proxyFor } from '../../../platform/http/proxy.ts';
import { loadRoots } from '../../../platform/http/roots.ts';
import { send } from '../../../platform/http/wire.ts';
import { type Check, DEFAULT_LIMIT_MS, limitOf } from '../check.ts';
import { readCondition } from '../condition.ts';
import { CollectProblem, type Host } from '../host.ts';
import { firstOutcome } from '../outcome.ts';
import type { Settings } from '../check-settings.ts';

/** A status, with the seconds between both clocks if they differ; or the error. */
const statusCode = v.pipe(v.number(), v.integer());
const schema = v.union([
  v.object({ statusCode, clockSkew: v.number() }),
  v.object({ statusCode }),
  v.object({ error: v.string() }),
]);
export type HttpFacts = Read<typeof schema>;

const METHODS = ['get', 'post', 'put'] as const;
const MAX_REDIRECTS = 10;
const CA_LIMIT = 16 << 20;
/** The date of a response is rounded, and older than the response. */
const CLOCK_ERROR_S = 5;

export const http: Check<HttpFacts> = {
  kind: 'http',
  defaultName: 'result',
  settings: { get: 'map', post: 'map', put: 'map' },
  limitMs: (settings) => {
    const [request] = METHODS.flatMap((method) => settings.map(method) ?? []);
    return request === undefined ? DEFAULT_LIMIT_MS : limitOf(request, DEFAULT_LIMIT_MS) + 1000;
  },
  collect: async (settings, host) => {
    const method = METHODS.find((name) => settings.map(name) !== undefined);
    const request = method === undefined ? undefined : settings.map(method);
    if (method === undefined || request === undefined) throw new CollectProblem('one of get, post and put is required');
    const limit = limitOf(request, DEFAULT_LIMIT_MS);
    const signal = AbortSignal.any([host.signal, AbortSignal.timeout(limit)]);
    try {
      const { status, headers } = await finalHead(method.toUpperCase(), request, { ...host, signal });
      const ahead = Math.round((Date.parse(headers['date'] ?? '') - Date.now()) / 1000);
      return { statusCode: status, ...(Math.abs(ahead) > CLOCK_ERROR_S && { clockSkew: Math.abs(ahead) }) };
    } catch (error) {
      host.signal.throwIfAborted();
      if (error instanceof CollectProblem) throw error;
      const message = signal.aborted ? `no response within ${limit / 1000} s` : asError(error).message;
      return { error: redact(message) };
    }
  },
  facts: schema,
  title: 'HTTP Request',
  analyze: firstOutcome(holds),
};

/** The response after all redirects. Headers of the spec are sent only to its own host. */
async function finalHead(method: string, request: Settings, host: Host): Promise<ResponseHead> {
  const address = request.text('url') ?? '';
  if (!URL.canParse(address)) throw new Error(`not an address: ${address}`);
  const start = new URL(address);
  let [url, verb] = [start, method];
  for (let hops = 0; hops <= MAX_REDIRECTS; hops += 1) {
    const headers = url.host === start.host ? (request.textMap('headers') ?? {}) : {};
    const body = verb === 'GET' ? undefined : request.text('body');
    const head = await exchange({ url, verb, headers, body }, request, host);
    const { status } = head;
    const { location } = head.headers;
    const isRedirect = [301, 302, 303, 307, 308].includes(status) && location !== undefined;
    if (!isRedirect || !URL.canParse(location, url.href)) return head;
    url = new URL(location, url.href);
    if (status < 307) verb = 'GET';
  }
  throw new Error(`stopped after ${MAX_REDIRECTS} redirects`);
}

interface Exchange {
  readonly url: URL;
  readonly verb: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

const STATUS_ONLY = { head: () => undefined, data: (): false => false };

async function exchange(
  { url, verb, headers, body }: Exchange,
  request: Settings,
  { env, signal }: Host,
): Promise<ResponseHead> {
  const named = request.text('proxy');
  const proxy = named === undefined ? proxyFor(url, env) : new URL(named);
  for (const { protocol } of proxy === undefined ? [url] : [url, proxy]) {
    if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`unsupported protocol ${protocol}`);
  }
  using connections = openConnections({
    proxyOf: () => proxy,
    connectMs: limitOf(request, DEFAULT_LIMIT_MS),
    roots: await authorities(request, env),
    rejectUnauthorized: !request.yes('insecureSkipVerify'),
  });
  const user = url.username === '' ? {} : { authorization: basic(decoded(url.username), decoded(url.password)) };
  return await send(connections, { url, method: verb, headers: { ...user, ...headers }, body }, STATUS_ONLY, {
    signal,
  });
}

/** CA certificates: those that a spec names as PEM or file replace the operator's and the system's. */
async function authorities(request: Settings, env: Host['env']): Promise<readonly string[] | undefined> {
  const named = request.map('tls')?.text('cacert');
  if (named !== undefined)
    return [named.includes('BEGIN CERTIFICATE') ? named : (await readLimited(named, CA_LIMIT)).toString('latin1')];
  return loadRoots(undefined, env);
}

/** `error`, `statusCode == 200`, `statusCode >= 200 && statusCode < 300`, and curlew's own `clockSkew > 60`. */
function holds(when: string, facts: HttpFacts): boolean {
  if (when === 'error') return 'error' in facts;
  const condition = readCondition(when);
  return 'statusCode' in facts && condition({ clockSkew: 0, ...facts });
}
