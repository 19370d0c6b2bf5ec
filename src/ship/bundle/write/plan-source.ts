/** A planned bundle as a range source, like an existing one. */
import type { RangeSource } from '../../../formats/archive/entry.ts';
import type { SplicePlan } from '../../../formats/archive/splice.ts';
import { bundleRange, isRemoteSource, sourceAt, type BundleSource } from './bytes.ts';
import { readAhead } from './read-ahead.ts';

/** Reads ahead from remote sources. */
export function planSource(name: string, splice: SplicePlan, sources: readonly BundleSource[]): RangeSource {
  const isRemote = sources.some(isRemoteSource);
  return {
    name,
    nameAt: (offset) => sourceAt(splice, sources, offset)?.name ?? name,
    size: splice.size,
    read: (offset, length, { signal, allocate }) =>
      isRemote
        ? // Several chunks are in flight at once, so the caller's memory for one chunk cannot be used.
          readAhead(splice, sources, { offset, length, signal, allocate: (size) => Buffer.allocUnsafeSlow(size) })
        : bundleRange(splice, sources, { offset, length, signal, allocate }),
  };
}
