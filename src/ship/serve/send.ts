/** Sends a response: conditions, ranges, and bytes with backpressure. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asError } from '../../core/errors.ts';
import type { BufferPool } from '../../platform/limit/buffer-pool.ts';
import { evaluate } from './conditions.ts';
import { contentRange, dataContent, multipartBody, type Answer, type Body, type Content } from './content.ts';

/** Larger chunks are not faster, and each client needs two of them in memory. */
const CHUNK = 128 << 10;
/** Buffers shared by all responses. */
export const SEND_BUFFERS = { size: CHUNK, maxFree: 32 } as const;
/** Maximum bytes of one response that are read, but not yet sent. */
const AHEAD = 2 * CHUNK;

export interface SendOptions {
  readonly buffers: BufferPool;
  /** Aborted when the client has disconnected. */
  readonly gone: AbortSignal;
  /** Minimum bytes per second: slower clients are disconnected. */
  readonly minRate: number;
  /** Called for every sent chunk. */
  readonly sent: (bytes: number) => void;
  readonly waits: Waits;
}

/** Responses that wait for their clients to read, and since when in milliseconds; the longest wait is first. */
export interface Waits {
  /** Begins the wait of a response again. */
  readonly begin: (response: ServerResponse) => void;
  readonly end: (response: ServerResponse) => void;
  /** Closes the connection of the longest wait if it has lasted this long; false: there is none. */
  readonly cut: (leastMs: number) => boolean;
}

export function createWaits(now: () => number): Waits {
  const since = new Map<ServerResponse, number>();
  const end: Waits['end'] = (response) => void since.delete(response);
  return {
    begin: (response) => {
      end(response);
      since.set(response, now());
    },
    end,
    cut: (leastMs) => {
      const [longest] = since;
      if (longest === undefined || now() - longest[1] < leastMs) return false;
      end(longest[0]);
      longest[0].destroy();
      return true;
    },
  };
}

/**
 * Resolves when the response is sent, or the client has disconnected. If a content cannot be read completely, closes the
 * connection, because Content-Length is already sent, and throws the error.
 */
export async function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  options: SendOptions,
): Promise<void> {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  if (answer.kind === 'content') {
    await sendContent(request, response, answer.content, options);
    return;
  }
  const { status, type, text, headers = {} } = answer;
  for (const [name, value] of Object.entries({ 'Content-Type': type, ...headers })) response.setHeader(name, value);
  const { content } = dataContent(Buffer.from(text), { etag: '', type, cache: 'ask' });
  await sendWhole(request, response, { content, status }, options);
}

async function sendWhole(
  request: IncomingMessage,
  response: ServerResponse,
  { content, status }: Omit<Sendable, 'body'>,
  options: SendOptions,
): Promise<void> {
  const { size } = content;
  const body = { parts: [{ kind: 'range', range: { offset: 0, length: size } }], length: size } as const;
  await sendBody(request, response, { content, body, status }, options);
}

async function sendContent(
  request: IncomingMessage,
  response: ServerResponse,
  content: Content,
  options: SendOptions,
): Promise<void> {
  const { etag, size, type, fileName, cache, headers = {} } = content;
  response.setHeader('ETag', etag);
  response.setHeader('Accept-Ranges', 'bytes');
  response.setHeader('Cache-Control', cache === 'forever' ? 'public, max-age=31536000, immutable' : 'no-cache');
  if (fileName !== undefined) response.setHeader('Content-Disposition', `attachment; filename="${fileName}"`);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  const verdict = evaluate(request.method ?? '', request.headers, content);
  switch (verdict.status) {
    case 304:
      response.writeHead(304).end();
      return;
    case 412:
    case 416:
      if (verdict.status === 416) response.setHeader('Content-Range', `bytes */${size}`);
      response.removeHeader('Content-Disposition');
      response.writeHead(verdict.status, { 'Content-Length': 0 }).end();
      return;
    case 200: {
      response.setHeader('Content-Type', type);
      await sendWhole(request, response, { content, status: 200 }, options);
      return;
    }
    case 206: {
      const { body, type: partType, place } = rangedBody(verdict.ranges, content);
      if (place !== undefined) response.setHeader('Content-Range', place);
      response.setHeader('Content-Type', partType);
      await sendBody(request, response, { content, body, status: 206 }, options);
    }
  }
}

function rangedBody(
  ranges: Parameters<typeof multipartBody>[0],
  { size, type }: Content,
): { readonly body: Body; readonly type: string; readonly place: string | undefined } {
  const [range, ...more] = ranges;
  if (range !== undefined && more.length === 0) {
    const body: Body = { parts: [{ kind: 'range', range }], length: range.length };
    return { body, type, place: contentRange(range, size) };
  }
  const boundary = randomBytes(18).toString('hex');
  const body = multipartBody(ranges, { size, type, boundary });
  return { body, type: `multipart/byteranges; boundary=${boundary}`, place: undefined };
}

interface Sendable {
  readonly content: Content;
  readonly body: Body;
  readonly status: number;
}

/** Sends the head together with the first bytes, so that an earlier failure can still be reported. */
async function sendBody(
  { method }: IncomingMessage,
  response: ServerResponse,
  { content, body: { parts, length }, status }: Sendable,
  options: SendOptions,
): Promise<void> {
  response.setHeader('Content-Length', length);
  if (method === 'HEAD' || length === 0) {
    response.writeHead(status).end();
    return;
  }
  const { gone } = options;
  const writer = createWriter(response, { ...options, status });
  try {
    for (const part of parts) {
      if (part.kind === 'bytes') {
        await writer.push(part.data);
        continue;
      }
      const { offset, length } = part.range;
      const reading = { signal: gone, allocate: options.buffers.allocate };
      for await (const chunk of content.read(offset, length, reading)) await writer.push(chunk);
    }
    // Node counts an ended response as sent although bytes may be buffered, which a stopping server would drop.
    await writer.settle();
    response.end();
  } catch (error) {
    // A connected client must not take a part for the whole.
    if (gone.aborted) return;
    if (response.headersSent) response.destroy();
    throw asError(error);
  }
}

interface ResponseWriter {
  /** Writes bytes; resolves when more can be written. */
  readonly push: (bytes: Uint8Array) => Promise<void>;
  /** Resolves when all bytes are sent. */
  readonly settle: () => Promise<void>;
}

/**
 * The next chunk is read while the last one is being sent. For Node, a client that reads a few bytes now and then is not idle:
 * only the minimum rate disconnects it, and another client that needs its place.
 */
function createWriter(
  response: ServerResponse,
  { buffers, sent, gone, minRate, waits, status }: SendOptions & { readonly status: number },
): ResponseWriter {
  let waiting = 0;
  let wake: () => void = () => undefined;
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo() && !gone.aborted) {
      waits.begin(response);
      const late = setTimeout(() => response.destroy(), (AHEAD / minRate) * 1000);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      clearTimeout(late);
    }
    waits.end(response);
    gone.throwIfAborted();
  };
  gone.addEventListener('abort', () => wake(), { once: true });
  return {
    push: async (bytes) => {
      for (let at = 0; at < bytes.byteLength; at += CHUNK) {
        const chunk = bytes.subarray(at, at + CHUNK);
        if (!response.headersSent) response.writeHead(status);
        waiting += chunk.byteLength;
        response.write(chunk, (error) => {
          waiting -= chunk.byteLength;
          buffers.giveBack(chunk);
          if (error === null || error === undefined) sent(chunk.byteLength);
          wake();
        });
        await until(() => waiting < AHEAD);
      }
    },
    settle: async () => until(() => waiting === 0),
  };
}
