/** Carries out a bundle plan into a file. */
import { open, rm, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { asError, errnoOf, fileError } from '../core/errors.ts';
import type { Report } from '../core/events.ts';
import { nameFile, refuseExisting } from '../files/name-file.ts';
import { partialName, sweepPartials } from '../files/partial.ts';
import { requireSpace } from '../files/space.ts';
import { bundleRange, type BundleSource } from './bytes.ts';
import { createEntryCheck } from './entry-check.ts';
import type { BundlePlan } from './plan.ts';
import { createWriteQueue } from './write-queue.ts';

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
  const doing = `write ${path}`;
  try {
    await refuseExisting(path, force);
    await sweepPartials(dirname(path));
    await requireSpace(dirname(path), plan.splice.size, doing);
    const partial = join(dirname(path), partialName());
    try {
      const file = await open(partial, 'wx', 0o644);
      try {
        await writeBundle(plan, sources, file, { path, verify, report, signal });
        await file.sync();
      } finally {
        await file.close();
      }
      await nameFile(partial, path, force);
    } finally {
      await rm(partial, { force: true });
    }
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    throw fileError(doing, error);
  }
}

async function writeBundle(
  plan: BundlePlan,
  sources: readonly BundleSource[],
  file: FileHandle,
  { path, verify, report, signal }: Pick<AssembleOptions, 'verify' | 'report' | 'signal'> & { readonly path: string },
): Promise<void> {
  const check = verify ? createEntryCheck(plan.splice.index, path, { signal }) : undefined;
  const writes = createWriteQueue(file);
  report({ type: 'step-started', id: path, title: basename(path), bytes: plan.splice.size });
  let size = 0;
  try {
    for await (const chunk of bundleRange(plan.splice, sources, { signal, allocate: writes.allocate })) {
      // The check first: a chunk may be written over once the queue has it.
      await check?.push(chunk);
      await writes.push(chunk);
      size += chunk.byteLength;
      report({ type: 'step-progress', id: path, bytes: size });
    }
    await writes.finish();
    await check?.finish();
  } catch (error) {
    check?.abandon();
    await writes.settle();
    report({ type: 'step-failed', id: path, error: asError(error) });
    throw error;
  }
  if (size !== plan.splice.size) throw new Error(`the plan says ${plan.splice.size} bytes, written were ${size}`);
  report({ type: 'step-done', id: path, outcome: verify ? 'written and verified' : 'written' });
}
