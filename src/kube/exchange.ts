/** One request to an API server and its answer, whole. */
import { CurlewError } from '../core/errors.ts';
import { collector, type ResponseHead } from '../platform/http/message.ts';
import { Broken } from '../platform/http/failure.ts';
import { send } from '../platform/http/wire.ts';
import type { Session } from './session.ts';

export interface Asking {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Below the server's own path. */
  readonly path: string;
  /** JSON. */
  readonly body: string | undefined;
}

export interface Answered extends ResponseHead {
  readonly body: Buffer;
}

/** A ConfigMap is 1 MiB at most, which JSON may write six times as long. */
const ANSWER_LIMIT = 16 << 20;
/** What an API server says of a failure has a few hundred bytes. */
const FAILURE_LIMIT = 64 << 10;

/**
 * Sends a request; whatever its status, the answer comes back. Redirects are answers like any other. Rejects with Node's errors
 * of a connection, with the signal's reason, and with `CLUSTER_FAILED` for an answer that is too long.
 */
export async function exchange(
  session: Session,
  { method, path, body }: Asking,
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
    tooLong: () => new CurlewError('CLUSTER_FAILED', `the answer is longer than ${ANSWER_LIMIT} bytes`),
  });
  try {
    const head = await send(connections, { url, method, headers, body }, sink, { signal });
    return { ...head, body: received() };
  } catch (error) {
    throw error instanceof Broken ? error.cause : error;
  }
}
