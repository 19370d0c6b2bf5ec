/** Fetches a large body: resumes after broken connections, never exceeds the expected size, pauses for the writer. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Http } from './http.ts';
import { contentLength, type HttpRequest, type HttpOutcome, type ResponseHead, type Sink } from './message.ts';
import { MAX_STALLS } from './limits.ts';
import { isWorthRetry, pauseMs } from './retry.ts';
import { pause } from '../limit/repeat.ts';

export interface DownloadRequest extends HttpRequest {
  /** Offset of the first byte to fetch: the bytes before it already exist. */
  readonly from?: number | undefined;
  /** End of the range, exclusive; default: the end of the body. */
  readonly until?: number | undefined;
  /** Size of the whole body, if known. */
  readonly expectedSize?: number | undefined;
  /** Size limit in bytes of a body whose size is not known in advance. */
  readonly limit?: number | undefined;
  /** The address always has the same content (it contains a digest), so different validators are ignored. */
  readonly immutable?: boolean | undefined;
  /** `UNSUPPORTED` if a server ignores Range, instead of skipping the bytes before the range. */
  readonly partsOnly?: boolean | undefined;
  /**
   * No digest verifies the bytes: a response continues them only with the same strong validator, and with the same
   * Last-Modified if the server sends no strong ETag. Any other response starts over.
   */
  readonly unverified?: boolean | undefined;
  /** Required ETag of the body: the one of the bytes before `from`. */
  readonly expectedEtag?: string | undefined;
  /**
   * Receives the bytes in order. They are valid until the call returns or, if it returns a promise, until that settles;
   * reading pauses meanwhile.
   */
  readonly write: (chunk: Uint8Array) => Promise<void> | undefined;
  /** Called with the facts of each response whose body is used, before the first byte of it. */
  readonly onFacts?: ((facts: BodyFacts) => void) | undefined;
  /** Called if the body on the server has changed: discard all bytes; the download starts again from the first. */
  readonly restart?: (() => Promise<void>) | undefined;
}

export interface Downloaded {
  /** Size of the whole body. */
  readonly size: number;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** The address after redirects, without user info. */
  readonly finalUrl: string;
}

/** Facts that a server reports about the whole body; two parts with different facts do not belong together. */
export interface BodyFacts {
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  readonly size: number | undefined;
}

interface Progress {
  received: number;
  facts: BodyFacts;
  finalUrl: string;
}

/** How a response continues the received bytes. */
type Part =
  | { readonly kind: 'body'; readonly skip: number; readonly facts: BodyFacts }
  | { readonly kind: 'changed' }
  /** Nothing is left to send. */
  | { readonly kind: 'whole' }
  | { readonly kind: 'refused' };

/** Fewer bytes do not count as progress, so that a download from a server that trickles forever ends. */
const PROGRESS = 64 * 1024;
const FAILURE_LIMIT = 8192;
const MAX_RESTARTS = 3;
const NO_FACTS: BodyFacts = { etag: undefined, lastModified: undefined, size: undefined };

/** True if both are known and not the same. */
export function differs<Value>(a: Value | undefined, b: Value | undefined): boolean {
  return a !== undefined && b !== undefined && a !== b;
}

function isOther(known: BodyFacts, seen: BodyFacts): boolean {
  return (
    differs(known.etag, seen.etag) || differs(known.size, seen.size) || differs(known.lastModified, seen.lastModified)
  );
}

/** Parts of two responses may be combined (RFC 9110, 15.3.7.3). */
function isProvedSame(known: BodyFacts, seen: Pick<BodyFacts, 'etag' | 'lastModified'>): boolean {
  if (isStrong(known.etag)) return seen.etag === known.etag;
  return known.lastModified !== undefined && seen.lastModified === known.lastModified;
}

/** Equal strong entity tags mean equal bytes; weak ones do not (RFC 9110, 8.8.1). */
export function isStrong(etag: string | undefined): boolean {
  return etag?.startsWith('"') === true;
}

/** `Content-Range: bytes FIRST-LAST/TOTAL`; TOTAL may be `*`. */
function contentRange(
  text: string | undefined,
): { readonly first: number; readonly last: number; readonly total: number | undefined } | undefined {
  const [, first, last, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(text?.trim() ?? '') ?? [];
  if (first === undefined || last === undefined) return undefined;
  const range = { first: Number(first), last: Number(last), total: total === '*' ? undefined : Number(total) };
  if (range.last < range.first || (range.total !== undefined && range.last >= range.total)) return undefined;
  return range;
}

/** Classifies the response to a request for the bytes starting at `received`. */
function partOf(request: DownloadRequest, head: ResponseHead, { received, facts: known }: Progress): Part {
  const { doing, expectedSize, expectedEtag, until, immutable = false, unverified = false } = request;
  const bad = (what: string): CurlewError => new CurlewError('FETCH_FAILED', `cannot ${doing}: ${head.url} ${what}`);
  const validators = immutable
    ? { etag: undefined, lastModified: undefined }
    : { etag: head.headers['etag'], lastModified: head.headers['last-modified'] };
  if (head.status === 416 && received > 0) {
    const isSame = !unverified || isProvedSame(known, validators);
    const isEnd = until === undefined && !differs(known.size, received) && isSame;
    return { kind: isEnd && head.headers['content-range']?.trim() === `bytes */${received}` ? 'whole' : 'changed' };
  }
  if (head.status !== 200 && head.status !== 206) return { kind: 'refused' };
  const length = contentLength(head);
  let facts: BodyFacts = { ...validators, size: length };
  let skip = received;
  if (head.status === 206) {
    const range = contentRange(head.headers['content-range']);
    if (range === undefined || (received === 0 && until === undefined)) {
      throw bad('sent a part of the body that was not requested');
    }
    facts = { ...validators, size: range.total };
    if (!isOther(known, facts) && (range.first > received || differs(length, range.last - range.first + 1))) {
      throw bad(`sent the bytes from ${range.first}, expected the bytes from ${received}`);
    }
    skip = received - range.first;
  }
  if (received > 0 && (isOther(known, facts) || (unverified && !isProvedSame(known, facts))))
    return { kind: 'changed' };
  if (expectedEtag !== undefined && differs(known.etag, facts.etag)) return { kind: 'changed' };
  if (request.partsOnly === true && head.status === 200 && (received > 0 || until !== undefined)) {
    throw new CurlewError('UNSUPPORTED', `cannot ${doing}: ${head.url} does not support range requests`);
  }
  if (differs(facts.size, expectedSize)) throw bad(`has ${facts.size} bytes, expected ${expectedSize}`);
  return { kind: 'body', skip, facts };
}

interface Attempt {
  readonly outcome: HttpOutcome;
  readonly part: Part | undefined;
  /** Beginning of the body of an error response. */
  readonly refusal: Uint8Array;
}

async function attempt(
  http: Http,
  request: DownloadRequest,
  progress: Progress,
  signal: AbortSignal,
): Promise<Attempt> {
  const { doing, write, expectedSize, limit = Number.MAX_SAFE_INTEGER, until = Number.MAX_SAFE_INTEGER } = request;
  const refusal: Uint8Array[] = [];
  let part: Part | undefined;
  let pending: Promise<void> | undefined;
  let skip = 0;
  let most = limit;
  const sink: Sink = {
    head: (head) => {
      part = partOf(request, head, progress);
      if (part.kind !== 'body') return;
      ({ skip } = part);
      most = expectedSize ?? part.facts.size ?? limit;
      if (most > limit) throw tooLong(doing, head.url, limit);
      progress.facts = part.facts;
      progress.finalUrl = head.url;
      request.onFacts?.(part.facts);
    },
    data: (chunk) => {
      if (part?.kind !== 'body') {
        if (part?.kind === 'refused') refusal.push(Uint8Array.from(chunk.subarray(0, FAILURE_LIMIT)));
        return false;
      }
      if (progress.received >= until) return false;
      let bytes = chunk;
      if (skip > 0) {
        const dropped = Math.min(skip, chunk.byteLength);
        skip -= dropped;
        if (dropped === chunk.byteLength) return undefined;
        bytes = chunk.subarray(dropped);
      }
      bytes = bytes.subarray(0, until - progress.received);
      if (progress.received + bytes.byteLength > most) throw tooLong(doing, progress.finalUrl, most);
      progress.received += bytes.byteLength;
      pending = write(bytes);
      return pending;
    },
  };
  const headers: Record<string, string> = { ...request.headers };
  if (progress.received > 0 || request.until !== undefined) {
    headers['range'] = `bytes=${progress.received}-${request.until === undefined ? '' : until - 1}`;
    const { etag, lastModified } = progress.facts;
    // If-Range must not contain a weak ETag, nor a date if there is any ETag (RFC 9110, 13.1.5).
    const validator = etag?.startsWith('W/') === true ? undefined : (etag ?? lastModified);
    if (validator !== undefined) headers['if-range'] = validator;
  }
  let outcome: HttpOutcome;
  try {
    outcome = await http.exchange({ ...request, headers }, sink, { signal });
  } catch (error) {
    await pending?.catch(() => undefined);
    throw error;
  }
  // The connection may break while the writer still works: wait, so that no two writes run at once.
  await pending;
  return { outcome, part, refusal: Buffer.concat(refusal) };
}

function tooLong(doing: string, url: string, most: number): CurlewError {
  return new CurlewError('FETCH_FAILED', `cannot ${doing}: ${url} returned more than ${most} bytes`);
}

/** All bytes have arrived: as many as expected or announced, or up to the end of a body without a length. */
function isWhole({ expectedSize, until }: DownloadRequest, { received, facts }: Progress): boolean {
  return received === Math.min(until ?? Infinity, expectedSize ?? facts.size ?? until ?? received);
}

async function startAgain(request: DownloadRequest, progress: Progress, times: number): Promise<void> {
  const { doing, url, restart, unverified = false } = request;
  if (restart === undefined || times > MAX_RESTARTS) {
    const { etag, lastModified } = progress.facts;
    const isNamed = !unverified || isStrong(etag) || lastModified !== undefined;
    const what = isNamed
      ? 'changed while it was being fetched'
      : 'stops early and cannot be resumed: the server sends neither a strong ETag nor Last-Modified';
    throw new CurlewError('FETCH_FAILED', `cannot ${doing}: ${url} ${what}`, { hint: 'run the same command again' });
  }
  await restart();
  progress.received = 0;
  progress.facts = NO_FACTS;
}

/**
 * Writes the body of `url` from byte `from`, or up to `until`, in order, each byte once. Resumes a broken or short transfer
 * by Range and If-Range, and skips the bytes that it already has if a server ignores Range. Throws `FETCH_FAILED` after as
 * many attempts without progress as the client's retry policy allows, earlier if a body stalls or trickles; `AUTH_FAILED`,
 * `NOT_FOUND` or `FETCH_FAILED` by status; `FETCH_FAILED` at the first byte too many; and any error of `write`, unchanged.
 * Does not verify the bytes.
 */
export async function download(http: Http, request: DownloadRequest, { signal }: Cancellable): Promise<Downloaded> {
  const { from = 0, until, expectedSize, expectedEtag, url } = request;
  const progress: Progress = {
    received: from,
    facts: { ...NO_FACTS, etag: expectedEtag, size: expectedSize },
    finalUrl: url,
  };
  let [failures, stalls] = [0, 0];
  let restarts = 0;
  for (;;) {
    if (progress.received >= (until ?? expectedSize ?? Infinity)) break;
    const before = progress.received;
    const { outcome, part, refusal } = await attempt(http, request, progress, signal);
    if (part?.kind === 'changed') {
      restarts += 1;
      await startAgain(request, progress, restarts);
      continue;
    }
    const head = outcome.kind === 'complete' ? outcome.head : undefined;
    if (part?.kind === 'whole' || (head !== undefined && part?.kind === 'body' && isWhole(request, progress))) break;
    if (progress.received - before >= PROGRESS) [failures, stalls] = [0, 0];
    failures += 1;
    if (outcome.kind === 'broken' && outcome.stalled) stalls += 1;
    const again = outcome.kind === 'broken' ? outcome.retryable : part?.kind === 'body' || isWorthRetry(outcome.head);
    if (!again || failures >= http.retry.attempts || stalls >= MAX_STALLS) {
      throw gaveUp(http, request, { ...progress, tries: failures }, outcome, part, refusal);
    }
    await pause(pauseMs(failures, head, http.retry, Date.now()), { signal });
  }
  const { received: size, facts, finalUrl } = progress;
  return { size, etag: facts.etag, lastModified: facts.lastModified, finalUrl };
}

function gaveUp(
  http: Http,
  request: DownloadRequest,
  { received, facts, tries }: Progress & { readonly tries: number },
  outcome: HttpOutcome,
  part: Part | undefined,
  refusal: Uint8Array,
): CurlewError {
  if (outcome.kind === 'broken' && !outcome.retryable) return outcome.error;
  if (outcome.kind === 'complete' && part?.kind !== 'body') return http.failure(request, outcome.head, refusal);
  const stalled = outcome.kind === 'broken' && outcome.stalled;
  // Without a byte there is nothing to resume, and the connection says what is wrong.
  if (outcome.kind === 'broken' && received === 0 && !stalled) return outcome.error;
  const expected = request.until ?? request.expectedSize ?? facts.size;
  const progress = `after ${received} of ${expected ?? 'unknown'} bytes, tried ${tries} times`;
  // The message for a stalled body already names the host and the rate.
  const message = stalled
    ? `${outcome.error.message}, ${progress}`
    : `cannot ${request.doing}: ${request.url} ended ${progress}`;
  return new CurlewError('FETCH_FAILED', message, {
    hint: `run the same command again${received === 0 ? '' : ' to resume'}`,
    cause: outcome.kind === 'broken' ? outcome.error : undefined,
  });
}
