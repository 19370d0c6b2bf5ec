/** Authorization of POST requests. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** Minimum length: shorter tokens can be guessed. */
export const MIN_TOKEN_LENGTH = 16;

/** True for `Authorization: Bearer <token>`; takes as long for a wrong token as for the right one. */
export function isAuthorized(header: string | undefined, token: string): boolean {
  const [, presented = ''] = /^Bearer +([\x21-\x7e]{1,4096})$/i.exec(header ?? '') ?? [];
  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(presented), hash(token));
}
