/** Conditions of a request (RFC 9110, 13) and what is to be sent of a content. Pure. */
import type { IncomingHttpHeaders } from 'node:http';
import type { ByteRange } from '../store/store.ts';
import type { Content } from './content.ts';
import { parseRange } from './range.ts';

export type Verdict =
  | { readonly status: 200 }
  | { readonly status: 206; readonly ranges: readonly ByteRange[] }
  | { readonly status: 304 }
  | { readonly status: 412 }
  | { readonly status: 416 };

type Judged = Pick<Content, 'etag' | 'size' | 'fromStart'>;

/**
 * `headers` of a GET or HEAD. A Range counts for GET alone, and whoever asks for several may be sent the whole instead
 * (RFC 9110, 14.2).
 */
export function judge(method: string, headers: IncomingHttpHeaders, { etag, size, fromStart }: Judged): Verdict {
  const match = headers['if-match'];
  if (match !== undefined && !matches(match, etag, 'strong')) return { status: 412 };
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined && matches(noneMatch, etag, 'weak')) return { status: 304 };
  if (method !== 'GET' || !mayBeRanged(headers['if-range'], etag)) return { status: 200 };
  const wanted = parseRange(headers.range, size);
  switch (wanted.kind) {
    case 'whole':
      return { status: 200 };
    case 'ranges':
      return fromStart === true && wanted.ranges.length > 1 ? { status: 200 } : { status: 206, ranges: wanted.ranges };
    case 'unsatisfiable':
      return { status: 416 };
  }
}

/** A date never matches: nothing here has one. */
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
