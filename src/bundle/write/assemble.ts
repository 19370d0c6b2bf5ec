/** Carries out a bundle plan into a file. */
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Report } from '../../core/events.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { writeWhole } from '../../platform/files/write-whole.ts';
import type { BundleSource } from './bytes.ts';
import type { BundlePlan } from '../plan.ts';
import { pourBundle } from './pour.ts';
import { WRITES_AT_ONCE } from './write-queue.ts';

export interface AssembleOptions {
  /** Replace a file that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
  /** Prove every byte on its way; a damaged payload is `DIGEST_MISMATCH`, anything else `PACKAGE_INVALID`. */
  readonly verify: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Writes a bundle whose source n is the plan's package n. The file appears under its name only whole and synced; what is
 * cut off leaves nothing.
 */
export async function assembleBundle(
  plan: BundlePlan,
  sources: readonly BundleSource[],
  path: string,
  { force, verify, report, signal }: AssembleOptions,
): Promise<void> {
  const options = { name: path, title: basename(path), atOnce: WRITES_AT_ONCE, verify, report, signal };
  const write = async (file: FileHandle): Promise<void> =>
    pourBundle(plan, sources, async (piece, at) => writeFully(file, piece, at), options);
  await writeWhole(path, write, { force, size: plan.splice.size });
}
