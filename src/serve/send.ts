/** Sends an answer: conditions, ranges, and bytes no faster than their reader takes them. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { asError } from '../core/errors.ts';
import type { BufferPool } from '../platform/limit/buffer-pool.ts';
import { judge } from './conditions.ts';
import { contentRange, dataContent, multipartBody, type Answer, type Body, type Content } from './content.ts';

/** Larger chunks would be no faster, and this many bytes are held twice for every client. */
const CHUNK = 128 << 10;
/** Of the memory that goes round between all answers. */
export const SEND_BUFFERS = { size: CHUNK, mostFree: 32 } as const;
/** Bytes of one answer that are read and not yet taken by the network. */
const AHEAD = 2 * CHUNK;

export interface SendOptions {
  readonly buffers: BufferPool;
  /** Fires when the client has gone. */
  readonly gone: AbortSignal;
  /** Bytes a second: whoever takes less is cut off. */
  readonly leastRate: number;
  /** Is told of every chunk that has left. */
  readonly sent: (bytes: number) => void;
}

/**
 * Resolves when the answer has left, or its reader has gone. A content that cannot be read to its end cuts the
 * connection, since its length was promised, and the error is thrown.
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
  const verdict = judge(request.method ?? '', request.headers, content);
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

/** Nothing is said before the first bytes are there: a failure until then can still be told. */
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
  const outlet = createOutlet(response, { ...options, status });
  try {
    for (const part of parts) {
      if (part.kind === 'bytes') {
        await outlet.push(part.data);
        continue;
      }
      const { offset, length } = part.range;
      const reading = { signal: gone, allocate: options.buffers.allocate };
      for await (const chunk of content.read(offset, length, reading)) await outlet.push(chunk);
    }
    // An answer that has ended counts as sent, though some of it may still wait here: a server that stops would cut it.
    await outlet.settle();
    response.end();
  } catch (error) {
    // Whoever has left needs nothing; whoever still waits must not take a part for the whole.
    if (gone.aborted) return;
    if (response.headersSent) response.destroy();
    throw asError(error);
  }
}

interface Outlet {
  /** Takes some bytes; resolves when there is room for more. */
  readonly push: (bytes: Uint8Array) => Promise<void>;
  /** Resolves when the network has taken all of them. */
  readonly settle: () => Promise<void>;
}

/**
 * The next chunk is read while the last one is on its way. A reader that takes some bytes now and then is not idle to Node: only
 * the least rate ends its hold on a connection.
 */
function createOutlet(
  response: ServerResponse,
  { buffers, sent, gone, leastRate, status }: SendOptions & { readonly status: number },
): Outlet {
  let waiting = 0;
  let wake: () => void = () => undefined;
  const until = async (isSo: () => boolean): Promise<void> => {
    while (!isSo() && !gone.aborted) {
      const late = setTimeout(() => response.destroy(), (AHEAD / leastRate) * 1000);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      clearTimeout(late);
    }
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
