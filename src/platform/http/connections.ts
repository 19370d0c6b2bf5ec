/**
 * Connections to servers, direct or through proxies, and their reuse: the one place that knows agents, tunnels and
 * certificate authorities. `wire.ts` sends requests over them, and so do libraries that take agents.
 */
import { lookup as resolveName, type LookupAddress } from 'node:dns';
import { Agent as PlainAgent, request as requestPlain, type ClientRequestArgs, type IncomingMessage } from 'node:http';
import { Agent as SecureAgent, request as requestSecure, type AgentOptions, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  connect as connectTls,
  createSecureContext,
  type ConnectionOptions as TlsOptions,
  type SecureContext,
} from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { CurlewError } from '../../core/errors.ts';
import { internalRefused, isInternalAddress } from './address.ts';
import { connectionMessage, noTunnel, timedOut, credentialsRequired, PROXY_SCHEMES } from './failure.ts';
import type { Headers } from './message.ts';
import { proxyToken } from './proxy.ts';
import { isRetryable } from './retry.ts';

export interface ConnectionOptions {
  /** The proxy for an address; undefined for a direct connection. */
  readonly proxyOf: (url: URL) => URL | undefined;
  /** Time limit in milliseconds for a connection to a proxy, and again for one to a server, TLS included. */
  readonly connectMs: number;
  /** Authorities in PEM, for servers and proxies; Node's own if absent. */
  readonly roots?: readonly string[] | undefined;
  /** Used for servers instead of the authorities above. */
  readonly secureContext?: SecureContext | undefined;
  /** False accepts any server certificate. Proxies must still present a valid one. */
  readonly rejectUnauthorized?: boolean | undefined;
  /** Name in the server's certificate, if it differs from the host of the address. */
  readonly servername?: string | undefined;
}

/** Where to send a request for an address. */
interface Route {
  readonly agent: PlainAgent | SecureAgent;
  /** The first connection uses TLS. */
  readonly secure: boolean;
  /** Host in the form for sockets: without brackets. */
  readonly host: string;
  readonly port: number;
  /** Prefix of the path, for a proxy that forwards the request. */
  readonly prefix: string;
  /** Headers for that proxy. */
  readonly headers: Headers;
  /** Name in the certificate of the server that receives the request, if it differs from the request's host. */
  readonly servername: string | undefined;
  readonly lookup: LookupFunction | undefined;
  readonly proxy: URL | undefined;
}

export interface Connections extends Disposable {
  readonly plain: PlainAgent;
  readonly secure: SecureAgent;
  /** `namedBy`: the host whose response named this address, which then must not resolve to this machine or its link. */
  readonly routeOf: (url: URL, namedBy?: string) => Route;
}

/** Shorter than the idle timeouts of load balancers and API servers (90 s), so that no request uses a closed connection. */
const IDLE_MS = 30_000;
const MAX_CONNECTIONS = 64;
/** Fewer and larger chunks if the writer is slower than the network. */
const READ_AHEAD = 256 * 1024;
const POOL = { keepAlive: true, timeout: IDLE_MS, maxSockets: MAX_CONNECTIONS, highWaterMark: READ_AHEAD };

/** Connects on the first request. Idle connections do not keep the process alive, and are closed after 30 seconds. */
export function openConnections(options: ConnectionOptions): Connections {
  const { proxyOf, connectMs, rejectUnauthorized, servername } = options;
  const trust = lazyContext(options.roots);
  const server: AgentOptions = {
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
    ...(options.secureContext === undefined ? {} : { secureContext: options.secureContext }),
  };
  const pool = () => ({
    plain: new TimedAgent(connectMs),
    secure: new TunnelAgent(server, { proxyOf, connectMs, trust }),
  });
  const [usual, guarded] = [pool(), pool()];
  // Proxies are contacted directly.
  const toProxy = new TunnelAgent({}, { proxyOf: () => undefined, connectMs, trust });
  const routeOf: Connections['routeOf'] = (url, namedBy) => {
    const proxy = proxyOf(url);
    const secure = url.protocol === 'https:';
    if (proxy !== undefined && !secure) {
      const token = proxyToken(proxy);
      const headers = { host: url.host, ...(token === undefined ? {} : { 'proxy-authorization': token }) };
      const way = proxy.protocol === 'https:' ? { secure: true, agent: toProxy } : { secure, agent: usual.plain };
      return {
        ...way,
        ...placeOf(proxy),
        prefix: url.origin,
        headers,
        servername: nameOf(proxy),
        lookup: undefined,
        proxy,
      };
    }
    const isGuarded = namedBy !== undefined && proxy === undefined;
    // A connection must not be shared by requests with different lookup rules.
    const agent = (isGuarded ? guarded : usual)[secure ? 'secure' : 'plain'];
    const lookup = isGuarded ? guardedLookup(namedBy) : undefined;
    return { secure, agent, ...placeOf(url), prefix: '', headers: {}, servername: undefined, lookup, proxy };
  };
  return {
    ...usual,
    routeOf,
    [Symbol.dispose]: () => {
      for (const agent of [toProxy, ...Object.values(usual), ...Object.values(guarded)]) agent.destroy();
    },
  };
}

function placeOf({ hostname, port, protocol }: URL): Pick<Route, 'host' | 'port'> {
  const usual = protocol === 'https:' ? 443 : 80;
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? usual : Number(port) };
}

/** The name to verify in the certificate; Node's default is the `host` header. Empty for an IP address, which is then verified. */
function nameOf(proxy: URL): string {
  const { host } = placeOf(proxy);
  return isIP(host) === 0 ? host : '';
}

type Trust = () => { readonly secureContext?: SecureContext };

/** Reading all authorities takes tens of milliseconds: done once, and only if there are more than Node's own. */
function lazyContext(roots: readonly string[] | undefined): Trust {
  let secureContext: SecureContext | undefined;
  return () => {
    if (roots === undefined) return {};
    secureContext ??= trustIn(roots);
    return { secureContext };
  };
}

let last: { readonly roots: readonly string[]; readonly secureContext: SecureContext } | undefined;

/** Trust of the call before is used again for the same authorities: an agent opens connections for each content that it reads. */
function trustIn(roots: readonly string[]): SecureContext {
  if (last === undefined || !isDeepStrictEqual(last.roots, roots))
    last = { roots, secureContext: createSecureContext({ ca: [...roots] }) };
  return last.secureContext;
}

/** A name lookup that refuses addresses of this machine and its link. */
function guardedLookup(namedBy: string): LookupFunction {
  return (hostname, options, callback) => {
    resolveName(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error !== null) {
        callback(error, '', 0);
        return;
      }
      if (addresses.some(({ address }) => isInternalAddress(address))) {
        callback(internalRefused('look up a name', namedBy, hostname), '', 0);
        return;
      }
      const [first] = addresses;
      if (options.all === true) callback(null, addresses);
      else callback(null, first?.address ?? '', first?.family ?? 4);
    });
  };
}

/** Destroys a connection that is not ready in time. */
function inTime(socket: Duplex, ready: 'connect' | 'secureConnect', ms: number): Duplex {
  const timer = setTimeout(() => socket.destroy(timedOut('connect')), ms);
  const settled = (): void => clearTimeout(timer);
  return socket.once(ready, settled).once('close', settled);
}

type Connected = (error: Error | null, stream: Duplex) => void;

class TimedAgent extends PlainAgent {
  readonly #connectMs: number;

  constructor(connectMs: number) {
    super(POOL);
    this.#connectMs = connectMs;
  }

  override createConnection(request: ClientRequestArgs): Duplex {
    return inTime(super.createConnection(request) as Duplex, 'connect', this.#connectMs);
  }
}

interface TunnelOptions extends Pick<ConnectionOptions, 'proxyOf' | 'connectMs'> {
  readonly trust: Trust;
}

/** Options that requests pass to their agents: Node does not pass on a request's `signal`. */
export interface AgentRequestOptions extends RequestOptions {
  readonly canceledBy?: AbortSignal | undefined;
}

class TunnelAgent extends SecureAgent {
  readonly #options: TunnelOptions;

  constructor(server: AgentOptions, options: TunnelOptions) {
    super({ ...POOL, ...server });
    this.#options = options;
  }

  override createConnection(request: AgentRequestOptions, done?: Connected): Duplex | null | undefined {
    const { proxyOf, connectMs, trust } = this.#options;
    const { host, port } = addressOf(request);
    const proxy = proxyOf(new URL(`https://${host}:${port}`));
    const tls: TlsOptions = { ...trust(), ...(request as object) };
    if (proxy === undefined) return inTime(super.createConnection(tls) as Duplex, 'secureConnect', connectMs);
    openTunnel(proxy, `${host}:${port}`, this.#options, {
      canceledBy: request.canceledBy,
      opened: (socket) => done?.(null, inTime(connectTls({ ...tls, socket }), 'secureConnect', connectMs)),
      // Node ignores the stream if the connection failed.
      failed: (error) => (done as ((error: Error) => void) | undefined)?.(error),
    });
    return undefined;
  }
}

function addressOf({ host, hostname, port }: RequestOptions): { readonly host: string; readonly port: string } {
  const name = host ?? hostname ?? '';
  return { host: name.includes(':') && !name.startsWith('[') ? `[${name}]` : name, port: String(port ?? 443) };
}

interface Ends {
  /** Cancels the attempt. */
  readonly canceledBy: AbortSignal | undefined;
  readonly opened: (socket: Socket) => void;
  /** Called at most once, and not after `opened`. */
  readonly failed: (error: CurlewError) => void;
}

/** Connects to `name:port` through the proxy. Any other response of the proxy is `AUTH_FAILED` or a {@link ProxyFailure}. */
function openTunnel(proxy: URL, target: string, { trust, connectMs }: TunnelOptions, ends: Ends): void {
  const token = proxyToken(proxy);
  const secure = proxy.protocol === 'https:';
  let ended = false;
  const fail = (error: CurlewError): void => {
    clearTimeout(timer);
    if (!ended) ends.failed(error);
    ended = true;
  };
  const failed = (what: string, isLater: boolean, cause?: unknown): CurlewError =>
    noTunnel(proxy, target, { what, isLater, cause });
  const answered = ({ statusCode: status = 0, headers }: IncomingMessage): CurlewError => {
    if (status === 407) return credentialsRequired(proxy, headers[PROXY_SCHEMES]);
    return failed(`the proxy returned ${status}`, isRetryable(status));
  };
  const request = (secure ? requestSecure : requestPlain)({
    ...placeOf(proxy),
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...(token === undefined ? {} : { 'proxy-authorization': token }) },
    agent: false,
    ...(ends.canceledBy === undefined ? {} : { signal: ends.canceledBy }),
    ...(secure ? { ...trust(), servername: nameOf(proxy) } : {}),
  });
  // Limits the total time, not the idle time: a proxy may send its response byte by byte.
  const timer = setTimeout(() => {
    fail(failed('no response in time', true));
    request.destroy();
  }, connectMs);
  request.on('error', (error) => fail(failed(connectionMessage(error) ?? error.message, true, error)));
  request.once('connect', (answer, socket, head) => {
    const { statusCode = 0 } = answer;
    if (statusCode >= 200 && statusCode < 300 && head.byteLength === 0) {
      clearTimeout(timer);
      ended = true;
      ends.opened(socket);
      return;
    }
    socket.destroy();
    fail(answered(answer));
  });
  request.once('response', (answer) => {
    answer.destroy();
    fail(answered(answer));
  });
  request.end();
}
