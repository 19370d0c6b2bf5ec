/** What goes over the wire, as data: requests, heads of responses, where a body goes, how an exchange can end. */
import type { CurlewError } from '../../core/errors.ts';

/** Names are in lower case; a header that came several times is joined by `, `. */
export type Headers = Readonly<Record<string, string>>;

export interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
  /** The address that answered at last, without user info. */
  readonly url: string;
}

/** A 401 of the host asked itself, and the authorisation that it refused. */
export interface Refusal {
  readonly head: ResponseHead;
  readonly sent: Headers | undefined;
}

/**
 * Headers that authorise a request. Called without a refusal before each request, and once more after a 401 of the host
 * asked itself; undefined then means that nothing better can be had.
 */
export type Authorize = (
  refusal: Refusal | undefined,
  options: { readonly signal: AbortSignal },
) => Promise<Headers | undefined>;

export interface HttpRequest {
  /** Beginning of every error message: what is being done and with what. */
  readonly doing: string;
  /** `http` or `https`; user info in it is sent as basic authorisation to that host alone. */
  readonly url: string;
  readonly method?: 'GET' | 'HEAD' | 'POST' | undefined;
  readonly headers?: Headers | undefined;
  readonly body?: string | undefined;
  readonly authorize?: Authorize | undefined;
  /** The address whose answer named this one; then the rules for redirects hold for the first hop already. */
  readonly via?: string | undefined;
}

/** Where a response goes. Both functions may throw: the exchange is cut and the error passed on. */
export interface Sink {
  readonly head: (head: ResponseHead) => void;
  /**
   * A part of the body. The bytes may be used until the call returns or, when it returns a promise, until that is
   * settled; reading pauses meanwhile. `false` means enough: the connection is cut, the exchange counts as complete.
   */
  readonly data: (chunk: Uint8Array) => Promise<void> | false | undefined;
}

/** How an exchange ended: with the whole response, or with a connection that could not be made or broke. */
export type Outcome =
  | { readonly kind: 'complete'; readonly head: ResponseHead }
  | {
      readonly kind: 'broken';
      readonly error: CurlewError;
      /** Asking again can help. */
      readonly retryable: boolean;
      /** The body stood still, or came too slowly: each try costs as long again. */
      readonly stalled: boolean;
      /** The peer speaks, but not TLS. */
      readonly notTls: boolean;
    };

/** Content-Length as a number, or undefined when it is absent or no number. */
export function contentLength({ headers }: ResponseHead): number | undefined {
  const text = headers['content-length'];
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  return Number(text);
}

interface CollectOptions {
  readonly limit: number;
  /** Of the body of an answer that is no success, which is cut there instead of failing. */
  readonly failureLimit: number;
  /** An answer to HEAD has no body, whatever it announces. */
  readonly method?: HttpRequest['method'];
  readonly tooLong: () => Error;
}

/** Collects a body of at most `limit` bytes; what is longer fails, before reading it where its length is announced. */
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
