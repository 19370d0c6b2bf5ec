/** Removes old releases from a store. */
import { CurlewError } from '../core/errors.ts';
import { prune as pruneStore, type PruneResult } from '../store/release/prune.ts';
import type { Context } from './context.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';

/** Objects at once. */
const JOBS = 8;

/** With both `keep` and `olderThan` a release goes only when both let it go. */
export interface PruneRequest extends StoreRequest {
  /** The store to remove from. */
  readonly from: string;
  /** How many of the newest releases stay. */
  readonly keep?: number | undefined;
  /** Milliseconds: what is younger stays. */
  readonly olderThan?: number | undefined;
  /** What would be removed is found, and nothing is removed. */
  readonly dryRun?: boolean | undefined;
  /** Objects at once; 8 when absent. */
  readonly jobs?: number | undefined;
}

/** The current release always stays, and so does every release as new as it. Throws `USAGE` where nothing says what stays. */
export async function prune(request: PruneRequest, context: Context): Promise<PruneResult> {
  const { report, signal } = context;
  const { from, keep, olderThan, dryRun = false, jobs = JOBS } = request;
  if (keep === undefined && olderThan === undefined) {
    throw new CurlewError('USAGE', 'curlew prune: say what stays', { hint: '--keep 10, --older-than 30d, or both' });
  }
  const store = await openStoreFor(from, request, context, { create: false });
  return pruneStore(store, { keep, olderThan, now: new Date(), dryRun, jobs, report, signal });
}
