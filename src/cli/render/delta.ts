/** Renders the description of a delta. */
import type { DeltaJson } from '../../core/bundle.ts';
import { formatBytes } from './units.ts';

/** Short labels, so that a line with a digest has at most 80 columns. */
export function deltaLines({ since, contents, size }: DeltaJson): readonly string[] {
  return [`a delta: recreates a bundle of ${formatBytes(size)}`, `  since  ${since}`, `  bundle ${contents}`];
}
