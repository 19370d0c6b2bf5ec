/** Sends one request over one connection, without redirects or retries. */
import { request as requestPlain, type ClientRequest, type IncomingMessage } from 'node:http';
import { request as requestSecure } from 'node:https';
import { asError, errnoOf } from '../../core/errors.ts';
import { openConnections, type AgentRequestOptions, type ConnectionOptions, type Connections } from './connections.ts';
import { Broken, brokenOutcome, timedOut, credentialsRequired, PROXY_SCHEMES } from './failure.ts';
import { paced, type Pace } from './pace.ts';
import type { HttpOutcome, ResponseHead, Sink } from './message.ts';

/** Limits in milliseconds: for a connection, for the head of a response, between two chunks of a body. */
export interface Timeouts extends Pace {
  readonly connectMs: number;
  readonly headersMs: number;
  /** For one attempt of a small request in total, including redirects and tokens. */
  readonly smallMs: number;
}

export interface Hop {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | undefined;
  /** Host whose response named this address, which then must not resolve to this machine or its link. */
  readonly namedBy?: string | undefined;
}

interface SendOptions {
  /** If absent, the signal is the only limit. */
  readonly timeouts?: Omit<Timeouts, 'connectMs' | 'smallMs'> | undefined;
  readonly signal: AbortSignal;
}

export interface Wire {
  /** Rejects with the signal's reason and with errors of the sink; everything else is an outcome. */
  readonly send: (hop: Hop & { readonly doing: string }, sink: Sink, options: SendOptions) => Promise<HttpOutcome>;
  readonly close: () => void;
}

/** Ends an exchange from outside: by the signal, a timeout, or a connection error. */
interface Ending extends Disposable {
  /** Rejects when the exchange ends. */
  readonly over: Promise<never>;
  readonly isOver: () => boolean;
  readonly broken: (error: Error) => void;
  /** Sets the time limit for the head of the response, starting now; undefined removes the limit. */
  readonly headWithin: (ms: number | undefined) => void;
}

function endingOf(signal: AbortSignal): Ending {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let end: (error: Error) => void = () => undefined;
  const over = new Promise<never>((_, reject) => {
    end = (error) => {
      isOver = true;
      reject(error);
    };
  });
  const canceled = (): void => end(asError(signal.reason));
  const broken = (error: Error): void => end(new Broken(error));
  signal.addEventListener('abort', canceled);
  over.catch(() => undefined);
  return {
    over,
    isOver: () => isOver,
    broken,
    headWithin: (ms) => {
      clearTimeout(timer);
      timer = ms === undefined || isOver ? undefined : setTimeout(() => broken(timedOut('head')), ms);
    },
    [Symbol.dispose]: () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', canceled);
    },
  };
}

/**
 * Sends a request, feeds the sink, and returns the head of the response after its last byte, or after the sink has enough. A
 * GET or HEAD over an idle connection that was just closed is sent once more. Rejects with {@link Broken} for connection
 * errors, otherwise with the error of the sink or the signal's reason.
 */
export async function send(
  connections: Connections,
  hop: Hop,
  sink: Sink,
  options: SendOptions,
): Promise<ResponseHead> {
  const { timeouts, signal } = options;
  signal.throwIfAborted();
  using ending = endingOf(signal);
  const { request, proxy } = startRequest(connections, hop, signal);
  let answer: IncomingMessage | undefined;
  try {
    answer = await Promise.race([ending.over, answerTo(request, hop, ending, timeouts?.headersMs)]);
    if (answer.statusCode === 407 && proxy !== undefined)
      throw new Broken(credentialsRequired(proxy, answer.headers[PROXY_SCHEMES]));
    const head = headOf(hop, answer);
    sink.head(head);
    if (head.status !== 101) await Promise.race([ending.over, receive(answer, sink, ending, timeouts)]);
    return head;
  } catch (error) {
    const isStale = request.reusedSocket && answer === undefined && error instanceof Broken && isReset(error.cause);
    if (!isStale || !/^(?:GET|HEAD)$/.test(hop.method)) throw error;
  } finally {
    if (answer?.readableEnded !== true) request.destroy();
  }
  return await send(connections, hop, sink, options);
}

async function answerTo(
  request: ClientRequest,
  { body }: Hop,
  ending: Ending,
  headersMs: number | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve) => {
    let answer: IncomingMessage | undefined;
    request.on('error', (error) => {
      // A complete response ends anyway.
      if (answer?.complete !== true) ending.broken(error);
    });
    request.on('finish', () => {
      if (answer === undefined) ending.headWithin(headersMs);
    });
    request.on('response', (received) => {
      // The reader of the body gets its errors.
      answer = received.on('error', () => undefined);
      ending.headWithin(undefined);
      resolve(received);
    });
    // Other protocols are not supported.
    request.on('upgrade', (received, socket) => {
      socket.destroy();
      resolve(received);
    });
    request.end(body);
  });
}

/** Feeds the sink with a body, chunk by chunk as it arrives. */
async function receive(answer: IncomingMessage, sink: Sink, ending: Ending, pace: Pace | undefined): Promise<void> {
  const body: AsyncIterable<Uint8Array> = pace === undefined ? answer : paced(answer, pace);
  const parts = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const part = await parts.next().catch((error: unknown) => {
        throw new Broken(asError(error));
      });
      if (part.done === true || ending.isOver()) return;
      const writing = sink.data(part.value);
      if (writing === false) return;
      if (writing !== undefined) await writing;
    }
  } finally {
    await parts.return?.();
  }
}

function isReset(error: unknown): boolean {
  return ['ECONNRESET', 'EPIPE'].includes(errnoOf(error) ?? '');
}

/** `proxy` is set if it forwards the request. Throws {@link Broken} for a header that cannot be written. */
function startRequest(
  connections: Connections,
  { url, namedBy, method, headers }: Hop,
  signal: AbortSignal,
): { readonly request: ClientRequest; readonly proxy: URL | undefined } {
  const route = connections.routeOf(url, namedBy);
  const { secure, agent, host, port, prefix, servername, lookup, proxy } = route;
  const options: AgentRequestOptions = {
    agent,
    host,
    port,
    method,
    path: `${prefix}${url.pathname}${url.search}`,
    headers: { ...headers, ...route.headers } as Record<string, string | string[]>,
    ...(servername === undefined ? {} : { servername }),
    ...(lookup === undefined ? {} : { lookup }),
    canceledBy: signal,
  };
  try {
    const request = (secure ? requestSecure : requestPlain)(options);
    return { request, proxy: prefix === '' ? undefined : proxy };
  } catch (error) {
    throw new Broken(asError(error));
  }
}

function headOf({ url }: Hop, { statusCode = 0, headersDistinct }: IncomingMessage): ResponseHead {
  const headers = Object.entries(headersDistinct).map(([name, values = []]) => [name, values.join(', ')] as const);
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return { status: statusCode, headers: Object.fromEntries(headers), url: shown.href };
}

export function createWire(options: ConnectionOptions, timeouts: Timeouts): Wire {
  const connections = openConnections(options);
  return {
    send: async ({ doing, ...hop }, sink, { signal }) => {
      try {
        return { kind: 'complete', head: await send(connections, hop, sink, { timeouts, signal }) };
      } catch (error) {
        if (!(error instanceof Broken)) throw error;
        return brokenOutcome(doing, hop.url, options.proxyOf(hop.url), error.cause);
      }
    },
    close: () => connections[Symbol.dispose](),
  };
}
