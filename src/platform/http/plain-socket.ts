/**
 * Receives a large body over plain HTTP/1.1 with one buffer that is used again and again: a quarter of the work that a
 * general client needs. It takes only what is beyond doubt: one request a connection, a well-formed head, a body whose
 * length is announced. Everything else is left to the general client, which asks again.
 */
import { connect } from 'node:net';
import { asError } from '../../core/errors.ts';
import type { Headers, ResponseHead, Sink } from './message.ts';
import { Broken, timedOut, type Hop, type Timeouts } from './hop.ts';

const BUFFER_SIZE = 512 * 1024;
const HEAD_LIMIT = 16 * 1024;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const END = '\r\n\r\n';

/** The request's text, or undefined when a header cannot be written as it is. */
function requestText({ url, headers }: Hop): string | undefined {
  const all = { ...headers, host: url.host, connection: 'close' };
  const rows = Object.entries(all);
  if (rows.some(([name, value]) => !NAME.test(name) || !VALUE.test(value))) return undefined;
  return `GET ${url.pathname}${url.search} HTTP/1.1\r\n${rows.map((row) => row.join(': ')).join('\r\n')}${END}`;
}

interface PlainHead {
  readonly head: ResponseHead;
  readonly length: number;
}

/** Reads a head, strictly; undefined for anything out of the ordinary. */
export function parseHead(text: string, url: string): PlainHead | undefined {
  const [first = '', ...lines] = text.split('\r\n');
  const status = Number(/^HTTP\/1\.1 ([2-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?$/.exec(first)?.[1] ?? 0);
  if (status === 0 || status === 204 || status === 304) return undefined;
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (!NAME.test(name) || !VALUE.test(value)) return undefined;
    headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
  }
  const { 'content-length': length = '', 'transfer-encoding': encoding } = headers;
  if (encoding !== undefined || !/^\d{1,15}$/.test(length)) return undefined;
  return { head: { status, headers: headers satisfies Headers, url }, length: Number(length) };
}

/** True when this hop may be taken here: plain http without anything between us and the host. */
export function isPlainHop({ url, method, body, namedBy, bulk }: Hop): boolean {
  return bulk && url.protocol === 'http:' && method === 'GET' && body === undefined && namedBy === undefined;
}

/**
 * Sends the request and feeds the sink. Undefined means that the general client must do it, and that the sink has seen
 * nothing. Rejects with {@link Broken} for the connection, otherwise with what the sink threw or the signal's reason.
 */
export async function plainGet(
  hop: Hop,
  sink: Sink,
  timeouts: Timeouts,
  { signal }: { readonly signal: AbortSignal },
): Promise<ResponseHead | undefined> {
  const request = requestText(hop);
  if (request === undefined) return undefined;
  return new Promise<ResponseHead | undefined>((resolve, reject) => {
    let state: 'going' | 'held' | 'over' = 'going';
    let head: ResponseHead | undefined;
    let early = '';
    let left = 0;
    let headTimer: NodeJS.Timeout | undefined;
    const finish = (act: () => void): void => {
      if (state === 'over') return;
      state = 'over';
      signal.removeEventListener('abort', cancelled);
      clearTimeout(headTimer);
      socket.destroy();
      act();
    };
    const fail = (error: unknown): void => finish(() => reject(asError(error)));
    const cancelled = (): void => fail(signal.reason);
    const late = (code: string): void => fail(timedOut(code));
    const settled = (): void => finish(() => resolve(head));
    const held = async (writing: Promise<void>): Promise<void> => {
      try {
        await writing;
        if (state !== 'held') return;
        if (left === 0) return settled();
        state = 'going';
        // Time stood still while the writer had the turn.
        socket.setTimeout(timeouts.idleMs);
        socket.resume();
      } catch (error) {
        fail(error);
      }
    };
    /** True to go on reading. What a server sends beyond the announced length is nobody's. */
    const deliver = (chunk: Uint8Array): boolean => {
      const bytes = chunk.byteLength > left ? chunk.subarray(0, left) : chunk;
      left -= bytes.byteLength;
      const writing = bytes.byteLength === 0 ? undefined : sink.data(bytes);
      if (writing === false || (writing === undefined && left === 0)) {
        settled();
        return false;
      }
      if (writing === undefined) return true;
      state = 'held';
      void held(writing);
      return false;
    };
    const receive = (size: number, buffer: Uint8Array): boolean => {
      if (state !== 'going') return false;
      const chunk = Buffer.from(buffer.buffer, buffer.byteOffset, size);
      try {
        if (head !== undefined) return deliver(chunk);
        const before = early.length;
        early += chunk.toString('latin1', 0, HEAD_LIMIT);
        const end = early.indexOf(END);
        const found = end === -1 ? undefined : parseHead(early.slice(0, end), hop.url.href);
        if (found === undefined) {
          if (end === -1 && early.length < HEAD_LIMIT) return true;
          settled();
          return false;
        }
        ({ head, length: left } = found);
        clearTimeout(headTimer);
        socket.setTimeout(timeouts.idleMs);
        sink.head(head);
        return deliver(chunk.subarray(end + END.length - before));
      } catch (error) {
        fail(error);
        return false;
      }
    };
    const { hostname, port } = hop.url;
    const socket = connect({
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? 80 : Number(port),
      noDelay: true,
      onread: { buffer: Buffer.allocUnsafeSlow(BUFFER_SIZE), callback: receive },
    });
    socket.setTimeout(timeouts.connectMs);
    socket.on('connect', () => {
      socket.setTimeout(0);
      // As a whole: one that came byte by byte would never be late.
      headTimer = setTimeout(late, timeouts.headersMs, 'UND_ERR_HEADERS_TIMEOUT');
      socket.write(request, 'latin1');
    });
    socket.on('timeout', () => {
      if (state === 'held') return;
      late(socket.connecting ? 'UND_ERR_CONNECT_TIMEOUT' : 'UND_ERR_BODY_TIMEOUT');
    });
    const broken = (error: Error): void => {
      // All bytes are here, and the writer still has the last of them.
      if (state === 'held' && left === 0) return;
      fail(new Broken(error));
    };
    const closed = (): void => broken(Object.assign(new Error('closed'), { code: 'UND_ERR_SOCKET' }));
    socket.on('error', broken);
    socket.on('end', closed);
    socket.on('close', closed);
    signal.addEventListener('abort', cancelled);
  });
}
