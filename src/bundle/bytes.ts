/** A planned bundle as a stream of bytes, from the beginning. */
import type { RangeSource } from '../archive/entry.ts';
import type { SplicePlan } from '../archive/splice.ts';
import { CurlewError } from '../core/errors.ts';

/** All bytes of the plan in order; exactly as many as it says. */
export async function* bundleBytes(
  { segments }: SplicePlan,
  sources: readonly RangeSource[],
  { signal }: { readonly signal: AbortSignal },
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
    for await (const chunk of source.read(segment.offset, segment.length, { signal })) {
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
