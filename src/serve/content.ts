/** What a request is answered with, as data: bytes that can be read by range, or a short text. */
import type { ByteRange } from '../store/store.ts';
import type { BundleSource } from '../bundle/write/bytes.ts';

export interface Content {
  /** Bytes. */
  readonly size: number;
  /** As it stands in the header, with its quotes: another one for other bytes, unless it begins with `W/`. */
  readonly etag: string;
  /** Media type. */
  readonly type: string;
  /** Name under which a browser saves it. */
  readonly fileName?: string | undefined;
  /** How long others may keep it without asking again. */
  readonly cache: 'forever' | 'ask';
  readonly headers?: Readonly<Record<string, string>>;
  /** Reading begins at the first byte whatever is wanted: several ranges at once are not worth it. */
  readonly fromStart?: boolean | undefined;
  /** Exactly `length` bytes from `offset`, or an error. */
  readonly read: BundleSource['read'];
}

export type Answer =
  | { readonly kind: 'content'; readonly content: Content }
  | {
      readonly kind: 'text';
      readonly status: number;
      readonly type: string;
      readonly text: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export function textAnswer(
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): Extract<Answer, { kind: 'text' }> {
  return { kind: 'text', status, type: 'text/plain; charset=utf-8', text, headers };
}

export function jsonAnswer(
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): Extract<Answer, { kind: 'text' }> {
  return { kind: 'text', status, type: 'application/json', text: `${JSON.stringify(value)}\n`, headers };
}

/** Small bytes that are at hand. */
export function dataContent(
  data: Uint8Array,
  rest: Omit<Content, 'size' | 'read'>,
): Extract<Answer, { kind: 'content' }> {
  const content: Content = {
    ...rest,
    size: data.byteLength,
    async *read(offset, length) {
      yield data.subarray(offset, offset + length);
    },
  };
  return { kind: 'content', content };
}

/** A body that is put together of own bytes and ranges of a content. */
export type BodyPart =
  | { readonly kind: 'bytes'; readonly data: Uint8Array }
  | { readonly kind: 'range'; readonly range: ByteRange };

export interface Body {
  readonly parts: readonly BodyPart[];
  /** Bytes of all parts. */
  readonly length: number;
}

/** Several ranges in one answer: multipart/byteranges (RFC 9110, 14.6). `boundary` must not occur in the content. */
export function multipartBody(
  ranges: readonly ByteRange[],
  { size, type, boundary }: { readonly size: number; readonly type: string; readonly boundary: string },
): Body {
  const parts: BodyPart[] = [];
  let length = 0;
  const bytes = (text: string): void => {
    const data = Buffer.from(text);
    parts.push({ kind: 'bytes', data });
    length += data.byteLength;
  };
  for (const range of ranges) {
    const place = contentRange(range, size);
    bytes(`\r\n--${boundary}\r\nContent-Type: ${type}\r\nContent-Range: ${place}\r\n\r\n`);
    parts.push({ kind: 'range', range });
    length += range.length;
  }
  bytes(`\r\n--${boundary}--\r\n`);
  return { parts, length };
}

export function contentRange({ offset, length }: ByteRange, size: number): string {
  return `bytes ${offset}-${offset + length - 1}/${size}`;
}
