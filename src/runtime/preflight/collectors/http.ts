/** What a web server answers. Of the answer only its status is kept. */
import { request as plainRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { connect as tlsConnect } from 'node:tls';
import type { Duplex } from 'node:stream';
import { asError, redact } from '../../../core/errors.ts';
import { isObject } from '../../../core/json.ts';
import { readLimited } from '../../../platform/files/read-limited.ts';
import { proxyFor, proxyToken } from '../../../platform/http/proxy.ts';
import { loadRoots } from '../../../platform/http/roots.ts';
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
    const { status, location } = await exchange({ url, verb, headers, body }, wanted, host);
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

async function exchange(
  { url, verb, headers, body }: Exchange,
  wanted: Settings,
  { env, signal }: Host,
): Promise<{ readonly status: number; readonly location: string | undefined }> {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Error(`unsupported protocol ${url.protocol}`);
  const secure = url.protocol === 'https:';
  const own = wanted.text('proxy');
  const proxy = own === undefined ? proxyFor(url, env) : new URL(own);
  const ca = await authorities(wanted, env);
  const trust = { rejectUnauthorized: !wanted.yes('insecureSkipVerify'), ...(ca === undefined ? {} : { ca: [...ca] }) };
  const common = { method: verb, headers, signal };
  let request: ClientRequest;
  if (proxy === undefined) {
    request = secure ? tlsRequest(url, { ...common, ...trust }) : plainRequest(url, common);
  } else if (secure) {
    const tunnel = await openTunnel(proxy, url, signal);
    const socket = tlsConnect({ socket: tunnel, servername: url.hostname, ...trust });
    request = tlsRequest(url, { ...common, createConnection: () => socket });
  } else {
    const token = proxyToken(proxy);
    const through = { ...headers, host: url.host, ...(token === undefined ? {} : { 'proxy-authorization': token }) };
    request = plainRequest(proxy, { ...common, path: url.href, headers: through });
  }
  const response = await answerOf(request, body);
  response.destroy();
  return { status: response.statusCode ?? 0, location: response.headers.location };
}

/** Authorities that a spec names as PEM or as a file come in place of the operator's and the system's. */
async function authorities(wanted: Settings, env: Host['env']): Promise<readonly string[] | undefined> {
  const named = wanted.map('tls')?.text('cacert');
  if (named !== undefined)
    return [named.includes('BEGIN CERTIFICATE') ? named : (await readLimited(named, CA_LIMIT)).toString('latin1')];
  return loadRoots(undefined, env);
}

async function answerOf(request: ClientRequest, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    request.end(body);
  });
}

async function openTunnel(proxy: URL, target: URL, signal: AbortSignal): Promise<Duplex> {
  const path = `${target.hostname}:${target.port === '' ? 443 : target.port}`;
  const token = proxyToken(proxy);
  const headers = { host: path, ...(token === undefined ? {} : { 'proxy-authorization': token }) };
  const open = proxy.protocol === 'https:' ? tlsRequest : plainRequest;
  const request = open(proxy, { method: 'CONNECT', path, headers, signal });
  return new Promise((resolve, reject) => {
    request.once('connect', (response, socket) => {
      if (response.statusCode === 200) resolve(socket);
      else reject(new Error(`the proxy answered ${response.statusCode ?? 0}`));
    });
    request.on('error', reject);
    request.end();
  });
}
