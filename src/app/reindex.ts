/** Restores a damaged catalog from the packages in a store. */
import { reindex as reindexStore, type ReindexResult } from '../store/release/reindex.ts';
import { checkedRelease } from '../store/release/release-name.ts';
import type { Context } from '../core/context.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';

/** Packages at once. */
const JOBS = 8;

export interface ReindexRequest extends StoreRequest {
  /** Address of the store. */
  readonly store: string;
  /** The current one when absent. */
  readonly release?: string | undefined;
  /** Determine what could be restored and write nothing. */
  readonly dryRun?: boolean | undefined;
  /** Packages at once; 8 when absent. */
  readonly jobs?: number | undefined;
}

/** Reads the addon.json of each package in small ranges; reads a package completely only if its metadata is missing. */
export async function reindex(request: ReindexRequest, context: Context): Promise<ReindexResult> {
  const { release: given, dryRun = false, jobs = JOBS } = request;
  const release = given === undefined ? undefined : checkedRelease(given, '--release');
  const store = await openStoreFor(request.store, request, context, { create: false });
  return reindexStore(store, { release, dryRun, jobs, signal: context.signal });
}
