/** A planned bundle as a stream of bytes, from the beginning. */
import type { SplicePlan } from '../archive/splice.ts';
import { CurlewError } from '../core/errors.ts';

/** Bytes by range, read into memory that the caller may provide. An archive's range source is one. */
export interface BundleSource {
  readonly name: string;
  readonly read: (offset: number, length: number, options: ReadOptions) => AsyncIterable<Uint8Array>;
}

interface ReadOptions {
  readonly signal: AbortSignal;
  /** Memory for the next chunk; only that chunk uses it. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** All bytes of the plan in order; exactly as many as it says. */
export async function* bundleBytes(
  { segments }: SplicePlan,
  sources: readonly BundleSource[],
  { signal, allocate }: ReadOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  for (const segment of segments) {
    signal.throwIfAborted();
    if (segment.kind === 'bytes') {
      yield segment.data;
      continue;
    }
    const source = sources[segment.source];
    if (source === undefined) throw new Error(`the plan names source ${segment.source}`);
    let left = segment.length;
    for await (const chunk of source.read(segment.offset, segment.length, { signal, allocate })) {
      left -= chunk.byteLength;
      yield chunk;
    }
    if (left !== 0)
      throw new CurlewError(
        'FETCH_FAILED',
        `${source.name}: gave ${segment.length - left} bytes, not ${segment.length}`,
      );
  }
}
