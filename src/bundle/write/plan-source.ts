/** A planned bundle as a source of ranges, like one that is there. */
import type { RangeSource } from '../../formats/archive/entry.ts';
import type { SplicePlan } from '../../formats/archive/splice.ts';
import { bundleRange, isElsewhere, type BundleSource } from './bytes.ts';
import { readAhead } from './read-ahead.ts';

/** Long ranges of sources that answer slowly are read ahead. */
export function planSource(name: string, splice: SplicePlan, sources: readonly BundleSource[]): RangeSource {
  const elsewhere = sources.some(isElsewhere);
  return {
    name,
    size: splice.size,
    read: (offset, length, { signal, allocate }) =>
      elsewhere
        ? // Several chunks are on their way at once: memory for the next one alone is of no use.
          readAhead(splice, sources, { offset, length, signal, allocate: (size) => Buffer.allocUnsafeSlow(size) })
        : bundleRange(splice, sources, { offset, length, signal, allocate }),
  };
}
