/** How an object is cut into parts, some of which the server copies from objects that it holds. Pure. */
import { CurlewError } from '../core/errors.ts';
import type { CopiedRange } from './store.ts';

/** Bytes, and a number of parts. */
export interface PartLimits {
  /** What every part but the last must have. */
  readonly least: number;
  /** Parts that are copied; at least twice `least`. */
  readonly copied: number;
  /** Parts that are sent; at least `least`. */
  readonly sent: number;
  readonly parts: number;
}

const MIB = 1024 * 1024;

/** Large parts are copied by one request each, which holds a connection as long as it takes: so they are not the largest. */
export const PART_LIMITS: PartLimits = { least: 5 * MIB, copied: 512 * MIB, sent: 6 * MIB, parts: 10_000 };

export interface PlannedPart {
  readonly at: number;
  readonly length: number;
  /** What the server copies, from this byte of it; undefined for bytes that are sent. */
  readonly copy?: { readonly range: CopiedRange; readonly offset: number } | undefined;
}

/**
 * Parts that tile the object. Sent are the bytes between the copied ranges, and of each range no more than the least that
 * a part must have, at the border with such bytes; ranges that are shorter than a part are sent whole.
 */
export function planParts(size: number, copies: readonly CopiedRange[], limits: PartLimits): readonly PlannedPart[] {
  checkTiling(size, copies);
  // Fewer and larger parts, where there would be too many.
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
      throw new CurlewError('PACKAGE_INVALID', `the range of ${length} bytes at ${at} does not lie in the object`);
    }
    end = at + length;
  }
}

function cut(size: number, copies: readonly CopiedRange[], limits: Omit<PartLimits, 'parts'>): readonly PlannedPart[] {
  const { least, copied, sent } = limits;
  const parts: PlannedPart[] = [];
  /** Where the bytes begin that are in no part yet. */
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
    const left = range.at + range.length - first;
    if (left < least) continue;
    send(first);
    const count = Math.ceil(left / copied);
    for (let index = 0; index < count; index += 1) {
      const at = first + Math.floor((left * index) / count);
      const end = first + Math.floor((left * (index + 1)) / count);
      parts.push({ at, length: end - at, copy: { range, offset: range.offset + at - range.at } });
    }
    begin = first + left;
  }
  sendFull(size);
  send(size);
  return parts;
}
