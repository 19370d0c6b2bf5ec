/** One request to an API server, and its whole response. */
import { CurlewError } from '../core/errors.ts';
import { collector, type ResponseHead } from '../platform/http/message.ts';
import { Broken } from '../platform/http/failure.ts';
import { send } from '../platform/http/wire.ts';
import type { Session } from './session.ts';

export interface ServerRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Relative to the server's path. */
  readonly path: string;
  /** JSON. */
  readonly body: string | undefined;
}

export interface Answered extends ResponseHead {
  readonly body: Buffer;
}

/** A ConfigMap is at most 1 MiB, which JSON may escape to six times the size. */
const ANSWER_LIMIT = 16 << 20;
/** Error responses of an API server have a few hundred bytes. */
const FAILURE_LIMIT = 64 << 10;

/**
 * Sends a request; returns the response whatever its status. Does not follow redirects. Rejects with Node's connection errors,
 * with the signal's reason, and with `CLUSTER_FAILED` for a response that is too long.
 */
export async function exchange(
  session: Session,
  { method, path, body }: ServerRequest,
  { signal }: { readonly signal: AbortSignal },
): Promise<Answered> {
  const { server, connections } = session;
  const url = new URL(`${server.origin}${server.pathname.replace(/\/$/, '')}${path}`);
  const headers = {
    Accept: 'application/json',
    'User-Agent': 'curlew',
    ...session.headers,
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const { sink, body: received } = collector({
    limit: ANSWER_LIMIT,
    failureLimit: FAILURE_LIMIT,
    tooLong: () => new CurlewError('CLUSTER_FAILED', `the response is longer than ${ANSWER_LIMIT} bytes`),
  });
  try {
    const head = await send(connections, { url, method, headers, body }, sink, { signal });
    return { ...head, body: received() };
  } catch (error) {
    throw error instanceof Broken ? error.cause : error;
  }
}
