/** Copies a release from one store to another without downloading it. */
import { CurlewError } from '../core/errors.ts';
import { promote as promoteRelease, sourceRelease, type PromoteResult } from '../ship/release/promote.ts';
import { checkedRelease } from '../ship/release/release-name.ts';
import { signerOf, trustOfStore } from '../steps/open/release-trust.ts';
import { noteUnsigned } from '../ship/release/sign-release.ts';
import { openStoreFor } from '../steps/open/stores.ts';
import { PROMOTE } from '../requests/release.ts';
import { useCase } from '../core/request.ts';

/** Packages copied at once. */
const JOBS = 8;

/** Readers see the whole release or nothing. After an interruption, the same request completes it. */
export const promote = useCase(PROMOTE, async (request, context): Promise<PromoteResult> => {
  const { report, signal } = context;
  const { deep = false, stream = false, makeCurrent = false, dryRun = false, jobs = JOBS } = request;
  const from = parseStoreRelease(request.from, '--from');
  const to = parseStoreRelease(request.to, '--to');
  const store = await openStoreFor(from.store, request, context, { create: false });
  // Older releases are allowed: the target store decides which release may become current.
  const trust = await trustOfStore(request, context, { address: store.address, allowOlder: true });
  const source = await sourceRelease(store, { release: from.release, trust, signal });
  const target = await openStoreFor(to.store, request, context, { create: dryRun ? 'never' : true });
  const signer = await signerOf(request, context, { address: target.address, remember: !dryRun });
  const flags = { deep, stream, dryRun, makeCurrent };
  const options = { to: target, release: to.release, signer, ...flags, jobs, report, signal };
  const promoted = await promoteRelease(source, options);
  await noteUnsigned(target, { release: promoted.release, signer, planned: dryRun }, context);
  return promoted;
});

interface StoreRelease {
  readonly store: string;
  /** Undefined without an `@`. */
  readonly release: string | undefined;
}

/** The release follows the last `@` of the last path component; other `@` belong to the address. */
function parseStoreRelease(text: string, option: string): StoreRelease {
  const at = text.lastIndexOf('@');
  if (at === -1 || text.includes('/', at)) return { store: text, release: undefined };
  const store = text.slice(0, at);
  if (store === '') throw new CurlewError('USAGE', `${option}: the store before the @ is missing`);
  return { store, release: checkedRelease(text.slice(at + 1), option) };
}
