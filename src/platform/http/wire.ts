/** One request over one connection, without redirects or retries: the only place that knows undici. */
import { lookup as resolveName, type LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { createSecureContext, type SecureContext } from 'node:tls';
import { Agent, Pool, ProxyAgent, type Dispatcher } from 'undici';
import { asError } from '../../core/errors.ts';
import { internalRefused, isInternalAddress } from './address.ts';
import { brokenOutcome } from './failure.ts';
import { Broken, timedOut, type Hop, type Timeouts } from './hop.ts';
import { watchConnection } from './late-end.ts';
import { watchSink } from './least-rate.ts';
import type { Outcome, ResponseHead, Sink } from './message.ts';
import { isPlainHop, plainGet } from './plain-socket.ts';
import { proxyFor, proxyToken, type Environment } from './proxy.ts';

export interface Wire {
  /** Rejects with the signal's reason and with what the sink threw; everything else is an outcome. */
  readonly send: (hop: Hop, sink: Sink, options: { readonly signal: AbortSignal }) => Promise<Outcome>;
  readonly close: () => Promise<void>;
}

/** Sockets read ahead this much: fewer, larger reads where the machine is the limit. */
const READ_AHEAD = 256 * 1024;
const MOST_CONNECTIONS = 64;

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

type Reading = 'going' | 'held' | 'over';

/** Feeds a sink and settles once: with the head after the last byte, or with whatever went wrong. */
function receiver(
  hop: Hop,
  sink: Sink,
  { signal, headersMs }: { readonly signal: AbortSignal; readonly headersMs: number },
  settle: { readonly done: (head: ResponseHead) => void; readonly failed: (error: unknown) => void },
): Dispatcher.DispatchHandler {
  let state: Reading = 'going';
  let head: ResponseHead | undefined;
  let active: Dispatcher.DispatchController | undefined;
  let headTimer: NodeJS.Timeout | undefined;
  const connection = watchConnection();
  const finish = (act: () => void): void => {
    if (state === 'over') return;
    state = 'over';
    signal.removeEventListener('abort', cancelled);
    clearTimeout(headTimer);
    connection.gate()?.release();
    act();
  };
  const fail = (error: unknown): void => {
    finish(() => {
      settle.failed(error);
      active?.abort(asError(error));
    });
  };
  const cancelled = (): void => {
    fail(signal.reason);
  };
  signal.addEventListener('abort', cancelled);
  const held = async (writing: Promise<void>): Promise<void> => {
    try {
      await writing;
      if (state !== 'held') return;
      state = 'going';
      connection.gate()?.release();
      active?.resume();
      connection.gate()?.flush();
    } catch (error) {
      fail(error);
    }
  };
  return {
    onRequestStart(controller) {
      active = controller;
      connection.started();
      // For undici each answer that is not final (1xx) is a sign of life: they would keep it waiting for ever.
      headTimer = setTimeout(() => fail(timedOut('UND_ERR_HEADERS_TIMEOUT')), headersMs);
      if (state === 'over') controller.abort(new Error('cancelled'));
    },
    onResponseStart(_controller, status, fields) {
      if (status < 200 || state === 'over') return;
      clearTimeout(headTimer);
      const headers = Object.fromEntries(
        Object.entries(fields).map(([name, value]) => [name.toLowerCase(), [value ?? ''].flat().join(', ')]),
      );
      head = { status, headers, url: withoutUser(hop.url) };
      try {
        sink.head(head);
      } catch (error) {
        fail(error);
      }
    },
    onResponseData(controller, chunk) {
      // undici hands out empty chunks when it goes on after a pause: a writer that answers them with a promise would
      // be paused for ever.
      if (state === 'over' || chunk.byteLength === 0) return;
      try {
        const writing = sink.data(chunk);
        if (writing === undefined) return;
        if (writing === false) {
          finish(() => {
            if (head !== undefined) settle.done(head);
            controller.abort(new Error('enough'));
          });
          return;
        }
        state = 'held';
        connection.gate()?.hold();
        controller.pause();
        void held(writing);
      } catch (error) {
        fail(error);
      }
    },
    onResponseEnd() {
      finish(() => {
        if (head === undefined) settle.failed(new Error('an answer without a head'));
        else settle.done(head);
      });
    },
    onResponseError(_controller, error) {
      fail(new Broken(error));
    },
  };
}

function withoutUser(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return shown.href;
}

/** `roots` in PEM: undefined means Node's own. */
export function createWire(env: Environment, roots: readonly string[] | undefined, timeouts: Timeouts): Wire {
  const dispatchers = new Map<string, Dispatcher>();
  const limits = {
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.idleMs,
    connections: MOST_CONNECTIONS,
    allowH2: false,
  };
  let context: SecureContext | undefined;
  // Reading all authorities takes tens of milliseconds: once, and only when there are more than Node's own.
  const tls = (): { readonly secureContext?: SecureContext } => {
    if (roots === undefined) return {};
    context ??= createSecureContext({ ca: [...roots] });
    return { secureContext: context };
  };
  const direct = (namedBy: string | undefined, secure: boolean): Dispatcher => {
    const lookup = namedBy === undefined ? {} : { lookup: guardedLookup(namedBy) };
    const connect = { timeout: timeouts.connectMs, highWaterMark: READ_AHEAD, ...(secure ? tls() : {}), ...lookup };
    return new Agent({ ...limits, connect });
  };
  const proxied = (proxy: URL): Dispatcher => {
    const token = proxyToken(proxy);
    const connect = { timeout: timeouts.connectMs, ...tls() };
    return new ProxyAgent({
      ...limits,
      uri: proxy.origin,
      ...(token === undefined ? {} : { token }),
      proxyTunnel: false,
      requestTls: connect,
      proxyTls: connect,
      clientFactory: (origin, options) => new Pool(origin, { ...options, ...limits }),
    });
  };
  const choose = (proxy: URL | undefined, namedBy: string | undefined, secure: boolean): Dispatcher => {
    const key = proxy === undefined ? `${secure ? 'tls' : 'plain'} ${namedBy ?? ''}` : `proxy ${proxy.href}`;
    const known = dispatchers.get(key);
    if (known !== undefined) return known;
    const made = proxy === undefined ? direct(namedBy, secure) : proxied(proxy);
    dispatchers.set(key, made);
    return made;
  };
  return {
    send: async (hop, given, options) => {
      options.signal.throwIfAborted();
      using watched = watchSink(given, timeouts.leastRate, options.signal);
      const { sink, signal } = watched;
      const proxy = proxyFor(hop.url, env);
      try {
        if (proxy === undefined && isPlainHop(hop)) {
          const head = await plainGet(hop, sink, timeouts, { signal });
          if (head !== undefined) return { kind: 'complete', head };
        }
        const dispatcher = choose(proxy, hop.namedBy, hop.url.protocol === 'https:');
        const head = await new Promise<ResponseHead>((resolve, reject) => {
          const handler = receiver(
            hop,
            sink,
            { signal, headersMs: timeouts.headersMs },
            { done: resolve, failed: reject },
          );
          const { origin, pathname, search } = hop.url;
          const { method, headers, body } = hop;
          // By itself the client would close the connection after a HEAD, and hundreds are asked of one registry.
          const sent = { origin, path: `${pathname}${search}`, method, headers: { ...headers }, reset: false };
          dispatcher.dispatch(body === undefined ? sent : { ...sent, body }, handler);
        });
        return { kind: 'complete', head };
      } catch (error) {
        if (error instanceof Broken) return brokenOutcome(hop.doing, hop.url, proxy, error.cause);
        if (error !== watched.tooSlow()) throw error;
        return brokenOutcome(hop.doing, hop.url, proxy, error);
      }
    },
    close: async () => {
      const all = [...dispatchers.values()];
      dispatchers.clear();
      await Promise.all(all.map(async (dispatcher) => dispatcher.destroy()));
    },
  };
}
