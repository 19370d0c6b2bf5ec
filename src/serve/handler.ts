/** From a request to its answer: methods, rights, failures, and what is told of it afterwards. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asError, CurlewError } from '../core/errors.ts';
import { type Access, pathOf, shown } from './access.ts';
import { createBufferPool } from '../platform/limit/buffer-pool.ts';
import { type Answer, jsonAnswer, textAnswer } from './content.ts';
import { failureAnswer, statusOf } from './failure.ts';
import type { Metrics } from './metrics.ts';
import { createLines } from './line.ts';
import { parseRoute, type Route, type Routed } from './route.ts';
import { SEND_BUFFERS, sendAnswer } from './send.ts';
import type { Site } from './site.ts';
import { isAuthorized } from './token.ts';

export interface HandlerOptions {
  readonly site: Site;
  /** Whoever has it may post; undefined: nobody may. */
  readonly token: string | undefined;
  /** Address of this server as clients see it; by default what they say themselves. */
  readonly publicUrl: string | undefined;
  /** Version of curlew. */
  readonly tool: string;
  /** Most bytes of what is posted. */
  readonly bodyLimit: number;
  /** Bytes a second that a client takes of an answer at least. */
  readonly leastRate: number;
  readonly metrics: Metrics;
  /** Open connections. */
  readonly connections: () => number;
  readonly log: (access: Access) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface Handler {
  readonly handle: (request: IncomingMessage, response: ServerResponse) => void;
  /** Answers on their way. */
  readonly active: () => number;
  /** From now on every answer is the last one of its connection. */
  readonly drain: () => void;
}

const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

export function createHandler(options: HandlerOptions): Handler {
  const { metrics, now } = options;
  const buffers = createBufferPool(SEND_BUFFERS);
  let active = 0;
  let draining = false;
  const health = (): Answer => {
    const body = { is_alive: !draining, active_streams: active - 1, version: options.tool };
    return jsonAnswer(draining ? 503 : 200, body);
  };
  const counts = (): Answer => {
    const plans = options.site.plans();
    const gauges = {
      active_requests: ['Answers on their way.', active],
      connections: ['Open connections.', options.connections()],
      plans: ['Plans of bundles in memory.', plans.count],
      plan_bytes: ['Memory that these plans take.', plans.bytes],
      resident_memory_bytes: ['Memory of the process.', process.memoryUsage.rss()],
    } as const;
    const text = metrics.text(gauges);
    return { kind: 'text', status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', text };
  };
  const own = (route: Route): Answer | undefined => {
    if (route.kind === 'health') return health();
    return route.kind === 'metrics' ? counts() : undefined;
  };
  const lines = createLines();
  const respond = async (request: IncomingMessage, response: ServerResponse, job: Job): Promise<void> => {
    if (job.signal.aborted) return;
    const sent = (bytes: number): void => {
      job.firstByteMs ??= now() - job.start;
      job.bytes += bytes;
      metrics.sent(bytes);
    };
    const sending = { buffers, sent, gone: job.signal, leastRate: options.leastRate };
    if (draining || hasBody(request)) response.setHeader('Connection', 'close');
    try {
      const answer = await answerOf(request, job, { ...options, own });
      await sendAnswer(request, response, answer, sending);
    } catch (error) {
      if (statusOf(error) >= 500) job.error = describe(error);
      if (response.headersSent || response.destroyed) return;
      for (const name of response.getHeaderNames()) if (name !== 'connection') response.removeHeader(name);
      await sendAnswer(request, response, failureAnswer(error), sending);
    }
  };
  return {
    active: () => active,
    drain: () => {
      draining = true;
    },
    handle: (request, response) => {
      const routed = parseRoute(request.url ?? '');
      const gone = new AbortController();
      const remote = request.socket.remoteAddress ?? '';
      const job: Job = { start: now(), remote, routed, bytes: 0, signal: gone.signal };
      active += 1;
      const line = lines.of(request.socket);
      line.whenOver(response, () => {
        active -= 1;
        gone.abort();
        const ended = summary(request, response, job, now());
        metrics.answered({ ...ended, cut: ended.cut === true, firstByteMs: job.firstByteMs ?? ended.ms });
        options.log(ended);
      });
      // A connection that breaks is told by its close.
      response.on('error', () => undefined);
      line.run(async () =>
        respond(request, response, job).catch((error: unknown) => {
          job.error = describe(error);
          response.destroy();
        }),
      );
    },
  };
}

/** One request on its way. */
interface Job {
  readonly start: number;
  readonly remote: string;
  readonly routed: Routed;
  /** Fires when the client has gone. */
  readonly signal: AbortSignal;
  bytes: number;
  firstByteMs?: number;
  error?: string;
}

interface AnswerOptions extends Pick<HandlerOptions, 'site' | 'token' | 'publicUrl' | 'bodyLimit'> {
  /** What the server answers itself. */
  readonly own: (route: Route) => Answer | undefined;
}

async function answerOf(request: IncomingMessage, { routed, signal }: Job, options: AnswerOptions): Promise<Answer> {
  if (routed === 'bad') return textAnswer(400, 'this is no address\n');
  // A proxy before this server may have believed the other one.
  if (countOf(request, 'host') > 1) return textAnswer(400, 'more than one header Host\n');
  if (routed === 'unknown') return textAnswer(404, 'nothing is found here; / says what there is\n');
  const base = options.publicUrl ?? baseOf(request);
  if (base === undefined) return textAnswer(400, 'the header Host is no host\n');
  const { route, target } = routed;
  const asked = { route, query: target.query, base, signal };
  const isUpload = route.kind === 'installers' || route.kind === 'validate';
  const allowed = isUpload ? ['POST'] : ['GET', 'HEAD'];
  if (!allowed.includes(request.method ?? '')) {
    return textAnswer(405, `only ${allowed.join(' and ')} can be done here\n`, { Allow: allowed.join(', ') });
  }
  if (!isUpload) return options.own(route) ?? options.site.get(asked);
  const refused = refusal(request, options.token);
  if (refused !== undefined) return refused;
  const body = await readBody(request, options.bodyLimit);
  if (body === undefined) return textAnswer(413, `a spec has at most ${options.bodyLimit} bytes here\n`);
  return options.site.post(body, { ...asked, keep: route.kind === 'installers' });
}

/** How often a header was sent; Node keeps one of each. */
function countOf({ rawHeaders }: IncomingMessage, name: string): number {
  return rawHeaders.filter((text, index) => index % 2 === 0 && text.toLowerCase() === name).length;
}

function refusal({ headers }: IncomingMessage, token: string | undefined): Answer | undefined {
  if (token === undefined)
    return textAnswer(403, 'nothing can be put here: the server was started without --allow-post\n');
  if (isAuthorized(headers.authorization, token)) return undefined;
  return textAnswer(401, 'a token is needed: Authorization: Bearer TOKEN\n', { 'WWW-Authenticate': 'Bearer' });
}

/** What the client calls this server. */
function baseOf({ headers, socket }: IncomingMessage): string | undefined {
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  const host = headers.host ?? hostOf(socket);
  return HOST.test(host) ? `${scheme}://${host}` : undefined;
}

/** For a client that does not say whom it means, as those that look after a server's health: HTTP/1.0 lets it. */
function hostOf({ localAddress = 'localhost', localPort = 80 }: Socket): string {
  const address = localAddress.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '');
  return `${address.includes(':') ? `[${address}]` : address}:${localPort}`;
}

function describe(error: unknown): string {
  const { message, stack } = asError(error);
  return error instanceof CurlewError ? `${error.code} ${message}` : (stack ?? message);
}

function summary(request: IncomingMessage, response: ServerResponse, job: Job, end: number): Access {
  const { routed, start, remote, bytes, error } = job;
  const range = shown(request.headers.range);
  const agent = shown(request.headers['user-agent']);
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
 * Undefined when it has more than `limit` bytes, whatever was said of its length. The request stays open: its answer can
 * still be sent.
 */
export async function readBody(request: IncomingMessage, limit: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers['content-length'] ?? 0) > limit) return undefined;
  // Copied: each piece would keep a packet, and an object of its own for a single byte.
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

/** True for a request that brings a body along. */
function hasBody({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
