/** Removes old releases from a store. */
import { CurlewError } from '../core/errors.ts';
import { prune as pruneStore, type PruneResult } from '../store/release/prune.ts';
import type { Context } from '../core/context.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';

/** Objects at once. */
const JOBS = 8;

/** With both `keep` and `olderThan`, a release is removed only if it meets both. */
export interface PruneRequest extends StoreRequest {
  /** The store to remove from. */
  readonly from: string;
  /** Number of newest releases to keep. */
  readonly keep?: number | undefined;
  /** Milliseconds: keep younger releases. */
  readonly olderThan?: number | undefined;
  /** Determine what would be removed and remove nothing. */
  readonly dryRun?: boolean | undefined;
  /** Objects at once; 8 when absent. */
  readonly jobs?: number | undefined;
}

/** The current release and all newer ones always stay. Throws `USAGE` without `keep` and `olderThan`. */
export async function prune(request: PruneRequest, context: Context): Promise<PruneResult> {
  const { report, signal } = context;
  const { from, keep, olderThan, dryRun = false, jobs = JOBS } = request;
  if (keep === undefined && olderThan === undefined) {
    throw new CurlewError('USAGE', 'curlew prune: --keep or --older-than is required', {
      hint: '--keep 10, --older-than 30d, or both',
    });
  }
  const store = await openStoreFor(from, request, context, { create: false });
  return pruneStore(store, { keep, olderThan, now: new Date(), dryRun, jobs, report, signal });
}
