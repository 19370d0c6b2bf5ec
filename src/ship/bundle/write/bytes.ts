/** Reads any range of a planned bundle. */
import type { Segment, SplicePlan } from '../../../formats/archive/splice.ts';
import { CurlewError } from '../../../core/errors.ts';
import { isFolderStore } from '../../store/folder.ts';
import type { StoredObject, StorePlace } from '../../store/store.ts';

/** A range source that can read to the caller's memory, such as an archive's range source. */
export interface BundleSource {
  readonly name: string;
  readonly read: (offset: number, length: number, options: ReadOptions) => AsyncIterable<Uint8Array>;
  /** Its store and object, pinned by its etag; absent for a local file. */
  readonly place?: StorePlace | undefined;
  readonly object?: StoredObject | undefined;
}

/** True for a source on the network. */
export function isRemoteSource({ place }: BundleSource): boolean {
  return place !== undefined && !isFolderStore({ place });
}

interface ReadOptions {
  readonly signal: AbortSignal;
  /** Provides memory for the next chunk only. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

export interface BundleRangeOptions extends ReadOptions {
  /** The first byte; default 0. */
  readonly offset?: number | undefined;
  /** Number of bytes; default up to the end. */
  readonly length?: number | undefined;
}

/**
 * The bytes of a range of the planned archive, in order: exactly the requested number, or an error. Reads only the segments
 * in the range, and finds the first with a binary search. A range outside of the archive is a RangeError.
 */
export async function* bundleRange(
  { segments, size }: Pick<SplicePlan, 'segments' | 'size'>,
  sources: readonly BundleSource[],
  { offset = 0, length = size - offset, signal, allocate }: BundleRangeOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!(offset >= 0 && length >= 0 && offset + length <= size)) {
    throw new RangeError(`${length} bytes at ${offset} are not within ${size}`);
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

/** Index of the segment that contains this byte of the archive. */
function segmentAt(segments: readonly Segment[], offset: number): number {
  let low = 0;
  for (let high = segments.length; high - low > 1;) {
    const middle = (low + high) >>> 1;
    if ((segments[middle]?.at ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low;
}

/** The source from which the byte at this offset is copied; undefined for what the plan writes itself. */
export function sourceAt(
  { segments }: Pick<SplicePlan, 'segments'>,
  sources: readonly BundleSource[],
  offset: number,
): BundleSource | undefined {
  const segment = segments[segmentAt(segments, offset)];
  return segment?.kind === 'range' ? sources[segment.source] : undefined;
}

async function* sourceRange(
  sources: readonly BundleSource[],
  number: number,
  { offset, length, signal, allocate }: ReadOptions & { readonly offset: number; readonly length: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  const source = sources[number];
  if (source === undefined) throw new Error(`the plan names source ${number}`);
  let remaining = length;
  try {
    for await (const chunk of source.read(offset, length, { signal, allocate })) {
      remaining -= chunk.byteLength;
      if (remaining < 0) break;
      yield chunk;
    }
  } catch (error) {
    throw changedSincePlanned(error);
  }
  if (remaining === 0) return;
  throw new CurlewError('FETCH_FAILED', `${source.name}: returned ${length - remaining} bytes instead of ${length}`);
}

/** Adds a hint to the error for a changed or missing source. */
export function changedSincePlanned(error: unknown): unknown {
  if (!(error instanceof CurlewError) || !['STORE_CONFLICT', 'NOT_FOUND'].includes(error.code)) return error;
  return new CurlewError('STORE_CONFLICT', error.message, {
    hint: 'the store has changed since this bundle was planned: plan it again',
    cause: error,
  });
}
