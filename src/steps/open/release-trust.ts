/** Signed releases: trusted keys, versions that were seen before, and the signing key. */
import { join } from 'node:path';
import type { Catalog } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Signer } from '../../ship/release/sign-release.ts';
import {
  readSigned,
  type NotCurrent,
  type ReleaseTrust,
  type SignedOptions,
} from '../../ship/release/signed-release.ts';
import { offeredCatalog } from '../../ship/release/merged-catalog.ts';
import type { Store } from '../../ship/store/store.ts';
import { publicPart } from '../../formats/signing/keys.ts';
import type { Context } from '../../core/context.ts';
import { xdgFolder } from './config.ts';
import { SEEN_RELEASES, seenVersions } from './seen-versions.ts';
import { readSigningKey, trustOf, type Trust } from './trust.ts';
import type { TrustRequest, SignerRequest } from '../../requests/trust.ts';

const LIFETIME = 90 * 24 * 60 * 60 * 1000;

/** The signer of a release; undefined if it is not signed. Trusted keys may have signed earlier releases. `remember`: false for a dry run. */
export async function signerOf(
  { sign: path, expires, ...trusted }: SignerRequest,
  context: Context,
  { address, remember }: { readonly address: string; readonly remember: boolean },
): Promise<Signer | undefined> {
  if (path === undefined) {
    if (expires === undefined) return undefined;
    throw new CurlewError('USAGE', '--expires requires --sign', { hint: '--sign FILE names the private key' });
  }
  const key = await readSigningKey(path, context);
  const others = await trustOf(trusted, context);
  const keys = [publicPart(key, path), ...(others?.keys ?? [])];
  return {
    key,
    lifetime: expires ?? LIFETIME,
    trust: releaseTrust({ keys }, context, { addresses: [address], file: undefined, remember }),
  };
}

/**
 * Verifies releases of a store; undefined if no signatures are required. `allowOlder`: a named release may be older than one that
 * was seen.
 */
export async function trustOfStore(
  request: TrustRequest,
  context: Context,
  {
    address,
    allowOlder,
    remember = true,
  }: { readonly address: string; readonly allowOlder: boolean; readonly remember?: boolean },
): Promise<ReleaseTrust | undefined> {
  const trust = await trustOf(request, context);
  if (trust === undefined) return undefined;
  return { ...releaseTrust(trust, context, { addresses: [address], file: undefined, remember }), allowOlder };
}

const UNWRITABLE =
  'set XDG_STATE_HOME to a folder that stays from run to run: by what is kept there, an older release is recognized';

/** Verifies releases that are read from these addresses. */
export function releaseTrust(
  { keys }: Pick<Trust, 'keys'>,
  { env }: Pick<Context, 'env'>,
  {
    addresses,
    file,
    remember,
  }: {
    /** Equivalent stores: none may be older than the newest state of any of them. */
    readonly addresses: readonly string[];
    /** File of seen versions; undefined for the user's own. */
    readonly file: string | undefined;
    /** False for read-only commands. */
    readonly remember: boolean;
  },
): ReleaseTrust {
  const own = join(xdgFolder(env, 'XDG_STATE_HOME', '.local/state'), 'curlew', SEEN_RELEASES);
  const unwritable = file === undefined ? UNWRITABLE : undefined;
  return { keys, now: new Date(), seen: seenVersions(file ?? own, addresses, { writes: remember, unwritable }) };
}

/** Records and reports that a named release is not the current one. */
export function notingCurrent({ report }: Pick<Context, 'report'>): {
  readonly onNotCurrent: (release: NotCurrent) => void;
  /** For a result; empty if it is the current one. */
  readonly result: () => { readonly notCurrent?: NotCurrent };
} {
  let notCurrent: NotCurrent | undefined;
  return {
    onNotCurrent: (release) => {
      notCurrent = release;
      report({ type: 'note', level: 'warning', text: release.text });
    },
    result: () => (notCurrent === undefined ? {} : { notCurrent }),
  };
}

/** The catalog of a release, verified if signatures are required. Without signatures it includes external add-ons. */
export async function catalogOf(
  store: Store,
  { release, trust, onNotCurrent, signal }: Omit<SignedOptions, 'trust'> & { readonly trust: ReleaseTrust | undefined },
): Promise<Catalog> {
  if (trust === undefined) return offeredCatalog(store, { release, signal });
  return (await readSigned(store, { release, trust, onNotCurrent, signal })).parsed;
}
