/** Signing releases where they lie. */
import type { KeyObject } from 'node:crypto';
import { CATALOGUE_LIMIT, parseCatalogue } from '../../core/catalogue.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, missingRelease } from '../catalogue.ts';
import type { Store } from '../store.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import {
  nextVersion,
  readRelease,
  signRelease,
  textsDigests,
  verifyRelease,
  type ReleaseStatement,
  type ReleaseTexts,
} from './release-statement.ts';
import { readSigned, requireContents, type ReleaseTrust } from './signed-release.ts';

export interface Signer {
  readonly key: KeyObject;
  /** How long the current release may be believed, in milliseconds. */
  readonly lifetime: number;
  /** The key's public part, and those of others who sign this store. */
  readonly trust: ReleaseTrust;
}

/** What was signed. */
export interface SignedStore {
  readonly store: string;
  readonly release: string;
  readonly version: number;
  /** ISO 8601; undefined for a release that is not the current one. */
  readonly expires: string | undefined;
}

interface Cancellable {
  readonly signal: AbortSignal;
}

type Statement<Role> = Extract<ReleaseStatement, { role: Role }>;

/** Signs that a release is this catalogue, before it may become the current one. */
export async function signCatalogue(
  store: Store,
  texts: ReleaseTexts,
  signer: Signer,
  { signal }: Cancellable,
): Promise<Statement<'release'>> {
  const key = storeKey.catalogueSignature(texts.release);
  requireContents(parseCatalogue(Buffer.from(texts.catalogue).toString(), key), `${store.address}/${texts.release}`);
  for (let attempt = 1; ; attempt += 1) {
    const there = await readText(store, key, signal);
    const { version } = await nextOf(store, signer, signal);
    const statement = { role: 'release', version, signed: signer.trust.now, ...textsDigests(texts) } as const;
    if (await replace(store, key, signRelease(statement, signer.key), there?.etag, { attempt, signal }))
      return statement;
  }
}

/**
 * Signs that a release is the current one, as `VERSION` says it is. When somebody else has made another one current
 * meanwhile it is `STORE_CONFLICT`.
 */
export async function signCurrent(
  store: Store,
  texts: ReleaseTexts,
  signer: Signer,
  { signal }: Cancellable,
): Promise<Statement<'current'>> {
  const { now, seen } = signer.trust;
  for (let attempt = 1; ; attempt += 1) {
    // Read before VERSION is: whoever makes another release current from now on replaces it, and ours is refused.
    const { version, etag } = await nextOf(store, signer, signal);
    const current = await currentRelease(store, { signal });
    if (current?.release !== texts.release) {
      throw new CurlewError(
        'STORE_CONFLICT',
        `${store.address}: sign ${texts.release}: ${current?.release ?? 'none'} is the current release`,
        { hint: 'another publisher was faster; publish again on top of theirs' },
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
 * Signs a release that lies in a store. Named, it is signed as it is; when it is the current one, so is that. Not named,
 * the signature of the current release is renewed: only what one of the keys has signed, and what may still be believed,
 * so that it can be done without looking.
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
  const { version } = await signCatalogue(store, texts, signer, { signal });
  const current = await currentRelease(store, { signal });
  const row = { store: store.address, release: texts.release };
  if (release !== undefined && current?.release !== release) return { ...row, version, expires: undefined };
  const statement = await signCurrent(store, texts, signer, { signal });
  return { ...row, version: statement.version, expires: secondsOf(statement.expires) };
}

/** The release that is signed as the current one, if `VERSION` says so too: a publish without a key leaves it behind. */
async function readRenewed(store: Store, trust: ReleaseTrust, signal: AbortSignal): Promise<ReleaseTexts> {
  const texts = await readSigned(store, { release: undefined, trust, signal });
  const current = await currentRelease(store, { signal });
  if (current === undefined || current.release === texts.release) return texts;
  throw new CurlewError(
    'STORE_CONFLICT',
    `${store.address}: renew the signature of ${texts.release}: ${current.release} is the current release, and not signed as such`,
    { hint: `curlew sign --store ${store.address} --release ${current.release} --key FILE signs it` },
  );
}

async function readTexts(store: Store, release: string, signal: AbortSignal): Promise<ReleaseTexts> {
  const catalogue = await store.read(storeKey.catalogue(release), { limit: CATALOGUE_LIMIT, signal });
  if (catalogue === undefined) throw await missingRelease(store, release, { signal });
  const parsed = parseCatalogue(Buffer.from(catalogue.data).toString(), `${store.address}/${release}`);
  if (parsed.release !== release) {
    throw new CurlewError('PACKAGE_INVALID', `${store.address}: ${release} has the catalogue of ${parsed.release}`);
  }
  const inputs = await store.read(storeKey.inputs(release), { limit: CATALOGUE_LIMIT, signal });
  return { release, catalogue: catalogue.data, inputs: inputs?.data };
}

/** The next version of a store's statements, and the etag of the one that it replaces. */
async function nextOf(
  store: Store,
  { trust }: Signer,
  signal: AbortSignal,
): Promise<{ readonly version: number; readonly etag: string | undefined }> {
  const there = await readText(store, storeKey.versionSignature, signal);
  const highest = await trust.seen.highest(store.address);
  const seen = highest === undefined ? undefined : { version: highest, trusted: true };
  const versions = [lastOf(there?.text, trust), seen].map((last) => nextVersion(last, trust.now));
  return { version: Math.max(...versions), etag: there?.etag };
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
    const said = readRelease(text, from);
    return said === undefined ? undefined : { version: said.version, trusted: false };
  }
}

async function readText(
  store: Store,
  key: string,
  signal: AbortSignal,
): Promise<{ readonly text: string; readonly etag: string } | undefined> {
  const found = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  return found === undefined ? undefined : { text: Buffer.from(found.data).toString(), etag: found.object.etag };
}

const ATTEMPTS = 10;

/** True when it is there; false when somebody else has written meanwhile, and it has to be made anew. */
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
