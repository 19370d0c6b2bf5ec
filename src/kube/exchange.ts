/** One request to an API server, and its whole response. */
import { CurlewError } from '../core/errors.ts';
import { collector, type ResponseHead } from '../platform/http/message.ts';
import { Broken } from '../platform/http/failure.ts';
import { send } from '../platform/http/wire.ts';
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

/**
 * Sends a request; returns the response whatever its status. Does not follow redirects. Rejects with Node's connection errors,
 * with the signal's reason, and with `CLUSTER_FAILED` for a response that is too long.
 */
export async function exchange(
  session: Session,
  { method, path, accept, contentType, body }: ServerRequest,
  { signal }: { readonly signal: AbortSignal },
): Promise<Answered> {
  const { server, connections } = session;
  const url = new URL(`${server.origin}${server.pathname.replace(/\/$/, '')}${path}`);
  const headers = {
    Accept: accept,
    'User-Agent': 'curlew',
    ...session.headers,
    // Node sends the length of a DELETE's body only if it is a header.
    ...(body === undefined ? {} : { 'Content-Type': contentType, 'Content-Length': String(Buffer.byteLength(body)) }),
  };
  const { sink, body: received } = collector({
    limit: ANSWER_LIMIT,
    failureLimit: FAILURE_LIMIT,
    tooLong: () => new TooLong('CLUSTER_FAILED', `the response is longer than ${ANSWER_LIMIT} bytes`),
  });
  try {
    const head = await send(connections, { url, method, headers, body }, sink, { signal });
    return { ...head, body: received() };
  } catch (error) {
    throw error instanceof Broken ? error.cause : error;
  }
}
