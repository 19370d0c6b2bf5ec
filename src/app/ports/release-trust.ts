/** Signed releases on the command line: which keys are trusted, what was seen before, and with which key one signs. */
import { dirname, join, resolve } from 'node:path';
import type { Catalogue } from '../../core/catalogue.ts';
import { canonicalJson } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { isObject, parseObject } from '../../core/json.ts';
import { makeFolder } from '../../platform/files/make-folder.ts';
import type { Signer } from '../../store/release/sign-release.ts';
import {
  readSigned,
  type NotCurrent,
  type ReleaseTrust,
  type SeenRelease,
  type SeenVersions,
  type SignedOptions,
} from '../../store/release/signed-release.ts';
import { readOwnFile, writeStateFile } from '../../platform/files/state-file.ts';
import { offeredCatalogue } from '../../store/release/offered.ts';
import type { Store } from '../../store/store.ts';
import { isVersionNumber } from '../../formats/signing/claim.ts';
import { publicPart, readPrivateKey } from '../../formats/signing/keys.ts';
import type { Context } from '../context.ts';
import { xdgFolder } from './config.ts';
import { passphraseOf, readKeyText, trustOf, type KeyRequest, type Trust, type TrustRequest } from './trust.ts';

const LIFETIME = 90 * 24 * 60 * 60 * 1000;

export interface SignerRequest extends KeyRequest {
  /** File of the private key that the release is signed with. */
  readonly sign?: string | undefined;
  /** How long a signed release may be current, in milliseconds; 90 days when absent. */
  readonly expires?: number | undefined;
}

/** What signs; undefined when nothing is to be signed. Keys that are trusted may have signed before. */
export async function signerOf(
  { sign: path, expires, ...trusted }: SignerRequest,
  context: Context,
  addresses: readonly string[],
): Promise<Signer | undefined> {
  if (path === undefined) {
    if (expires === undefined) return undefined;
    throw new CurlewError('USAGE', '--expires goes with --sign', { hint: '--sign FILE names the private key' });
  }
  const key = readPrivateKey(await readKeyText(resolve(context.cwd, path)), path, passphraseOf(context.env));
  const others = await trustOf(trusted, context);
  const keys = [publicPart(key, path), ...(others?.keys ?? [])];
  return {
    key,
    lifetime: expires ?? LIFETIME,
    trust: releaseTrust({ keys }, context, { addresses, file: undefined, remember: true }),
  };
}

/** A release that nobody signs is not seen by those who ask for signatures, where they had one before. */
export async function noteUnsigned(
  store: Store,
  { release, signer }: { readonly release: string; readonly signer: Signer | undefined },
  { report, signal }: Pick<Context, 'report' | 'signal'>,
): Promise<void> {
  if (signer !== undefined || (await store.head(storeKey.versionSignature, { signal })) === undefined) return;
  const text = `${store.address}: ${release} is not signed as the current release: who asks for signatures keeps the one before; curlew sign --store ${store.address} --release ${release} --key FILE signs it`;
  report({ type: 'note', level: 'warning', text });
}

/**
 * What the releases of a store are held against; undefined when nobody asks for signatures. `allowOlder`: a
 * release that is named may be older than one that was seen.
 */
export async function trustOfStore(
  request: TrustRequest,
  context: Context,
  { address, allowOlder }: { readonly address: string; readonly allowOlder: boolean },
): Promise<ReleaseTrust | undefined> {
  const trust = await trustOf(request, context);
  if (trust === undefined) return undefined;
  return { ...releaseTrust(trust, context, { addresses: [address], file: undefined, remember: true }), allowOlder };
}

/** What a release is held against that is read from these addresses. */
export function releaseTrust(
  { keys }: Pick<Trust, 'keys'>,
  { env }: Pick<Context, 'env'>,
  {
    addresses,
    file,
    remember,
  }: {
    /** Stores that are the same to the caller: none of them may be older than any of them was. */
    readonly addresses: readonly string[];
    /** Where it is kept what was seen; undefined for the user's own place. */
    readonly file: string | undefined;
    /** False for what may only look. */
    readonly remember: boolean;
  },
): ReleaseTrust {
  const own = join(xdgFolder(env, 'XDG_STATE_HOME', '.local/state'), 'curlew', SEEN_RELEASES);
  return { keys, now: new Date(), seen: seenVersions(file ?? own, addresses, remember) };
}

/** Keeps what a store says against a release that is named, and tells people about it. */
export function notingCurrent({ report }: Pick<Context, 'report'>): {
  readonly onNotCurrent: (found: NotCurrent) => void;
  /** For a result; empty where the store says nothing. */
  readonly result: () => { readonly notCurrent?: NotCurrent };
} {
  let said: NotCurrent | undefined;
  return {
    onNotCurrent: (found) => {
      said = found;
      report({ type: 'note', level: 'warning', text: found.text });
    },
    result: () => (said === undefined ? {} : { notCurrent: said }),
  };
}

/** The catalogue of a release, signed where that is asked for; of what nobody has signed, external add-ons count too. */
export async function catalogueOf(
  store: Store,
  { release, trust, onNotCurrent, signal }: Omit<SignedOptions, 'trust'> & { readonly trust: ReleaseTrust | undefined },
): Promise<Catalogue> {
  if (trust === undefined) return offeredCatalogue(store, { release, signal });
  return (await readSigned(store, { release, trust, onNotCurrent, signal })).parsed;
}

/** File name, in the install folder of a node or in the user's folder for state. */
export const SEEN_RELEASES = 'seen-releases.json';
const LIMIT = 1 << 20;

function seenVersions(path: string, addresses: readonly string[], writes: boolean): SeenVersions {
  return {
    highest: async (address) => {
      const { current } = await readSeen(path);
      const known = [address, ...addresses].flatMap((one) => current.get(one) ?? []);
      return known.length === 0 ? undefined : Math.max(...known);
    },
    newest: async (address) => {
      const { newest } = await readSeen(path);
      const known = [address, ...addresses].flatMap((one) => newest.get(one) ?? []);
      return known.toSorted((a, b) => b.version - a.version)[0];
    },
    remember: async (address, { release, version, isCurrent }) => {
      if (!writes) return;
      // Read again: another command may have seen more meanwhile.
      const { current, newest } = await readSeen(path);
      const isHigher = isCurrent && version > (current.get(address) ?? 0);
      const isNewer = version > (newest.get(address)?.version ?? 0);
      if (!isHigher && !isNewer) return;
      const stores = Object.fromEntries([...current, ...(isHigher ? [[address, version] as const] : [])]);
      const releases = Object.fromEntries([...newest, ...(isNewer ? [[address, { release, version }] as const] : [])]);
      await makeFolder(dirname(path));
      await writeStateFile(path, `${canonicalJson({ format: 1, stores, releases })}\n`);
    },
  };
}

interface Seen {
  /** Highest versions of statements that a release is the current one, by address. */
  readonly current: ReadonlyMap<string, number>;
  /** By address, too. */
  readonly newest: ReadonlyMap<string, SeenRelease>;
}

/** A file that says nothing would let anything pass: damage is told. */
async function readSeen(path: string): Promise<Seen> {
  const text = await readOwnFile(path, LIMIT);
  if (text === undefined) return { current: new Map(), newest: new Map() };
  const damaged = (): CurlewError =>
    new CurlewError('FILE_UNUSABLE', `read ${path}: it does not tell which releases were seen`, {
      hint: 'look at the stores, then remove it: the next command trusts what it sees',
    });
  const { format, stores, releases = {} } = parseObject(text, damaged);
  if (format !== 1 || !isObject(stores) || !isObject(releases)) throw damaged();
  const current = Object.entries(stores).map(([address, version]) => {
    if (isVersionNumber(version)) return [address, version] as const;
    throw damaged();
  });
  const newest = Object.entries(releases).map(([address, seen]) => {
    const { release, version } = isObject(seen) ? seen : {};
    if (typeof release === 'string' && isVersionNumber(version)) return [address, { release, version }] as const;
    throw damaged();
  });
  return { current: new Map(current), newest: new Map(newest) };
}
