/** HTTP exchanges as data: requests, response heads, receivers of bodies, outcomes. */
import type { Cancellable } from '../../core/cancellable.ts';
import type { CurlewError } from '../../core/errors.ts';

/** Names are in lower case; repeated headers are joined by `, `. */
export type Headers = Readonly<Record<string, string>>;

export interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
  /** The address that sent the final response, without user info. */
  readonly url: string;
}

/** A 401 of the requested host, and the authorization that it refused. */
export interface HttpRefusal {
  readonly head: ResponseHead;
  readonly sent: Headers | undefined;
}

/**
 * Headers that authorize a request. Called without a refusal before each request, and once more after a 401 of the requested
 * host; undefined then means that no better headers exist.
 */
export type Authorize = (refusal: HttpRefusal | undefined, options: Cancellable) => Promise<Headers | undefined>;

export interface HttpRequest {
  /** Beginning of every error message: the operation and its object. */
  readonly doing: string;
  /** `http` or `https`; user info in it is sent as basic authorization to that host only. */
  readonly url: string;
  readonly method?: 'GET' | 'HEAD' | 'POST' | undefined;
  readonly headers?: Headers | undefined;
  readonly body?: string | undefined;
  readonly authorize?: Authorize | undefined;
  /** The address whose response named this one; the rules for redirects then also apply to the first hop. */
  readonly via?: string | undefined;
}

/** Receives a response. If a function throws, the exchange is aborted with that error. */
export interface Sink {
  readonly head: (head: ResponseHead) => void;
  /**
   * A chunk of the body. The bytes are valid until the call returns or, if it returns a promise, until that settles; reading
   * pauses meanwhile. `false` means enough: the connection is closed, and the exchange counts as complete.
   */
  readonly data: (chunk: Uint8Array) => Promise<void> | false | undefined;
}

/** How an exchange ended: with the whole response, or with a connection that failed or broke. */
export type HttpOutcome =
  | { readonly kind: 'complete'; readonly head: ResponseHead }
  | {
      readonly kind: 'broken';
      readonly error: CurlewError;
      /** A retry can help. */
      readonly retryable: boolean;
      /** The body stalled or was too slow: each retry may take as long again. */
      readonly stalled: boolean;
      /** The peer answers, but not with TLS. */
      readonly notTls: boolean;
    };

/** Content-Length as a number, or undefined if it is absent or not a number. */
export function contentLength({ headers }: ResponseHead): number | undefined {
  const text = headers['content-length'];
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}

interface CollectOptions {
  readonly limit: number;
  /** Limit of an error response's body, which is truncated there instead of failing. */
  readonly failureLimit: number;
  /** A response to HEAD has no body, regardless of its Content-Length. */
  readonly method?: HttpRequest['method'];
  readonly tooLong: () => Error;
}

/** Collects a body of at most `limit` bytes; a longer body fails, before it is read if its length is announced. */
export function collector({ limit, failureLimit, method, tooLong }: CollectOptions): {
  readonly sink: Sink;
  readonly body: () => Buffer;
} {
  let parts: Uint8Array[] = [];
  let size = 0;
  let cutAt = limit;
  let failing = false;
  return {
    body: () => Buffer.concat(parts).subarray(0, cutAt),
    sink: {
      head: (head) => {
        parts = [];
        size = 0;
        failing = head.status >= 300;
        cutAt = failing ? Math.min(limit, failureLimit) : limit;
        if (!failing && method !== 'HEAD' && (contentLength(head) ?? 0) > limit) throw tooLong();
      },
      data: (chunk) => {
        size += chunk.byteLength;
        if (size > cutAt && !failing) throw tooLong();
        parts.push(Uint8Array.from(chunk));
        return size > cutAt ? false : undefined;
      },
    },
  };
}
