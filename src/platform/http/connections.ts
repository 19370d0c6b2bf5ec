/**
 * Connections to servers, made directly or through proxies, and used again: the one place that knows agents, tunnels and
 * certificate authorities. Requests over them are made in `wire.ts`, and by libraries that take agents.
 */
import { lookup as resolveName, type LookupAddress } from 'node:dns';
import { Agent as PlainAgent, request as requestPlain, type ClientRequestArgs } from 'node:http';
import { Agent as SecureAgent, request as requestSecure, type AgentOptions, type RequestOptions } from 'node:https';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  connect as connectTls,
  createSecureContext,
  type ConnectionOptions as TlsOptions,
  type SecureContext,
} from 'node:tls';
import type { CurlewError } from '../../core/errors.ts';
import { internalRefused, isInternalAddress } from './address.ts';
import { connectionWords, noTunnel, timedOut, wantsCredentials } from './failure.ts';
import type { Headers } from './message.ts';
import { proxyToken } from './proxy.ts';
import { isRetryable } from './retry.ts';

export interface ConnectionOptions {
  /** Which proxy leads to an address; undefined is none. */
  readonly proxyOf: (url: URL) => URL | undefined;
  /** Milliseconds for a connection to a proxy, and as many for one to a server, with TLS. */
  readonly connectMs: number;
  /** Authorities in PEM, for servers and proxies; Node's own when absent. */
  readonly roots?: readonly string[] | undefined;
  /** What servers are to be met with in place of the authorities above. */
  readonly secureContext?: SecureContext | undefined;
  /** False: any certificate of a server will do. Proxies still have to show a good one. */
  readonly rejectUnauthorized?: boolean | undefined;
  /** Name in the certificate of the server, where it is not that of its address. */
  readonly servername?: string | undefined;
}

/** Where a request for an address has to be sent. */
export interface Route {
  readonly agent: PlainAgent | SecureAgent;
  /** The first connection is to speak TLS. */
  readonly secure: boolean;
  /** As a socket takes it: without brackets. */
  readonly host: string;
  readonly port: number;
  /** Stands before the path, for a proxy that passes the request on. */
  readonly prefix: string;
  /** For that proxy. */
  readonly headers: Headers;
  /** In the certificate of whoever is sent the request, where that is not who the request is for. */
  readonly servername: string | undefined;
  readonly lookup: LookupFunction | undefined;
  readonly proxy: URL | undefined;
}

export interface Connections extends Disposable {
  readonly plain: PlainAgent;
  readonly secure: SecureAgent;
  /** `namedBy`: the host that named this address, which then must not resolve to this machine or its link. */
  readonly routeOf: (url: URL, namedBy?: string) => Route;
}

/** Less than load balancers and API servers (90 s) leave a connection open: nothing is sent into one that is gone. */
const IDLE_MS = 30_000;
const MOST_CONNECTIONS = 64;
/** Fewer, larger parts of a body for a writer that takes longer than the line. */
const READ_AHEAD = 256 * 1024;
const POOL = { keepAlive: true, timeout: IDLE_MS, maxSockets: MOST_CONNECTIONS, highWaterMark: READ_AHEAD };

/** Connects when the first request is made. Idle connections keep no process alive, and are closed after half a minute. */
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
  // A proxy is not asked through a proxy.
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
    // One connection may not serve requests under another rule for its name.
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

/** As a certificate has it; Node itself would take that of the header `host`. None for an address: then that is looked for. */
function nameOf(proxy: URL): string {
  const { host } = placeOf(proxy);
  return isIP(host) === 0 ? host : '';
}

type Trust = () => { readonly secureContext?: SecureContext };

/** Reading all authorities takes tens of milliseconds: once, and only when there are more than Node's own. */
function lazyContext(roots: readonly string[] | undefined): Trust {
  let secureContext: SecureContext | undefined;
  return () => {
    if (roots === undefined) return {};
    secureContext ??= createSecureContext({ ca: [...roots] });
    return { secureContext };
  };
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

/** Ends a connection that is not ready in time. */
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

  override createConnection(asked: ClientRequestArgs): Duplex {
    return inTime(super.createConnection(asked) as Duplex, 'connect', this.#connectMs);
  }
}

interface TunnelOptions extends Pick<ConnectionOptions, 'proxyOf' | 'connectMs'> {
  readonly trust: Trust;
}

/** What requests give their agents, which do not get the signal of a request under its own name. */
export interface Asked extends RequestOptions {
  readonly cancelledBy?: AbortSignal | undefined;
}

class TunnelAgent extends SecureAgent {
  readonly #options: TunnelOptions;

  constructor(server: AgentOptions, options: TunnelOptions) {
    super({ ...POOL, ...server });
    this.#options = options;
  }

  override createConnection(asked: Asked, done?: Connected): Duplex | null | undefined {
    const { proxyOf, connectMs, trust } = this.#options;
    const { host, port } = addressOf(asked);
    const proxy = proxyOf(new URL(`https://${host}:${port}`));
    const tls: TlsOptions = { ...trust(), ...(asked as object) };
    if (proxy === undefined) return inTime(super.createConnection(tls) as Duplex, 'secureConnect', connectMs);
    openTunnel(proxy, `${host}:${port}`, this.#options, {
      cancelledBy: asked.cancelledBy,
      opened: (socket) => done?.(null, inTime(connectTls({ ...tls, socket }), 'secureConnect', connectMs)),
      // Nobody looks at the stream of a connection that failed.
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
  /** Ends the attempt. */
  readonly cancelledBy: AbortSignal | undefined;
  readonly opened: (socket: Socket) => void;
  /** Called at most once, and not after `opened`. */
  readonly failed: (error: CurlewError) => void;
}

/** A connection to `name:port` through the proxy. What the proxy says that is no success is `AUTH_FAILED` or a {@link ProxyFailure}. */
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
  const answered = (status = 0): CurlewError => {
    if (status === 407) return wantsCredentials(proxy);
    return failed(`the proxy answered ${status}`, status >= 500 || isRetryable(status));
  };
  const asked = (secure ? requestSecure : requestPlain)({
    ...placeOf(proxy),
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...(token === undefined ? {} : { 'proxy-authorization': token }) },
    agent: false,
    ...(ends.cancelledBy === undefined ? {} : { signal: ends.cancelledBy }),
    ...(secure ? { ...trust(), servername: nameOf(proxy) } : {}),
  });
  // Not the time without a byte: a proxy may send its answer letter by letter.
  const timer = setTimeout(() => {
    fail(failed('no answer in time', true));
    asked.destroy();
  }, connectMs);
  asked.on('error', (error) => fail(failed(connectionWords(error) ?? error.message, true, error)));
  asked.once('connect', ({ statusCode = 0 }, socket, head) => {
    if (statusCode >= 200 && statusCode < 300 && head.byteLength === 0) {
      clearTimeout(timer);
      ended = true;
      ends.opened(socket);
      return;
    }
    socket.destroy();
    fail(answered(statusCode));
  });
  asked.once('response', (answer) => {
    answer.destroy();
    fail(answered(answer.statusCode));
  });
  asked.end();
}
