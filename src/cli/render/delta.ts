/** What makes a delta, for people. */
import type { DeltaJson } from '../../core/bundle.ts';
import { formatBytes } from './units.ts';

/** A digest behind its label fills a line of eighty columns. */
export function deltaLines({ since, contents, size }: DeltaJson): readonly string[] {
  return [`a delta: makes a bundle of ${formatBytes(size)}`, `  since  ${since}`, `  bundle ${contents}`];
}
