/** Restores a damaged catalog from the packages in a store. */
import { reindex as reindexStore, type ReindexResult } from '../ship/release/reindex.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { REINDEX } from '../requests/release.ts';
import { useCase } from '../core/request.ts';

/** Packages at once. */
const JOBS = 8;

/** Reads the addon.json of each package in small ranges; reads a package completely only if its metadata is missing. */
export const reindex = useCase(REINDEX, async (request, context): Promise<ReindexResult> => {
  const { release: requested, dryRun = false, jobs = JOBS } = request;
  const release = requested === undefined ? undefined : checkedRelease(requested, '--release');
  const store = await openStoreFor(request.store, request, context, { create: 'existing' });
  return reindexStore(store, { release, dryRun, jobs, signal: context.signal });
});
