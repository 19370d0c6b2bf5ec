/** Removes old releases from a store. */
import { CurlewError } from '../core/errors.ts';
import { prune as pruneStore, type PruneResult } from '../ship/release/prune.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { PRUNE } from '../requests/release.ts';
import { useCase } from '../core/request.ts';

/** Objects at once. */
const JOBS = 8;

/** The current release and all newer ones always stay. Throws `USAGE` without `keep` and `olderThan`. */
export const prune = useCase(PRUNE, async (request, context): Promise<PruneResult> => {
  const { report, signal } = context;
  const { from, keep, olderThan, dryRun = false, jobs = JOBS } = request;
  if (keep === undefined && olderThan === undefined) {
    throw new CurlewError('USAGE', 'curlew prune: --keep or --older-than is required', {
      hint: '--keep 10, --older-than 30d, or both',
    });
  }
  const store = await openStoreFor(from, request, context, { create: 'existing' });
  return pruneStore(store, { keep, olderThan, now: new Date(), dryRun, jobs, report, signal });
});
