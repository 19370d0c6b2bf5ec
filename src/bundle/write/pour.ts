/** Carries out a bundle plan: its bytes in order, to wherever they are written. */
import { asError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { bundleRange, isElsewhere, type BundleSource } from './bytes.ts';
import { createEntryCheck } from './entry-check.ts';
import type { BundlePlan } from '../plan.ts';
import { readAhead } from './read-ahead.ts';
import { createWriteQueue, type Write } from './write-queue.ts';

export interface PourOptions {
  /** Of what is written: progress and messages call it so. */
  readonly name: string;
  /** For people who watch. */
  readonly title: string;
  /** Pieces that may be written at the same time; with 1 they come in order. */
  readonly atOnce: number;
  /** Prove every byte on its way; a damaged payload is `DIGEST_MISMATCH`, anything else `PACKAGE_INVALID`. */
  readonly verify: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Writes all bytes of a bundle whose source n is the plan's source n; nothing is being written any more when it settles.
 * A source that has changed since the plan was made is `STORE_CONFLICT`.
 */
export async function pourBundle(
  { splice }: BundlePlan,
  sources: readonly BundleSource[],
  write: Write,
  { name, title, atOnce, verify, report, signal }: PourOptions,
): Promise<void> {
  const check = verify ? createEntryCheck(splice.index, name, { signal }) : undefined;
  const writes = createWriteQueue(write, { atOnce });
  const read = sources.some(isElsewhere) ? readAhead : bundleRange;
  report({ type: 'step-started', id: name, title, bytes: splice.size });
  let size = 0;
  try {
    for await (const chunk of read(splice, sources, { signal, allocate: writes.allocate })) {
      // The check first: a chunk may be written over once the queue has it.
      await check?.push(chunk);
      await writes.push(chunk);
      size += chunk.byteLength;
      report({ type: 'step-progress', id: name, bytes: size });
    }
    await writes.finish();
    await check?.finish();
  } catch (error) {
    check?.abandon();
    await writes.settle();
    report({ type: 'step-failed', id: name, error: asError(error) });
    throw error;
  }
  if (size !== splice.size) throw new Error(`the plan says ${splice.size} bytes, written were ${size}`);
  report({ type: 'step-done', id: name, outcome: verify ? 'written and verified' : 'written' });
}
