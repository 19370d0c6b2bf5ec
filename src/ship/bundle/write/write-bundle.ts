/** Writes the bytes of a planned bundle, in order, to a file or any other target. */
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Reporting } from '../../../core/cancellable.ts';
import { asError } from '../../../core/errors.ts';
import { countBytes, reportStep } from '../../../core/events.ts';
import { writeFully } from '../../../platform/files/write-fully.ts';
import { writeWhole } from '../../../platform/files/write-whole.ts';
import { bundleRange, isRemoteSource, type BundleSource } from './bytes.ts';
import { createEntryCheck, sourceNames } from './entry-check.ts';
import type { BundlePlan } from '../bundle-plan.ts';
import { readAhead } from './read-ahead.ts';
import { WRITE_CONCURRENCY, writeChunks, type Write } from './write-queue.ts';

export interface WriteBundleOptions extends Reporting {
  /** Name of the target in progress events and messages. */
  readonly name: string;
  /** Title of the step for users. */
  readonly title: string;
  /** Number of concurrent writes; with 1 they are in order. */
  readonly concurrency: number;
  /** Verify every byte while writing; a damaged payload is `DIGEST_MISMATCH`, other damage `PACKAGE_INVALID`. */
  readonly verify: boolean;
}

/**
 * Writes all bytes of a bundle; `sources[n]` is the plan's source n. All writes have ended when it settles.
 * A source that has changed since planning is `STORE_CONFLICT`.
 */
export async function writeBundle(
  plan: BundlePlan,
  sources: readonly BundleSource[],
  write: Write,
  options: WriteBundleOptions,
): Promise<void> {
  const work = async (): Promise<void> => writeBytes(plan, sources, write, options);
  await reportStep(options.report, stepOf(plan, options), work, () => outcomeOf(options));
}

function stepOf({ splice }: BundlePlan, { name, title }: Pick<WriteBundleOptions, 'name' | 'title'>) {
  return { id: name, title, bytes: splice.size };
}

function outcomeOf({ verify }: Pick<WriteBundleOptions, 'verify'>): string {
  return verify ? 'written and verified' : 'written';
}

async function writeBytes(
  { splice }: BundlePlan,
  sources: readonly BundleSource[],
  write: Write,
  { name, concurrency, verify, report, signal }: WriteBundleOptions,
): Promise<void> {
  const check = verify ? createEntryCheck(splice.index, sourceNames(splice, sources, name), { signal }) : undefined;
  const read = sources.some(isRemoteSource) ? readAhead : bundleRange;
  const onBytes = countBytes(report, name);
  let size: number;
  try {
    size = await writeChunks((allocate) => read(splice, sources, { signal, allocate }), write, {
      concurrency,
      check: check?.push,
      onBytes,
    });
    await check?.finish();
  } catch (error) {
    check?.abandon();
    throw error;
  }
  if (size !== splice.size) throw new Error(`wrote ${size} bytes instead of the plan's ${splice.size}`);
}

export interface WriteFileOptions extends Pick<WriteBundleOptions, 'verify' | 'report' | 'signal'> {
  /** Replace an existing file; otherwise it is `FILE_EXISTS`. */
  readonly force: boolean;
  /** File mode; default 0644. */
  readonly mode?: number | undefined;
}

/**
 * Writes a bundle; `sources[n]` is the plan's source n. The file appears only when complete and synced; an interruption
 * leaves no file.
 */
export async function writeBundleFile(
  plan: BundlePlan,
  sources: readonly BundleSource[],
  path: string,
  { force, mode = 0o644, verify, report, signal }: WriteFileOptions,
): Promise<void> {
  const options = { name: path, title: basename(path), concurrency: WRITE_CONCURRENCY, verify, report, signal };
  let hasBegun = false;
  const write = async (file: FileHandle): Promise<void> => {
    hasBegun = true;
    report({ type: 'step-started', ...stepOf(plan, options) });
    await writeBytes(plan, sources, async (piece, at) => writeFully(file, piece, at), options);
  };
  try {
    await writeWhole(path, write, { force, mode, size: plan.splice.size });
  } catch (error) {
    // Without a name or room for the file, nothing has begun.
    if (hasBegun) report({ type: 'step-failed', id: path, error: asError(error) });
    throw error;
  }
  // The file is written once it has its name, which another run may take before.
  report({ type: 'step-done', id: path, outcome: outcomeOf(options) });
}
