/** Divides an object into parts, some of which the server copies from its own objects. Pure. */
import { CurlewError } from '../../core/errors.ts';
import type { CopiedRange } from './store.ts';

/** Sizes in bytes, and a number of parts. */
export interface PartLimits {
  /** Minimum size of every part except the last. */
  readonly least: number;
  /** Maximum size of copied parts; at least twice `least`. */
  readonly copied: number;
  /** Size of uploaded parts; at least `least`. */
  readonly sent: number;
  readonly parts: number;
}

const MIB = 1024 * 1024;

/** Copied parts are smaller than S3 allows, because each occupies a connection until the copy is done. */
export const PART_LIMITS: PartLimits = { least: 5 * MIB, copied: 512 * MIB, sent: 6 * MIB, parts: 10_000 };

export interface UploadPart {
  readonly at: number;
  readonly length: number;
  /** The range that the server copies, starting at `offset`; undefined for uploaded bytes. */
  readonly copy?: { readonly range: CopiedRange; readonly offset: number } | undefined;
}

/**
 * Parts that cover the object. Uploads the bytes between copied ranges and, next to them, at most the minimum part size of each
 * range. Uploads ranges shorter than a part entirely.
 */
export function planUpload(size: number, copies: readonly CopiedRange[], limits: PartLimits): readonly UploadPart[] {
  checkTiling(size, copies);
  // Doubles the part size until the number of parts is within the limit.
  for (let { least } = limits; ; least *= 2) {
    const sized = { least, sent: Math.max(limits.sent, least), copied: Math.max(limits.copied, 2 * least) };
    const parts = cut(size, copies, sized);
    if (parts.length <= limits.parts) return parts;
  }
}

function checkTiling(size: number, copies: readonly CopiedRange[]): void {
  let end = 0;
  for (const { at, offset, length } of copies) {
    if (at < end || offset < 0 || length <= 0 || at + length > size) {
      throw new CurlewError('PACKAGE_INVALID', `the range of ${length} bytes at ${at} is outside of the object`);
    }
    end = at + length;
  }
}

function cut(size: number, copies: readonly CopiedRange[], limits: Omit<PartLimits, 'parts'>): readonly UploadPart[] {
  const { least, copied, sent } = limits;
  const parts: UploadPart[] = [];
  /** Offset of the first byte that is not yet in a part. */
  let begin = 0;
  const send = (end: number): void => {
    if (end > begin) parts.push({ at: begin, length: end - begin });
    begin = end;
  };
  const sendFull = (end: number): void => {
    for (let full = Math.floor((end - begin) / sent); full > 0; full -= 1) send(begin + sent);
  };
  for (const range of copies) {
    sendFull(range.at);
    const waiting = range.at - begin;
    const first = range.at + (waiting === 0 ? 0 : Math.max(0, least - waiting));
    const length = range.at + range.length - first;
    if (length < least) continue;
    send(first);
    const count = Math.ceil(length / copied);
    for (let index = 0; index < count; index += 1) {
      const at = first + Math.floor((length * index) / count);
      const end = first + Math.floor((length * (index + 1)) / count);
      parts.push({ at, length: end - at, copy: { range, offset: range.offset + at - range.at } });
    }
    begin = first + length;
  }
  sendFull(size);
  send(size);
  return parts;
}
