/** Evaluates the conditions and ranges of a request (RFC 9110, 13 and 14). Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ByteRange } from '../store/store.ts';
import type { Content } from './content.ts';

type Verdict =
  | { readonly status: 200 }
  | { readonly status: 206; readonly ranges: readonly ByteRange[] }
  | { readonly status: 304 }
  | { readonly status: 412 }
  | { readonly status: 416 };

type Conditional = Pick<Content, 'etag' | 'size' | 'fromStart'>;

/**
 * `headers` of a GET or HEAD. Range applies to GET only. A request for several ranges may receive the whole content instead
 * (RFC 9110, 14.2).
 */
export function evaluate(
  method: string,
  headers: IncomingHttpHeaders,
  { etag, size, fromStart }: Conditional,
): Verdict {
  const match = headers['if-match'];
  if (match !== undefined && !matches(match, etag, 'strong')) return { status: 412 };
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined && matches(noneMatch, etag, 'weak')) return { status: 304 };
  if (method !== 'GET' || !mayBeRanged(headers['if-range'], etag)) return { status: 200 };
  const requested = parseByteRange(headers.range, size);
  switch (requested.kind) {
    case 'whole':
      return { status: 200 };
    case 'ranges':
      return fromStart === true && requested.ranges.length > 1
        ? { status: 200 }
        : { status: 206, ranges: requested.ranges };
    case 'unsatisfiable':
      return { status: 416 };
  }
}

/** A date never matches, because contents have none. */
function mayBeRanged(ifRange: string | string[] | undefined, etag: string): boolean {
  if (ifRange === undefined) return true;
  return typeof ifRange === 'string' && isStrong(etag) && ifRange.trim() === etag;
}

function isStrong(etag: string): boolean {
  return !etag.startsWith('W/');
}

function matches(list: string, etag: string, comparison: 'strong' | 'weak'): boolean {
  if (list.trim() === '*') return true;
  const tags: readonly string[] = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  if (comparison === 'strong') return isStrong(etag) && tags.includes(etag);
  const opaque = (tag: string): string => tag.replace(/^W\//, '');
  return tags.some((tag) => opaque(tag) === opaque(etag));
}

export type RequestedRanges =
  /** Without Range, or with a unit other than bytes. */
  | { readonly kind: 'whole' }
  /** Not empty; within the content, without overlaps. */
  | { readonly kind: 'ranges'; readonly ranges: readonly ByteRange[] }
  /** Outside of the content, malformed, or an attack. */
  | { readonly kind: 'unsatisfiable' };

/** Readers of archives request a few ranges; each part needs a header. */
const MAX_RANGES = 64;
const UNSATISFIABLE = { kind: 'unsatisfiable' } as const;

/** Parses a Range header for a content of `size` bytes. */
export function parseByteRange(header: string | undefined, size: number): RequestedRanges {
  if (header === undefined) return { kind: 'whole' };
  const [, unit, list] = /^\s*([^\s=]+)\s*=(.*)$/s.exec(header) ?? [];
  if (unit === undefined || list === undefined) return UNSATISFIABLE;
  if (unit.toLowerCase() !== 'bytes') return { kind: 'whole' };
  const specs = list
    .split(',', MAX_RANGES * 2)
    .map((spec) => spec.trim())
    .filter((spec) => spec !== '');
  if (specs.length > MAX_RANGES) return UNSATISFIABLE;
  const ranges: ByteRange[] = [];
  for (const spec of specs) {
    const range = rangeOf(spec, size);
    if (range === 'malformed') return UNSATISFIABLE;
    if (range !== undefined) ranges.push(range);
  }
  return ranges.length === 0 ? UNSATISFIABLE : { kind: 'ranges', ranges: withoutOverlap(ranges) };
}

/** Undefined for a well-formed range beyond the content. */
function rangeOf(spec: string, size: number): ByteRange | 'malformed' | undefined {
  const [, first, last] = /^(\d{0,40})\s*-\s*(\d{0,40})$/.exec(spec) ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return 'malformed';
  if (first === '') {
    const length = Math.min(Number(last), size);
    return length === 0 ? undefined : { offset: size - length, length };
  }
  const offset = Number(first);
  if (last !== '' && Number(last) < offset) return 'malformed';
  if (offset >= size) return undefined;
  const end = last === '' ? size : Math.min(Number(last) + 1, size);
  return { offset, length: end - offset };
}

/** The requested ranges; if any overlap, in ascending order with overlapping ones merged. */
function withoutOverlap(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const merged: ByteRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.offset - b.offset)) {
    const last = merged.at(-1);
    if (last === undefined || range.offset >= last.offset + last.length) {
      merged.push(range);
    } else {
      const end = Math.max(last.offset + last.length, range.offset + range.length);
      merged[merged.length - 1] = { offset: last.offset, length: end - last.offset };
    }
  }
  return merged.length === ranges.length ? ranges : merged;
}
