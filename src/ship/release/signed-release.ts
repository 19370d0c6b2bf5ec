/** Reads releases of a store that are signed with a trusted key. */
import type { Cancellable } from '../../core/cancellable.ts';
import { CATALOG_LIMIT, parseCatalog, type Catalog } from '../../core/catalog.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError, requireRefusal } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, withoutReleaseHint } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { writingHint } from '../store/web.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import type { TrustedKey } from '../../formats/signing/keys.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import {
  readUnverified,
  staleness,
  verifyRelease,
  type ReleaseStatement,
  type ReleaseTexts,
} from './release-statement.ts';

/** The greatest statement versions seen on this machine, per store: they reveal that an old state of a store was restored. */
export interface SeenVersions {
  /** Undefined for a store that was never read: then any version is accepted. */
  readonly highest: (address: string) => Promise<number | undefined>;
  /** The newest release that was read, by name or as the current one; undefined for a store that was never read. */
  readonly newest: (address: string) => Promise<SeenRelease | undefined>;
  readonly remember: (address: string, seen: SeenRelease & { readonly isCurrent: boolean }) => Promise<void>;
}

export interface SeenRelease {
  readonly release: string;
  /** Version of its statement. */
  readonly version: number;
}

/** The basis for verifying a release. */
export interface ReleaseTrust {
  /** One signature by any of these keys is enough. */
  readonly keys: readonly TrustedKey[];
  readonly now: Date;
  readonly seen: SeenVersions;
  /** Allow a named release that is older than one that was read before. */
  readonly allowOlder?: boolean;
}

export interface SignedRelease extends ReleaseTexts {
  readonly parsed: Catalog;
  /** Name of the key. */
  readonly signedBy: string;
  /** The version of its statement. */
  readonly version: number;
}

/** The current release of a store, for a user who requested another one by name. */
export interface NotCurrent {
  readonly named: string;
  /** Undefined if its signature is not valid. */
  readonly current: string | undefined;
  /** When it was signed as current, ISO 8601. */
  readonly since: string | undefined;
  /** The message, with a hint. */
  readonly text: string;
}

export interface SignedOptions extends Cancellable {
  /** Undefined for the current release. */
  readonly release: string | undefined;
  readonly trust: ReleaseTrust;
  /** Called if a named release is older than the store's current one, or if the current one cannot be verified. */
  readonly onNotCurrent?: ((release: NotCurrent) => void) | undefined;
}

/**
 * Reads the release that is signed as current, regardless of `VERSION`, or a named one, whose signature never expires.
 * `SIGNATURE_INVALID`: the signature is missing, by an unknown key or expired, the current release is older than one seen
 * before, or the catalog does not match. `DOWNGRADE`: a named release is older than one that was read before, unless allowed.
 * Omits inputs that do not match their signature, since they are optional.
 */
export async function readSigned(
  store: Store,
  { release, trust, onNotCurrent, signal }: SignedOptions,
): Promise<SignedRelease> {
  if (release !== undefined) {
    const { statement, signedBy } = await requireNamed(store, release, trust, signal);
    if (trust.allowOlder !== true) await refuseOlder(store, statement, trust);
    const texts = await textsOf(store, statement, signedBy, signal);
    await trust.seen.remember(store.address, { release, version: statement.version, isCurrent: false });
    const newer = onNotCurrent && (await compareWithCurrent(store, statement, trust, signal));
    if (newer !== undefined) onNotCurrent?.(newer);
    return texts;
  }
  const { statement, signedBy } = await requireCurrent(store, trust, signal);
  const texts = await textsOf(store, statement, signedBy, signal);
  const { version } = statement;
  await trust.seen.remember(store.address, { release: statement.release, version, isCurrent: true });
  return texts;
}

/** Throws `DOWNGRADE` for a release older than the newest read one. One release may have statements with several versions. */
async function refuseOlder(
  store: Store,
  { release, version }: ReleaseStatement,
  { seen }: ReleaseTrust,
): Promise<void> {
  const newest = await seen.newest(store.address);
  if (newest === undefined || newest.release === release || version >= newest.version) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${store.address}: ${release} is signed as version ${version}, but version ${newest.version}, ${newest.release}, was read`,
    { hint: `request the newer release, or none; --allow-downgrade accepts ${release}` },
  );
}

/**
 * Whether the store's current release is newer than a named one, or cannot be verified; undefined otherwise. The result is not
 * remembered: a pinned release would count as a downgrade the next time.
 */
async function compareWithCurrent(
  store: Store,
  named: ReleaseStatement,
  { keys, now, seen }: ReleaseTrust,
  signal: AbortSignal,
): Promise<NotCurrent | undefined> {
  const { address } = store;
  const [from, about] = [storeKey.versionSignature, currentOf(store)];
  try {
    const stored = await store.read(from, { limit: SIGNATURE_LIMIT, signal });
    if (stored === undefined) return undefined;
    const text = Buffer.from(stored.data).toString();
    const { statement } = verifyRelease({ text, from, about }, 'current', keys);
    const { release: current, version, signed } = statement;
    const common = { named: named.release, current, since: secondsOf(signed) };
    const stale = staleness(statement, { now, highest: await seen.highest(address) });
    if (stale !== undefined) return { ...common, text: `${about}: ${stale.what} (${stale.hint})` };
    if (current === named.release || version <= named.version) return undefined;
    const what = `${named.release} was requested, but ${current} is the current release since ${common.since}`;
    return { ...common, text: `${address}: ${what}; ${TAKE_CURRENT}` };
  } catch (error) {
    requireRefusal(error, signal);
    const hint = error.hint === undefined ? '' : ` (${error.hint})`;
    return { named: named.release, current: undefined, since: undefined, text: error.message + hint };
  }
}

const TAKE_CURRENT =
  'unless it is pinned on purpose, omit --release, or download the script that names it from curlew serve again';

function currentOf({ address }: Store): string {
  return `the current release of ${address}`;
}

/** Why readers that require signatures do not take a release as the current one, and what they do instead. */
interface Unsigned {
  /** Undefined if the signature is of another release. */
  readonly why: string | undefined;
  readonly readers: string;
}

/**
 * For a publisher without keys: undefined if the store's signature names this release and its catalog as current, until a time
 * after `now`, or if the store has no signature. The signature itself is not verified.
 */
export async function whyNotCurrent(
  store: Store,
  release: string,
  { now, signal }: { readonly now: Date; readonly signal: AbortSignal },
): Promise<Unsigned | undefined> {
  const from = storeKey.versionSignature;
  const stored = await store.read(from, { limit: SIGNATURE_LIMIT, signal });
  if (stored === undefined) return undefined;
  const claimed = readUnverified(Buffer.from(stored.data).toString(), from);
  const { expires } = claimed ?? {};
  if (claimed?.role !== 'current' || claimed.release !== release || expires === undefined)
    return { why: undefined, readers: 'use the one before' };
  const readers = 'refuse it';
  if (expires <= now) return { why: `was signed as the current release until ${secondsOf(expires)}`, readers };
  const catalog = await store.read(storeKey.catalog(release), { limit: CATALOG_LIMIT, signal });
  if (catalog !== undefined && digestOf(catalog.data) === claimed.catalog) return undefined;
  return { why: 'has another catalog than was signed', readers };
}

/**
 * Reads the release that `VERSION` names, as the base of the next release: the signed current release, or a release that was
 * signed later and whose publisher was interrupted before it signed it as current. Rejects an older signed release: packages
 * taken from it would be outdated.
 */
export async function readSignedBase(
  store: Store,
  { release, trust, signal }: SignedOptions & { readonly release: string },
): Promise<SignedRelease> {
  const current = await requireCurrent(store, trust, signal, `${release}, on which the next release is based,`);
  if (current.statement.release === release) return textsOf(store, current.statement, current.signedBy, signal);
  const { statement, signedBy } = await requireNamed(store, release, trust, signal);
  if (statement.version > current.statement.version) return textsOf(store, statement, signedBy, signal);
  throw invalid(
    `${store.address}: VERSION names ${release}, but ${current.statement.release} was signed as the current release later`,
    'an old VERSION was restored: check who can write to the store, and correct it',
  );
}

interface Verified {
  readonly statement: ReleaseStatement;
  readonly signedBy: string;
}

async function requireNamed(
  store: Store,
  release: string,
  { keys }: ReleaseTrust,
  signal: AbortSignal,
): Promise<Verified> {
  const from = storeKey.catalogSignature(release);
  const text = await requireSignature(store, from, { release, described: release, signal });
  const about = `${release} of ${store.address}`;
  const { statement, signedBy } = verifyRelease({ text, from, about }, 'release', keys);
  if (statement.release === release) return { statement, signedBy: signedBy.name };
  throw invalid(`verify ${about}: ${from} is the signature of ${statement.release}`, SWAPPED);
}

async function requireCurrent(
  store: Store,
  { keys, now, seen }: ReleaseTrust,
  signal: AbortSignal,
  described?: string,
): Promise<Verified> {
  const from = storeKey.versionSignature;
  const text = await requireSignature(store, from, { release: undefined, described, signal });
  const about = currentOf(store);
  const { statement, signedBy } = verifyRelease({ text, from, about }, 'current', keys);
  const stale = staleness(statement, { now, highest: await seen.highest(store.address) });
  if (stale === undefined) return { statement, signedBy: signedBy.name };
  throw invalid(`verify ${about}: ${stale.what}`, stale.hint);
}

const SWAPPED = 'it was replaced: check who can write to the store';

function invalid(message: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', message, { hint });
}

interface Requested extends Cancellable {
  /** Undefined for the current one. */
  readonly release: string | undefined;
  /** The release in messages; undefined for its name as the current one. */
  readonly described: string | undefined;
}

async function requireSignature(store: Store, key: string, { release, described, signal }: Requested): Promise<string> {
  const signature = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  if (signature !== undefined) return Buffer.from(signature.data).toString();
  const { address } = store;
  const named = release ?? (await nameOfCurrent(store, signal));
  if (named === undefined) {
    throw invalid(
      `${address}: the signature ${key} does not exist`,
      withoutReleaseHint(
        address,
        `check the address, or create a signed release with curlew publish --to ${address} --sign FILE`,
      ),
    );
  }
  throw invalid(
    `${address}: ${described ?? `the current release ${named}`} is not signed: the signature ${key} does not exist`,
    writingHint(address, (to) => `sign ${named} first, with curlew sign --store ${to} --release ${named} --key FILE`),
  );
}

/** The release that `VERSION` names, which is not verified, for messages; undefined if it cannot be read. */
async function nameOfCurrent(store: Store, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await currentRelease(store, { signal }))?.release;
  } catch (error) {
    requireRefusal(error, signal);
    return undefined;
  }
}

async function textsOf(
  store: Store,
  { release, catalog, inputs, version }: ReleaseStatement,
  signedBy: string,
  signal: AbortSignal,
): Promise<SignedRelease> {
  const key = storeKey.catalog(release);
  const stored = await store.read(key, { limit: CATALOG_LIMIT, signal });
  if (stored === undefined) {
    throw new CurlewError('NOT_FOUND', `${store.address}: ${key} is signed but does not exist`, {
      hint: 'publish the release again, or sign another release',
    });
  }
  if (digestOf(stored.data) !== catalog) {
    throw invalid(`verify ${release} of ${store.address}: ${key} is not the signed catalog`, SWAPPED);
  }
  const parsed = parseCatalog(Buffer.from(stored.data).toString(), `${store.address}/${key}`);
  if (parsed.release !== release) throw invalid(`${store.address}/${key} is the catalog of ${parsed.release}`, SWAPPED);
  requireReleaseContents(parsed, `${store.address}/${key}`);
  const verified = await readInputs(store, release, inputs, signal);
  return { release, catalog: stored.data, parsed, inputs: verified, signedBy, version };
}

async function readInputs(
  store: Store,
  release: string,
  signed: ReleaseStatement['inputs'],
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  if (signed === undefined) return undefined;
  const stored = await store.read(storeKey.inputs(release), { limit: CATALOG_LIMIT, signal });
  return stored !== undefined && digestOf(stored.data) === signed ? stored.data : undefined;
}

/** A signed catalog must contain the digest of each package's table of contents: parts are used before all bytes arrive. */
export function requireReleaseContents(catalog: Catalog, from: string): void {
  for (const { name, versions } of catalog.addons) {
    for (const { version, packages } of versions) {
      if (Object.values(packages).every(({ toc }) => toc !== undefined)) continue;
      throw new CurlewError(
        'UNSUPPORTED',
        `${from}: the catalog does not contain the table of contents of ${name} ${version}`,
        { hint: 'rebuild the catalog from its packages with curlew reindex' },
      );
    }
  }
}
