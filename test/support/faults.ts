/** Ways in which servers fail, for `startServer`, `serveFiles` and `startRegistry`. */
import { bytesOf, type Asked, type Fault, type Reply } from './web-server.ts';

export interface When {
  /** Only requests whose path matches. */
  readonly path?: RegExp;
  /** Only so many times; for ever when left out. */
  readonly times?: number;
}

function fault(reply: (asked: Asked, regular: Reply) => Reply, { path = /(?:)/, times = Infinity }: When): Fault {
  let left = times;
  return (asked, regular) => {
    if (left <= 0 || !path.test(asked.path)) return undefined;
    left -= 1;
    return reply(asked, regular);
  };
}

/** Answers with this instead. */
export function answers(reply: Reply, when: When = {}): Fault {
  return fault(() => reply, when);
}

export function redirects(to: string | ((asked: Asked) => string), when: When = {}): Fault {
  return fault((asked) => ({ status: 307, headers: { location: typeof to === 'string' ? to : to(asked) } }), when);
}

/** Sends half of the body, then resets the connection. */
export function resetsAtHalf(when: When = {}): Fault {
  return fault((_, regular) => {
    const { byteLength } = bytesOf(regular.body);
    return { ...regular, sending: { resetAt: Math.floor(byteLength / 2) } };
  }, when);
}

/** Announces the whole body and closes the connection a few bytes before its end. */
export function endsShort(when: When = {}): Fault {
  return fault((_, regular) => {
    const { byteLength } = bytesOf(regular.body);
    return { ...regular, sending: { closeAt: Math.max(0, byteLength - 10) } };
  }, when);
}

/** Sends the body byte by byte, and is never silent for long. */
export function drips(when: When = {}): Fault {
  return fault((_, regular) => ({ ...regular, sending: { dripMs: 10 } }), when);
}

/** Sends other bytes of the same length. */
export function sendsOtherBytes(when: When = {}): Fault {
  return fault((_, regular) => ({ ...regular, body: Buffer.from(regular.body ?? '').fill(0x20) }), when);
}

/** Announces no length and never stops sending. */
export function neverEnds(when: When = {}): Fault {
  return fault((_, regular) => ({ ...regular, sending: 'endless' }), when);
}

/** Ignores Range. `whole` is the body as it is without it. */
export function ignoresRange(whole: Uint8Array, when: When = {}): Fault {
  return fault((_, regular) => {
    const { 'content-range': _range, ...headers } = regular.headers ?? {};
    return { status: 200, headers, body: whole };
  }, when);
}
