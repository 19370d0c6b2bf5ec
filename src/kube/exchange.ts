/** One request and its answer, whole. */
import { request as requestPlain, type IncomingMessage } from 'node:http';
import { request as requestSecure } from 'node:https';
import { CurlewError } from '../core/errors.ts';
import type { Headers } from '../platform/http/message.ts';
import type { Session } from './session.ts';

export interface Asking {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the server's own path. */
  readonly path: string;
  /** JSON. */
  readonly body: string | undefined;
}

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** A ConfigMap is 1 MiB at most, which JSON may write six times as long. */
const ANSWER_LIMIT = 16 << 20;

/**
 * Sends a request; whatever its status, the answer comes back. Redirects are answers like any other. Rejects with Node's errors
 * of a connection, with the signal's reason, and with `CLUSTER_FAILED` for an answer that is too long.
 */
export async function exchange(
  session: Session,
  { method, path, body }: Asking,
  { signal }: { readonly signal: AbortSignal },
): Promise<Answered> {
  const { server, agent, headers } = session;
  const send = server.protocol === 'https:' ? requestSecure : requestPlain;
  signal.throwIfAborted();
  const content = body === undefined ? undefined : Buffer.from(body);
  return new Promise<Answered>((resolve, reject) => {
    // Node reports nothing of a request that is ended before it has a connection.
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    const asked = send({
      agent,
      host: server.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: server.port === '' ? undefined : server.port,
      method,
      path: `${server.pathname.replace(/\/$/, '')}${path}`,
      headers: {
        Accept: 'application/json',
        'User-Agent': 'curlew',
        ...headers,
        ...(content === undefined
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': String(content.byteLength) }),
      } as Record<string, string | string[]>,
      signal,
    });
    asked.on('error', (error) => {
      // An idle connection may end just when it is used again: what only asks is asked once more.
      if (asked.reusedSocket && method === 'GET' && isReset(error)) {
        resolve(exchange(session, { method, path, body }, { signal }));
      } else reject(error);
    });
    asked.on('upgrade', (answer, socket) => {
      socket.destroy();
      resolve({ status: answer.statusCode ?? 0, headers: {}, body: Buffer.alloc(0) });
    });
    asked.on('response', (answer) => {
      collect(answer).then(resolve, (error: unknown) => {
        answer.destroy();
        reject(error);
      });
    });
    asked.end(content);
  });
}

async function collect(answer: IncomingMessage): Promise<Answered> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of answer as AsyncIterable<Uint8Array>) {
    size += part.byteLength;
    if (size > ANSWER_LIMIT) throw new CurlewError('CLUSTER_FAILED', `the answer is longer than ${ANSWER_LIMIT} bytes`);
    parts.push(part);
  }
  const rows = Object.entries(answer.headers).map(([name, value]) => [name, String(value ?? '')] as const);
  return { status: answer.statusCode ?? 0, headers: Object.fromEntries(rows), body: Buffer.concat(parts) };
}

function isReset(error: Error & { readonly code?: string }): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}
