/** The bytes of a planned bundle: any range of them, without the rest. */
import type { Segment, SplicePlan } from '../../formats/archive/splice.ts';
import { CurlewError } from '../../core/errors.ts';
import { isFolderStore } from '../../store/folder.ts';
import type { StoredObject, StorePlace } from '../../store/store.ts';

/** Bytes by range, read into memory that the caller may provide. An archive's range source is one. */
export interface BundleSource {
  readonly name: string;
  readonly read: (offset: number, length: number, options: ReadOptions) => AsyncIterable<Uint8Array>;
  /** Of the store that holds it, and its object there, pinned by its etag; absent for a file of this machine. */
  readonly place?: StorePlace | undefined;
  readonly object?: StoredObject | undefined;
}

/** True for what a network lies before. */
export function isElsewhere({ place }: BundleSource): boolean {
  return place !== undefined && !isFolderStore({ place });
}

interface ReadOptions {
  readonly signal: AbortSignal;
  /** Memory for the next chunk; only that chunk uses it. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

export interface BundleRangeOptions extends ReadOptions {
  /** The first byte; that of the bundle when absent. */
  readonly offset?: number | undefined;
  /** Bytes; all to the end when absent. */
  readonly length?: number | undefined;
}

/**
 * The bytes of a range of the planned archive, in order: exactly as many as are asked for, or an error. Only what the
 * range touches is read; where it begins is found without going through what comes before. A range that is not within
 * the archive is a RangeError.
 */
export async function* bundleRange(
  { segments, size }: Pick<SplicePlan, 'segments' | 'size'>,
  sources: readonly BundleSource[],
  { offset = 0, length = size - offset, signal, allocate }: BundleRangeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!(offset >= 0 && length >= 0 && offset + length <= size)) {
    throw new RangeError(`${length} bytes from ${offset} do not lie within ${size}`);
  }
  const end = offset + length;
  for (let index = segmentAt(segments, offset), at = offset; at < end; index += 1) {
    signal.throwIfAborted();
    const segment = segments[index];
    if (segment === undefined) throw new Error(`the plan has no bytes for ${at}`);
    const skip = at - segment.at;
    const count = Math.min(lengthOf(segment) - skip, end - at);
    if (segment.kind === 'bytes') yield segment.data.subarray(skip, skip + count);
    else
      yield* sourceRange(sources, segment.source, { offset: segment.offset + skip, length: count, signal, allocate });
    at += count;
  }
}

/** Bytes of a segment. */
function lengthOf(segment: Segment): number {
  return segment.kind === 'bytes' ? segment.data.byteLength : segment.length;
}

/** Number of the segment that holds this byte of the archive. */
function segmentAt(segments: readonly Segment[], offset: number): number {
  let low = 0;
  for (let high = segments.length; high - low > 1;) {
    const middle = (low + high) >>> 1;
    if ((segments[middle]?.at ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low;
}

async function* sourceRange(
  sources: readonly BundleSource[],
  number: number,
  { offset, length, signal, allocate }: ReadOptions & { readonly offset: number; readonly length: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = sources[number];
  if (source === undefined) throw new Error(`the plan names source ${number}`);
  let left = length;
  try {
    for await (const chunk of source.read(offset, length, { signal, allocate })) {
      left -= chunk.byteLength;
      if (left < 0) break;
      yield chunk;
    }
  } catch (error) {
    throw changedSincePlanned(error);
  }
  if (left === 0) return;
  throw new CurlewError('FETCH_FAILED', `${source.name}: gave ${length - left} bytes, not ${length}`);
}

/** A source that has changed, or gone, is no longer what the plan says. */
export function changedSincePlanned(error: unknown): unknown {
  if (!(error instanceof CurlewError) || !['STORE_CONFLICT', 'NOT_FOUND'].includes(error.code)) return error;
  return new CurlewError('STORE_CONFLICT', error.message, {
    hint: 'the store is not as it was when this bundle was planned: plan it again',
    cause: error,
  });
}
