/** Handles requests: methods, authorization, failures, metrics and the log. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { asError, CurlewError } from '../../core/errors.ts';
import { type Access, pathOf, loggable } from './access.ts';
import { createBufferPool } from '../../platform/limit/buffer-pool.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { type Answer, jsonAnswer, textAnswer } from './content.ts';
import { failureAnswer, inRegistryFormat, statusOf } from './failure.ts';
import type { Metrics } from './metrics.ts';
import { isRegistryPath, parseRoute, type Route, type Routed } from './route.ts';
import { createWaits, SEND_BUFFERS, sendAnswer } from './send.ts';
import type { Site } from './site.ts';
import { isAuthorized } from './token.ts';

export interface HandlerOptions {
  readonly site: Site;
  /** Token for POST; undefined disables POST. */
  readonly token: string | undefined;
  /** Address of this server as clients see it; default is their Host header. */
  readonly publicUrl: string | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Maximum bytes of a posted body. */
  readonly bodyLimit: number;
  /** Minimum rate at which a client must read a response, in bytes per second. */
  readonly minRate: number;
  readonly metrics: Metrics;
  /** Open connections. */
  readonly connections: () => number;
  readonly log: (access: Access) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface Handler {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Number of running responses. */
  readonly active: () => number;
  /** From now on each response closes its connection. */
  readonly drain: () => void;
  /** Closes the connection of the client that has read nothing for longest; false if each has read something lately. */
  readonly makeRoom: () => boolean;
}

/** The network takes bytes in bursts of up to a third of its buffers, so a client of 50 KB/s may seem to rest for this time. */
const UNREAD_MS = 30_000;

const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

export function createHandler(options: HandlerOptions): Handler {
  const { metrics, now } = options;
  const buffers = createBufferPool(SEND_BUFFERS);
  const waits = createWaits(now);
  let active = 0;
  let draining = false;
  const health = (): Answer => {
    const body = { is_alive: !draining, active_streams: active - 1, version: options.tool };
    return jsonAnswer(draining ? 503 : 200, body);
  };
  const counts = (): Answer => {
    const plans = options.site.plans();
    const gauges = {
      active_requests: ['Responses in progress.', active],
      connections: ['Open connections.', options.connections()],
      plans: ['Bundle plans in memory.', plans.count],
      plan_bytes: ['Memory of these plans.', plans.bytes],
      resident_memory_bytes: ['Memory of the process.', process.memoryUsage.rss()],
    } as const;
    const text = metrics.text(gauges);
    return { kind: 'text', status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', text };
  };
  const own = (route: Route): Answer | undefined => {
    if (route.kind === 'health') return health();
    return route.kind === 'metrics' ? counts() : undefined;
  };
  const queues = createRequestQueues();
  const respond = async (request: IncomingMessage, response: ServerResponse, job: Job): Promise<void> => {
    if (job.signal.aborted) return;
    const sent = (bytes: number): void => {
      job.firstByteMs ??= now() - job.start;
      job.bytes += bytes;
      metrics.sent(bytes);
    };
    const sending = { buffers, sent, gone: job.signal, minRate: options.minRate, waits };
    const format = isRegistryPath(request.url ?? '') ? inRegistryFormat : (answer: Answer): Answer => answer;
    if (draining || hasBody(request)) response.setHeader('Connection', 'close');
    try {
      const answer = await answerOf(request, job, { ...options, own });
      await sendAnswer(request, response, format(answer), sending);
    } catch (error) {
      if (statusOf(error) >= 500) job.error = describe(error);
      if (response.headersSent || response.destroyed) return;
      for (const name of response.getHeaderNames()) if (name !== 'connection') response.removeHeader(name);
      await sendAnswer(request, response, format(failureAnswer(error)), sending);
    }
  };
  return {
    active: () => active,
    drain: () => {
      draining = true;
    },
    makeRoom: () => waits.cut(UNREAD_MS),
    handle: (request, response) => {
      const routed = parseRoute(request.url ?? '');
      const gone = new AbortController();
      const remote = request.socket.remoteAddress ?? '';
      const job: Job = { start: now(), remote, routed, bytes: 0, signal: gone.signal };
      active += 1;
      const queue = queues.of(request.socket);
      queue.whenOver(response, () => {
        active -= 1;
        gone.abort();
        const ended = summary(request, response, job, now());
        metrics.answered({ ...ended, cut: ended.cut === true, firstByteMs: job.firstByteMs ?? ended.ms });
        options.log(ended);
      });
      // The close event handles broken connections.
      response.on('error', () => undefined);
      queue.run(async () =>
        respond(request, response, job).catch((error: unknown) => {
          job.error = describe(error);
          response.destroy();
        }),
      );
    },
  };
}

/** A running request. */
interface Job {
  readonly start: number;
  readonly remote: string;
  readonly routed: Routed;
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
  bytes: number;
  firstByteMs?: number;
  error?: string;
}

interface AnswerOptions extends Pick<HandlerOptions, 'site' | 'token' | 'publicUrl' | 'bodyLimit'> {
  /** Responses that do not depend on the site. */
  readonly own: (route: Route) => Answer | undefined;
}

async function answerOf(request: IncomingMessage, { routed, signal }: Job, options: AnswerOptions): Promise<Answer> {
  if (routed === 'bad') return textAnswer(400, 'invalid address\n');
  // A proxy in front of this server may have used the other one.
  if (countOf(request, 'host') > 1) return textAnswer(400, 'more than one Host header\n');
  const isRead = ['GET', 'HEAD'].includes(request.method ?? '');
  // What clients of registries push to has addresses that only a push has.
  if (!isRead && isRegistryPath(request.url ?? '')) return notAllowed(['GET', 'HEAD']);
  if (routed === 'unknown') return textAnswer(404, 'not found; see / for valid addresses\n');
  const base = options.publicUrl ?? baseOf(request);
  if (base === undefined) return textAnswer(400, 'the Host header is not valid\n');
  const { route, target } = routed;
  const html = /\btext\/html\b/.test(request.headers.accept ?? '');
  const siteRequest = { route, query: target.query, base, html, signal };
  const isUpload = route.kind === 'installers' || route.kind === 'validate';
  if (isUpload ? request.method !== 'POST' : !isRead) return notAllowed(isUpload ? ['POST'] : ['GET', 'HEAD']);
  if (!isUpload) return options.own(route) ?? options.site.get(siteRequest);
  const refused = refusal(request, options.token);
  if (refused !== undefined) return refused;
  const body = await readBody(request, options.bodyLimit);
  if (body === undefined) return textAnswer(413, `a spec must not exceed ${options.bodyLimit} bytes\n`);
  return options.site.post(body, { ...siteRequest, keep: route.kind === 'installers' });
}

function notAllowed(allowed: readonly string[]): Answer {
  return textAnswer(405, `only ${allowed.join(' and ')} allowed\n`, { Allow: allowed.join(', ') });
}

/** Number of occurrences of a header; Node's `headers` has only one of each. */
function countOf({ rawHeaders }: IncomingMessage, name: string): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

function refusal({ headers }: IncomingMessage, token: string | undefined): Answer | undefined {
  if (token === undefined)
    return textAnswer(403, 'uploads are disabled: the server was started without --allow-post\n');
  if (isAuthorized(headers.authorization, token)) return undefined;
  return textAnswer(401, 'authorization required: Authorization: Bearer TOKEN\n', { 'WWW-Authenticate': 'Bearer' });
}

/** This server's address according to the client. */
function baseOf({ headers, socket }: IncomingMessage): string | undefined {
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  const host = headers.host ?? hostOf(socket);
  return HOST.test(host) ? `${scheme}://${host}` : undefined;
}

/** For a client without Host header, such as HTTP/1.0 health checks. */
function hostOf({ localAddress = 'localhost', localPort = 80 }: Socket): string {
  const address = localAddress.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return `${address.includes(':') ? `[${address}]` : address}:${localPort}`;
}

function describe(error: unknown): string {
  const { message, stack } = asError(error);
  if (!(error instanceof CurlewError)) return stack ?? message;
  return `${error.code} ${message}${error.hint === undefined ? '' : ` (${error.hint})`}`;
}

function summary(request: IncomingMessage, response: ServerResponse, job: Job, end: number): Access {
  const { routed, start, remote, bytes, error } = job;
  const range = loggable(request.headers.range);
  const agent = loggable(request.headers['user-agent']);
  return {
    time: new Date(start).toISOString(),
    remote,
    method: request.method ?? '',
    path: pathOf(request.url ?? ''),
    route: typeof routed === 'string' ? routed : routed.route.kind,
    status: response.headersSent ? response.statusCode : 499,
    bytes,
    ms: end - start,
    ...(range === undefined ? {} : { range }),
    ...(agent === undefined ? {} : { agent }),
    ...(response.writableFinished ? {} : { cut: true as const }),
    ...(error === undefined ? {} : { error }),
  };
}

/**
 * Undefined if the body has more than `limit` bytes, regardless of Content-Length. The request stays open, so that a response can
 * be sent.
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return undefined;
  // Copies the chunks: a chunk of one byte would otherwise keep a whole packet and an object in memory.
  const body = Buffer.allocUnsafeSlow(limit);
  let size = 0;
  return new Promise((resolve, reject) => {
    request.on('data', (part: Uint8Array) => {
      if (size + part.byteLength <= limit) {
        body.set(part, size);
        size += part.byteLength;
        return;
      }
      request.pause();
      resolve(undefined);
    });
    request.once('end', () => resolve(body.subarray(0, size)));
    request.once('error', reject);
  });
}

/** True for a request with a body. */
function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

interface RequestQueue {
  /** Runs `work` after all previous work of the connection, in a new iteration of the event loop. */
  readonly run: (work: () => Promise<void>) => void;
  /** Calls `over` once, when the response is sent or the connection is closed: a queued response gets no close event. */
  readonly whenOver: (response: ServerResponse, over: () => void) => void;
}

/**
 * Handles the requests of one connection sequentially, each in a separate iteration of the event loop, so that a client that
 * sends a thousand requests at once gets no more memory and time than others. Otherwise responses that are sent without
 * waiting would follow each other before other connections are served.
 */
function createRequestQueues(): { readonly of: (socket: Socket) => RequestQueue } {
  const queues = new WeakMap<Socket, RequestQueue>();
  return {
    of: (socket) => {
      const queue = queues.get(socket) ?? createQueue(socket);
      queues.set(socket, queue);
      return queue;
    },
  };
}

function createQueue(socket: Socket): RequestQueue {
  const mutex = createSemaphore(1);
  const waiting = new Set<() => void>();
  socket.once('close', () => {
    for (const end of waiting) end();
  });
  return {
    run: (work) => {
      void mutex.run(async () => {
        await setImmediate();
        await work();
      });
    },
    whenOver: (response, over) => {
      const end = (): void => {
        if (waiting.delete(end)) over();
      };
      waiting.add(end);
      response.once('close', end);
    },
  };
}
