/** Signs releases in a store. */
import type { KeyObject } from 'node:crypto';
import type { Cancellable } from '../../core/cancellable.ts';
import { CATALOG_LIMIT, parseCatalog } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import type { Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, missingRelease } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import {
  nextVersion,
  readUnverified,
  signRelease,
  textsDigests,
  verifyRelease,
  type ReleaseStatement,
  type ReleaseTexts,
} from './release-statement.ts';
import { readSigned, requireReleaseContents, whyNotCurrent, type ReleaseTrust } from './signed-release.ts';

export interface Signer {
  readonly key: KeyObject;
  /** Validity of the statement about the current release, in milliseconds. */
  readonly lifetime: number;
  /** The public key, and those of others who sign this store. */
  readonly trust: ReleaseTrust;
}

/** The result of signing. */
export interface SignedStore {
  readonly store: string;
  readonly release: string;
  readonly version: number;
  /** ISO 8601; undefined for a release that is not current. */
  readonly expires: string | undefined;
}

/** The statement about the current release, which expires. */
export type SignedCurrent = ReleaseStatement & { readonly expires: Date };

/** Signs the catalog of a release, before the release becomes current. */
export async function signCatalog(
  store: Store,
  texts: ReleaseTexts,
  signer: Signer,
  { signal }: Cancellable,
): Promise<ReleaseStatement> {
  const key = storeKey.catalogSignature(texts.release);
  requireReleaseContents(parseCatalog(Buffer.from(texts.catalog).toString(), key), `${store.address}/${texts.release}`);
  for (let attempt = 1; ; attempt += 1) {
    const existing = await readText(store, key, signal);
    const { version } = await nextOf(store, signer, signal);
    const statement = {
      role: 'release',
      version,
      signed: signer.trust.now,
      expires: undefined,
      ...textsDigests(texts),
    } as const;
    if (await replace(store, key, signRelease(statement, signer.key), existing?.etag, { attempt, signal }))
      return statement;
  }
}

/**
 * Signs that a release is the current one. `STORE_CONFLICT` if `VERSION` names another release, because another publisher was
 * faster.
 */
export async function signCurrent(
  store: Store,
  texts: ReleaseTexts,
  signer: Signer,
  { signal }: Cancellable,
): Promise<SignedCurrent> {
  const { now, seen } = signer.trust;
  for (let attempt = 1; ; attempt += 1) {
    // Read before VERSION: a publisher that changes VERSION later also replaces this statement, and then ours is rejected.
    const { version, etag } = await nextOf(store, signer, signal);
    const current = await currentRelease(store, { signal });
    if (current?.release !== texts.release) {
      throw new CurlewError(
        'STORE_CONFLICT',
        `${store.address}: sign ${texts.release}: the current release is ${current?.release ?? 'none'}`,
        { hint: 'another publisher was faster; publish again on top of its release' },
      );
    }
    const expires = new Date(now.getTime() + signer.lifetime);
    const statement = { role: 'current', version, signed: now, expires, ...textsDigests(texts) } as const;
    if (
      !(await replace(store, storeKey.versionSignature, signRelease(statement, signer.key), etag, { attempt, signal }))
    )
      continue;
    await seen.remember(store.address, { release: texts.release, version, isCurrent: true });
    return statement;
  }
}

/**
 * Signs a release in a store. With a release string, signs the catalog and, if it is the current release, that too. Without
 * one, renews the signature of the current release, only if the existing signature is valid and has not expired, so that
 * renewal can be automated.
 */
export async function signStore(
  store: Store,
  {
    release,
    signer,
    signal,
  }: { readonly release: string | undefined; readonly signer: Signer; readonly signal: AbortSignal },
): Promise<SignedStore> {
  const texts =
    release === undefined ? await readRenewed(store, signer.trust, signal) : await readTexts(store, release, signal);
  const { version } = await signCatalog(store, texts, signer, { signal });
  const current = await currentRelease(store, { signal });
  const row = { store: store.address, release: texts.release };
  if (release !== undefined && current?.release !== release) return { ...row, version, expires: undefined };
  const statement = await signCurrent(store, texts, signer, { signal });
  return { ...row, version: statement.version, expires: secondsOf(statement.expires) };
}

/** The release that is signed as current, if `VERSION` agrees. They differ after a publish without a key. */
async function readRenewed(store: Store, trust: ReleaseTrust, signal: AbortSignal): Promise<ReleaseTexts> {
  const texts = await readSigned(store, { release: undefined, trust, signal });
  const current = await currentRelease(store, { signal });
  if (current === undefined || current.release === texts.release) return texts;
  throw new CurlewError(
    'STORE_CONFLICT',
    `${store.address}: renew the signature of ${texts.release}: ${current.release} is current, but not signed as current`,
    { hint: `sign it with curlew sign --store ${store.address} --release ${current.release} --key FILE` },
  );
}

async function readTexts(store: Store, release: string, signal: AbortSignal): Promise<ReleaseTexts> {
  const catalog = await store.read(storeKey.catalog(release), { limit: CATALOG_LIMIT, signal });
  if (catalog === undefined) throw await missingRelease(store, release, { signal });
  const parsed = parseCatalog(Buffer.from(catalog.data).toString(), `${store.address}/${release}`);
  if (parsed.release !== release) {
    throw new CurlewError('PACKAGE_INVALID', `${store.address}: ${release} has the catalog of ${parsed.release}`);
  }
  const inputs = await store.read(storeKey.inputs(release), { limit: CATALOG_LIMIT, signal });
  return { release, catalog: catalog.data, inputs: inputs?.data };
}

/** The next version for a store's statements, and the etag of the statement to replace. */
async function nextOf(
  store: Store,
  { trust }: Signer,
  signal: AbortSignal,
): Promise<{ readonly version: number; readonly etag: string | undefined }> {
  const existing = await readText(store, storeKey.versionSignature, signal);
  const highest = await trust.seen.highest(store.address);
  const seen = highest === undefined ? undefined : { version: highest, trusted: true };
  const versions = [lastOf(existing?.text, trust), seen].map((last) => nextVersion(last, trust.now));
  return { version: Math.max(...versions), etag: existing?.etag };
}

function lastOf(
  text: string | undefined,
  { keys }: ReleaseTrust,
): { readonly version: number; readonly trusted: boolean } | undefined {
  if (text === undefined) return undefined;
  const from = storeKey.versionSignature;
  try {
    return { version: verifyRelease({ text, from, about: from }, 'current', keys).statement.version, trusted: true };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    const claimed = readUnverified(text, from);
    return claimed === undefined ? undefined : { version: claimed.version, trusted: false };
  }
}

async function readText(
  store: Store,
  key: string,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly etag: string } | undefined> {
  const stored = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  return stored === undefined ? undefined : { text: Buffer.from(stored.data).toString(), etag: stored.object.etag };
}

const ATTEMPTS = 10;

/** True if the statement was written; false if another writer was faster and it must be signed again. */
async function replace(
  store: Store,
  key: string,
  text: string,
  etag: string | undefined,
  { attempt, signal }: { readonly attempt: number; readonly signal: AbortSignal },
): Promise<boolean> {
  const condition = etag === undefined ? ({ ifNoneMatch: '*' } as const) : { ifMatch: etag };
  try {
    await store.put(key, Buffer.from(text), { ...condition, signal });
    return true;
  } catch (error) {
    if (error instanceof CurlewError && error.code === 'STORE_CONFLICT' && attempt < ATTEMPTS) return false;
    throw error;
  }
}

/**
 * Warns about a release that is not signed as current in a signed store: readers that require signatures do not see it.
 * `planned`: the release does not exist yet, and could be signed when it is made.
 */
export async function noteUnsigned(
  store: Store,
  {
    release,
    signer,
    planned,
    now = new Date(),
  }: {
    readonly release: string;
    readonly signer: Signer | undefined;
    readonly planned: boolean;
    readonly now?: Date;
  },
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<void> {
  if (signer !== undefined) return;
  const unsigned = await whyNotCurrent(store, release, { now, signal });
  if (unsigned === undefined) return;
  const later = `curlew sign --store ${store.address} --release ${release} --key FILE`;
  const [state, cure] = planned
    ? ['would not be', `add --sign FILE, or sign it afterwards with ${later}`]
    : ['is not', `${later} signs it`];
  const { why = `${state} signed as the current release`, readers } = unsigned;
  const text = `${store.address}: ${release} ${why}: readers that require signatures ${readers}; ${cure}`;
  report({ type: 'note', level: 'warning', text });
}
