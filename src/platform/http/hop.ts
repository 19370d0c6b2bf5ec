/** One request to one address, as the connection layer takes it. */
import type { LeastRate } from './least-rate.ts';
import type { Headers } from './message.ts';

/** Limits in milliseconds: for a connection, for the head of a response, between two parts of a body. */
export interface Timeouts {
  readonly connectMs: number;
  readonly headersMs: number;
  readonly idleMs: number;
  /** For one try of a small request as a whole, redirects and tokens included. */
  readonly smallMs: number;
  readonly leastRate: LeastRate;
}

export interface Hop {
  readonly doing: string;
  readonly url: URL;
  readonly method: 'GET' | 'HEAD' | 'POST';
  readonly headers: Headers;
  readonly body: string | undefined;
  /** Host that named this address: then it must not resolve to this machine or its link. */
  readonly namedBy: string | undefined;
  /** A large body is expected. */
  readonly bulk: boolean;
}

/** Marks errors of the connection, apart from those of the sink and the signal. */
export class Broken extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** For a limit that was exceeded; `code` is one of undici's. */
export function timedOut(code: string): Broken {
  return new Broken(Object.assign(new Error('timed out'), { code }));
}
