/** What a web server answers. Of the answer only its status is kept. */
import { asError, redact } from '../../../core/errors.ts';
import { isObject } from '../../../core/json.ts';
import { readLimited } from '../../../platform/files/read-limited.ts';
import { openConnections } from '../../../platform/http/connections.ts';
import type { ResponseHead } from '../../../platform/http/message.ts';
import { basic } from '../../../platform/http/http.ts';
import { decoded, proxyFor } from '../../../platform/http/proxy.ts';
import { loadRoots } from '../../../platform/http/roots.ts';
import { send } from '../../../platform/http/wire.ts';
import { CollectProblem, USUAL_LIMIT_MS, type Collector, type Host } from '../collector.ts';
import { limitOf } from '../limit.ts';
import type { Settings } from '../settings.ts';

/** A status, or why there is none. */
export type HttpFacts = { readonly statusCode: number } | { readonly error: string };

const METHODS = ['get', 'post', 'put'] as const;
const MOST_REDIRECTS = 10;
const CA_LIMIT = 16 << 20;

export const http: Collector<HttpFacts> = {
  kind: 'http',
  defaultName: 'result',
  shared: false,
  settings: { get: 'map', post: 'map', put: 'map' },
  limitMs: (settings) => {
    const wanted = METHODS.flatMap((method) => settings.map(method) ?? []);
    return wanted[0] === undefined ? USUAL_LIMIT_MS : limitOf(wanted[0], USUAL_LIMIT_MS) + 1000;
  },
  collect: async (settings, host) => {
    const method = METHODS.find((name) => settings.map(name) !== undefined);
    const wanted = method === undefined ? undefined : settings.map(method);
    if (method === undefined || wanted === undefined) throw new CollectProblem('neither get nor post nor put is there');
    const limit = limitOf(wanted, USUAL_LIMIT_MS);
    const signal = AbortSignal.any([host.signal, AbortSignal.timeout(limit)]);
    try {
      return { statusCode: await finalStatus(method.toUpperCase(), wanted, { ...host, signal }) };
    } catch (error) {
      host.signal.throwIfAborted();
      if (error instanceof CollectProblem) throw error;
      const message = signal.aborted ? `no answer within ${limit / 1000} s` : asError(error).message;
      return { error: redact(message) };
    }
  },
  isFacts: (value): value is HttpFacts =>
    isObject(value) && (Number.isInteger(value['statusCode']) || typeof value['error'] === 'string'),
};

/** The status of the last of a chain of redirects. Headers of the spec go to its own host only. */
async function finalStatus(method: string, wanted: Settings, host: Host): Promise<number> {
  const address = wanted.text('url') ?? '';
  if (!URL.canParse(address)) throw new Error(`not an address: ${address}`);
  const start = new URL(address);
  let [url, verb] = [start, method];
  for (let hops = 0; hops <= MOST_REDIRECTS; hops += 1) {
    const headers = url.host === start.host ? (wanted.textMap('headers') ?? {}) : {};
    const body = verb === 'GET' ? undefined : wanted.text('body');
    const { status, headers: answered } = await exchange({ url, verb, headers, body }, wanted, host);
    const { location } = answered;
    const isRedirect = [301, 302, 303, 307, 308].includes(status) && location !== undefined;
    if (!isRedirect || !URL.canParse(location, url.href)) return status;
    url = new URL(location, url.href);
    if (status < 307) verb = 'GET';
  }
  throw new Error(`stopped after ${MOST_REDIRECTS} redirects`);
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
  wanted: Settings,
  { env, signal }: Host,
): Promise<ResponseHead> {
  const named = wanted.text('proxy');
  const proxy = named === undefined ? proxyFor(url, env) : new URL(named);
  for (const { protocol } of proxy === undefined ? [url] : [url, proxy]) {
    if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`unsupported protocol ${protocol}`);
  }
  using connections = openConnections({
    proxyOf: () => proxy,
    connectMs: limitOf(wanted, USUAL_LIMIT_MS),
    roots: await authorities(wanted, env),
    rejectUnauthorized: !wanted.yes('insecureSkipVerify'),
  });
  const user = url.username === '' ? {} : { authorization: basic(decoded(url.username), decoded(url.password)) };
  return await send(connections, { url, method: verb, headers: { ...user, ...headers }, body }, STATUS_ONLY, {
    signal,
  });
}

/** Authorities that a spec names as PEM or as a file come in place of the operator's and the system's. */
async function authorities(wanted: Settings, env: Host['env']): Promise<readonly string[] | undefined> {
  const named = wanted.map('tls')?.text('cacert');
  if (named !== undefined)
    return [named.includes('BEGIN CERTIFICATE') ? named : (await readLimited(named, CA_LIMIT)).toString('latin1')];
  return loadRoots(undefined, env);
}
