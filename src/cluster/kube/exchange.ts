/** One request to an API server, and its whole response. */
import { StringDecoder } from 'node:string_decoder';
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import { collector, type ResponseHead, type Sink } from '../../platform/http/message.ts';
import { Broken } from '../../platform/http/failure.ts';
import { send } from '../../platform/http/wire.ts';
import type { Session } from './session.ts';

export interface ServerRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Relative to the server's path. */
  readonly path: string;
  readonly accept: string;
  /** Type of the body. */
  readonly contentType: string;
  readonly body: string | undefined;
}

export interface Answered extends ResponseHead {
  readonly body: Buffer;
}

/** A response that is longer than the limit. */
export class TooLong extends CurlewError {}

/** An object is at most 1.5 MiB in etcd, which JSON may escape to six times the size; pages of lists have fewer than 500. */
const ANSWER_LIMIT = 32 << 20;
/** Error responses of an API server have a few hundred bytes; a conflict lists each field. */
const FAILURE_LIMIT = 1 << 20;
/** One event of a watch has one object. */
const LINE_LIMIT = 10 << 20;

/**
 * Sends a request; returns the response whatever its status. Does not follow redirects. Rejects with Node's connection errors,
 * with the signal's reason, and with `CLUSTER_FAILED` for a response that is too long.
 */
export async function exchange(session: Session, request: ServerRequest, { signal }: Cancellable): Promise<Answered> {
  const { sink, body } = wholeBody();
  const head = await sendTo(session, request, { sink, signal });
  return { ...head, body: body() };
}

/** {@link exchange} for a response whose lines are passed on as they arrive, until it ends. The body is that of a failure. */
export async function streamLines(
  session: Session,
  request: ServerRequest,
  { signal, onData, onLine }: LineOptions,
): Promise<Answered> {
  const { sink, body } = wholeBody();
  const decoder = new StringDecoder('utf8');
  let isFailure = false;
  let rest = '';
  const lines: Sink = {
    head: (head) => {
      isFailure = head.status < 200 || head.status >= 300;
      sink.head(head);
    },
    data: (chunk) => {
      onData();
      if (isFailure) return sink.data(chunk);
      const parts = `${rest}${decoder.write(Buffer.from(chunk))}`.split('\n');
      rest = parts.pop() ?? '';
      if (rest.length > LINE_LIMIT) {
        throw new TooLong('CLUSTER_FAILED', `a line of the response is longer than ${LINE_LIMIT} characters`);
      }
      for (const line of parts) if (line !== '') onLine(line);
      return undefined;
    },
  };
  const head = await sendTo(session, request, { sink: lines, signal });
  return { ...head, body: body() };
}

export interface LineOptions extends Cancellable {
  /** Called for all data, also within a line. */
  readonly onData: () => void;
  /** An error that it throws ends the response. */
  readonly onLine: (line: string) => void;
}

function wholeBody(): ReturnType<typeof collector> {
  return collector({
    limit: ANSWER_LIMIT,
    failureLimit: FAILURE_LIMIT,
    tooLong: () => new TooLong('CLUSTER_FAILED', `the response is longer than ${ANSWER_LIMIT} bytes`),
  });
}

async function sendTo(
  { server, connections, headers: sessionHeaders }: Session,
  { method, path, accept, contentType, body }: ServerRequest,
  { sink, signal }: { readonly sink: Sink; readonly signal: AbortSignal },
): Promise<ResponseHead> {
  const url = new URL(`${server.origin}${server.pathname.replace(/\/$/, '')}${path}`);
  const headers = {
    Accept: accept,
    'User-Agent': 'curlew',
    ...sessionHeaders,
    // Node sends the length of a DELETE's body only if it is a header.
    ...(body === undefined ? {} : { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)) }),
  };
  try {
    return await send(connections, { url, method, headers, body }, sink, { signal });
  } catch (error) {
    throw error instanceof Broken ? error.cause : error;
  }
}
