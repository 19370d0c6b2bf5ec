/** Makes a release of one store a release of another, without its bytes passing through here. */
import { CurlewError } from '../core/errors.ts';
import { promote as promoteRelease, sourceRelease, type PromoteResult } from '../store/release/promote.ts';
import { checkedRelease } from '../store/release/release-name.ts';
import type { Context } from './context.ts';
import { noteUnsigned, signerOf, trustOfStore, type SignerRequest } from './ports/release-trust.ts';
import { openStoreFor, type StoreRequest } from './ports/stores.ts';

/** Packages on their way at once. */
const JOBS = 8;

export interface PromoteRequest extends StoreRequest, SignerRequest {
  /** `STORE@R`: where the release is; the store's current one without an `@`. */
  readonly from: string;
  /** `STORE@R`: where it goes, made if need be; under the same name without an `@`. */
  readonly to: string;
  /** Every package is read in its new place, and its digest compared. */
  readonly deep?: boolean | undefined;
  /** Bytes pass through here where the stores cannot copy from each other. */
  readonly stream?: boolean | undefined;
  /** A release is made current that was published before the current one. */
  readonly makeCurrent?: boolean | undefined;
  /** Everything is checked, and nothing is written. */
  readonly dryRun?: boolean | undefined;
  /** Packages at once; 8 when absent. */
  readonly jobs?: number | undefined;
}

/** Readers see the release whole or not at all. Cut off anywhere, the same request again completes it. */
export async function promote(request: PromoteRequest, context: Context): Promise<PromoteResult> {
  const { report, signal } = context;
  const { deep = false, stream = false, makeCurrent = false, dryRun = false, jobs = JOBS } = request;
  const from = parseStoreRelease(request.from, '--from');
  const to = parseStoreRelease(request.to, '--to');
  const store = await openStoreFor(from.store, request, context, { create: false });
  // Which release may become current is asked of the store that it goes to.
  const trust = await trustOfStore(request, context, { address: store.address, allowOlder: true });
  const source = await sourceRelease(store, { release: from.release, trust, signal });
  const target = await openStoreFor(to.store, request, context, { create: !dryRun });
  const signer = await signerOf(request, context, [target.address]);
  const flags = { deep, stream, dryRun, makeCurrent };
  const options = { to: target, release: to.release, signer, ...flags, jobs, report, signal };
  const promoted = await promoteRelease(source, options);
  if (!dryRun) await noteUnsigned(target, { release: promoted.release, signer }, context);
  return promoted;
}

interface StoreRelease {
  readonly store: string;
  /** Undefined without an `@`. */
  readonly release: string | undefined;
}

/** The release stands behind the last `@` of the last component; other `@` belong to the address. */
function parseStoreRelease(text: string, option: string): StoreRelease {
  const at = text.lastIndexOf('@');
  if (at === -1 || text.includes('/', at)) return { store: text, release: undefined };
  const store = text.slice(0, at);
  if (store === '') throw new CurlewError('USAGE', `${option}: no store stands before the @`);
  return { store, release: checkedRelease(text.slice(at + 1), option) };
}
