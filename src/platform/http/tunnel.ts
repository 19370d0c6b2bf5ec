/**
 * Proxies for clients that bring their own HTTP and take an agent: connections with TLS go through a tunnel, requests
 * without it are sent to the proxy with their whole address. Which proxy, {@link proxyFor} says for each address, or whoever makes the agent.
 */
import { request as requestPlain } from 'node:http';
import { Agent, request as requestSecure, type AgentOptions, type RequestOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { CurlewError } from '../../core/errors.ts';
import { proxyFor, proxyToken, type Environment } from './proxy.ts';
import { isRetryable } from './retry.ts';

type Connected = (error: Error | null, stream: Duplex) => void;

/** Certificate authorities in PEM; undefined: Node's own. */
interface Trust {
  readonly ca?: readonly string[] | undefined;
}

/** An agent for https that asks, for each address that it connects to, which proxy leads there; undefined is none. */
export function tunnelAgent(
  proxyOf: (url: URL) => URL | undefined,
  options: AgentOptions & { readonly connectMs: number },
): Agent {
  const { connectMs, ...others } = options;
  const trust: Trust = options.ca === undefined ? {} : { ca: [options.ca].flat().map(String) };
  return new (class extends Agent {
    override createConnection(asked: RequestOptions, done?: Connected): Duplex | null | undefined {
      const { host, port } = addressOf(asked);
      const proxy = proxyOf(new URL(`https://${host}:${port}`));
      if (proxy === undefined) return super.createConnection(asked, done);
      openTunnel(
        proxy,
        `${host}:${port}`,
        { ...trust, connectMs, signal: asked.signal },
        {
          opened: (socket) => done?.(null, connectTls({ ...(asked as object), socket })),
          // Nobody looks at the stream of a connection that failed.
          failed: (error) => (done as ((error: Error) => void) | undefined)?.(error),
        },
      );
      return undefined;
    }
  })(others);
}

function addressOf({ host, hostname, port }: RequestOptions): { readonly host: string; readonly port: string } {
  const name = host ?? hostname ?? '';
  return { host: name.includes(':') && !name.startsWith('[') ? `[${name}]` : name, port: String(port ?? 443) };
}

/** A proxy that does not lead to this address, and will not later on. */
export class ProxyRefusal extends CurlewError {}

interface Ends {
  readonly opened: (socket: Socket) => void;
  /** Called at most once, and not after `opened`. */
  readonly failed: (error: CurlewError) => void;
}

/** A connection to `name:port` through the proxy. What the proxy says that is no success is `AUTH_FAILED` or `FETCH_FAILED`. */
function openTunnel(
  proxy: URL,
  target: string,
  { ca, connectMs, signal }: Trust & { readonly connectMs: number; readonly signal: AbortSignal | undefined },
  ends: Ends,
): void {
  const token = proxyToken(proxy);
  const secure = proxy.protocol === 'https:';
  let ended = false;
  const fail = (error: CurlewError): void => {
    clearTimeout(timer);
    if (!ended) ends.failed(error);
    ended = true;
  };
  const failed = (what: string, cause?: unknown, Failure = CurlewError): CurlewError =>
    new Failure('FETCH_FAILED', `connect to ${target} through the proxy ${proxy.host}: ${what}`, {
      hint: 'check HTTPS_PROXY and NO_PROXY',
      cause,
    });
  const answered = (status = 0): CurlewError => {
    if (status === 407) return wantsCredentials(proxy);
    const isLater = status >= 500 || isRetryable(status);
    return failed(`the proxy answered ${status}`, undefined, isLater ? CurlewError : ProxyRefusal);
  };
  const asked = (secure ? requestSecure : requestPlain)({
    host: proxy.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: proxy.port === '' ? (secure ? 443 : 80) : proxy.port,
    method: 'CONNECT',
    path: target,
    headers: { host: target, ...(token === undefined ? {} : { 'proxy-authorization': token }) },
    agent: false,
    ...(signal === undefined ? {} : { signal }),
    ...(secure && ca !== undefined ? { ca: [...ca] } : {}),
  });
  // Not the time without a byte: a proxy may send its answer letter by letter.
  const timer = setTimeout(() => {
    fail(failed('no answer in time'));
    asked.destroy();
  }, connectMs);
  asked.on('error', (error) => fail(failed(error.message, error)));
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

/** For a proxy that answered 407. */
export function wantsCredentials(proxy: URL): CurlewError {
  return new CurlewError('AUTH_FAILED', `the proxy ${proxy.host} wants other credentials`, {
    hint: 'the proxy wants credentials: http://USER:PASSWORD@HOST:PORT',
  });
}

/** Where a request without TLS has to go so that the proxy passes it on. */
export interface PlainDetour {
  readonly hostname: string;
  readonly port: number;
  /** Stands before the path. */
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly proxy: URL;
}

/** Undefined for an address that is asked directly. A proxy for plain http that itself wants TLS is `UNSUPPORTED`. */
export function plainDetour(url: URL, env: Environment): PlainDetour | undefined {
  const proxy = url.protocol === 'http:' ? proxyFor(url, env) : undefined;
  if (proxy === undefined) return undefined;
  if (proxy.protocol !== 'http:') {
    throw new CurlewError(
      'UNSUPPORTED',
      `${url.host}: requests without TLS cannot go through the proxy ${proxy.origin}`,
      {
        hint: 'give HTTP_PROXY an http address, or the server an https one',
      },
    );
  }
  const token = proxyToken(proxy);
  return {
    hostname: proxy.hostname,
    port: Number(proxy.port === '' ? 80 : proxy.port),
    origin: url.origin,
    headers: token === undefined ? {} : { 'proxy-authorization': token },
    proxy,
  };
}
