/** Releases of a store that are believed only as far as somebody trusted has signed them. */
import { CATALOGUE_LIMIT, parseCatalogue, type Catalogue } from '../../core/catalogue.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { storeKey } from '../../core/layout.ts';
import type { Store } from '../store.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import type { TrustedKey } from '../../formats/signing/keys.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import { staleness, verifyRelease, type ReleaseStatement, type ReleaseTexts } from './release-statement.ts';

/** The greatest versions of signed stores that were ever seen here: what makes an old state of a store known as such. */
export interface SeenVersions {
  /** Undefined at the first sight of a store: then what it says is taken. */
  readonly highest: (address: string) => Promise<number | undefined>;
  /** The newest release that was read, named or as the current one; undefined at first sight. */
  readonly newest: (address: string) => Promise<SeenRelease | undefined>;
  readonly remember: (address: string, seen: SeenRelease & { readonly isCurrent: boolean }) => Promise<void>;
}

export interface SeenRelease {
  readonly release: string;
  /** Of its statement. */
  readonly version: number;
}

/** What a release is held against. */
export interface ReleaseTrust {
  /** A signature by any of them will do. */
  readonly keys: readonly TrustedKey[];
  readonly now: Date;
  readonly seen: SeenVersions;
  /** A release that is named may be older than one that was read before. */
  readonly allowOlder?: boolean;
}

export interface SignedRelease extends ReleaseTexts {
  readonly parsed: Catalogue;
  /** Name of the key. */
  readonly signedBy: string;
  /** The version of its statement. */
  readonly version: number;
}

/** What a store says of its current release to somebody who has asked for another one by its name. */
export interface NotCurrent {
  readonly named: string;
  /** Undefined where what is signed of it does not verify. */
  readonly current: string | undefined;
  /** When that was signed as the current one, ISO 8601. */
  readonly since: string | undefined;
  /** All of it in words, with what to do. */
  readonly text: string;
}

export interface SignedOptions {
  /** Undefined for the current one. */
  readonly release: string | undefined;
  readonly trust: ReleaseTrust;
  /** Told when a release that is named is older than the current one of the store, or when that one is not to be believed. */
  readonly onNotCurrent?: ((found: NotCurrent) => void) | undefined;
  readonly signal: AbortSignal;
}

/**
 * The release that is signed as the current one, whatever `VERSION` says; or one that is named, which is never over. No
 * signature, another's, one that is over, a current one older than was seen before, and a catalogue that is not the one
 * that was signed are `SIGNATURE_INVALID`; one that is named and older than another that was read is `DOWNGRADE`, unless
 * that is allowed. Inputs that are not the signed ones are left out: nothing needs them.
 */
export async function readSigned(
  store: Store,
  { release, trust, onNotCurrent, signal }: SignedOptions,
): Promise<SignedRelease> {
  if (release !== undefined) {
    const { statement, signedBy } = await requireNamed(store, release, trust, signal);
    if (trust.allowOlder !== true) await refuseOlder(store, statement, trust);
    const found = await textsOf(store, statement, signedBy, signal);
    await trust.seen.remember(store.address, { release, version: statement.version, isCurrent: false });
    const other = onNotCurrent && (await besideNamed(store, statement, trust, signal));
    if (other !== undefined) onNotCurrent?.(other);
    return found;
  }
  const { statement, signedBy } = await requireCurrent(store, trust, signal);
  const found = await textsOf(store, statement, signedBy, signal);
  const { version } = statement;
  await trust.seen.remember(store.address, { release: statement.release, version, isCurrent: true });
  return found;
}

/** Statements of one release have several versions: it is itself that it is compared with then. */
async function refuseOlder(
  store: Store,
  { release, version }: ReleaseStatement,
  { seen }: ReleaseTrust,
): Promise<void> {
  const newest = await seen.newest(store.address);
  if (newest === undefined || newest.release === release || version >= newest.version) return;
  throw new CurlewError(
    'DOWNGRADE',
    `${store.address}: ${release} is signed as version ${version}, and ${newest.release} was seen before, version ${newest.version}`,
    { hint: `name the newer release, or none; --allow-downgrade takes ${release}` },
  );
}

/**
 * What the current release says against one that is named: nothing where the store has none. Nothing of it is remembered: a
 * release may be pinned, and would count as a downgrade the next time.
 */
async function besideNamed(
  store: Store,
  named: ReleaseStatement,
  { keys, now, seen }: ReleaseTrust,
  signal: AbortSignal,
): Promise<NotCurrent | undefined> {
  const { address } = store;
  const [from, about] = [storeKey.versionSignature, currentOf(store)];
  try {
    const found = await store.read(from, { limit: SIGNATURE_LIMIT, signal });
    if (found === undefined) return undefined;
    const text = Buffer.from(found.data).toString();
    const { statement } = verifyRelease({ text, from, about }, 'current', keys);
    const { release: current, version, signed } = statement;
    const common = { named: named.release, current, since: secondsOf(signed) };
    const stale = staleness(statement, { now, highest: await seen.highest(address) });
    if (stale !== undefined) return { ...common, text: `${about}: ${stale.what} (${stale.hint})` };
    if (current === named.release || version <= named.version) return undefined;
    const what = `${named.release} is named, and ${current} is the current release since ${common.since}`;
    return { ...common, text: `${address}: ${what}; ${TAKE_CURRENT}` };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof CurlewError)) throw error;
    const hint = error.hint === undefined ? '' : ` (${error.hint})`;
    return { named: named.release, current: undefined, since: undefined, text: error.message + hint };
  }
}

const TAKE_CURRENT =
  'unless it is pinned on purpose, leave out --release, or fetch the script of curlew serve that names it again';

function currentOf({ address }: Store): string {
  return `the current release of ${address}`;
}

/**
 * The release that another one is made on top of, when `VERSION` names it: the current one as above, or one that was
 * signed after it and whose publisher was stopped before it could sign that it is current. An older one is refused, though
 * it is signed: what is taken over from it would be old.
 */
export async function readSignedBase(
  store: Store,
  { release, trust, signal }: SignedOptions & { readonly release: string },
): Promise<SignedRelease> {
  const current = await requireCurrent(store, trust, signal);
  if (current.statement.release === release) return textsOf(store, current.statement, current.signedBy, signal);
  const { statement, signedBy } = await requireNamed(store, release, trust, signal);
  if (statement.version > current.statement.version) return textsOf(store, statement, signedBy, signal);
  throw invalid(
    `${store.address}: VERSION says ${release}, but ${current.statement.release} was signed as the current release later`,
    'somebody has put an old VERSION back: see who writes to the store, and write the right one into it',
  );
}

type Verified<Role> = {
  readonly statement: Extract<ReleaseStatement, { role: Role }>;
  readonly signedBy: string;
};

async function requireNamed(
  store: Store,
  release: string,
  { keys }: ReleaseTrust,
  signal: AbortSignal,
): Promise<Verified<'release'>> {
  const from = storeKey.catalogueSignature(release);
  const text = await requireSignature(store, from, `--store ${store.address} --release ${release}`, signal);
  const about = `${release} of ${store.address}`;
  const { statement, signedBy } = verifyRelease({ text, from, about }, 'release', keys);
  if (statement.release === release) return { statement, signedBy: signedBy.name };
  throw invalid(`verify ${about}: ${from} is the signature of ${statement.release}`, SWAPPED);
}

async function requireCurrent(
  store: Store,
  { keys, now, seen }: ReleaseTrust,
  signal: AbortSignal,
): Promise<Verified<'current'>> {
  const from = storeKey.versionSignature;
  const text = await requireSignature(store, from, `--store ${store.address} --release R`, signal);
  const about = currentOf(store);
  const { statement, signedBy } = verifyRelease({ text, from, about }, 'current', keys);
  const stale = staleness(statement, { now, highest: await seen.highest(store.address) });
  if (stale === undefined) return { statement, signedBy: signedBy.name };
  throw invalid(`verify ${about}: ${stale.what}`, stale.hint);
}

const SWAPPED = 'somebody has exchanged it: see who writes to the store';

function invalid(message: string, hint: string): CurlewError {
  return new CurlewError('SIGNATURE_INVALID', message, { hint });
}

async function requireSignature(store: Store, key: string, words: string, signal: AbortSignal): Promise<string> {
  const found = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  if (found !== undefined) return Buffer.from(found.data).toString();
  throw invalid(`${store.address}: there is no signature ${key}`, `curlew sign ${words} --key FILE makes one`);
}

async function textsOf(
  store: Store,
  { release, catalogue, inputs, version }: ReleaseStatement,
  signedBy: string,
  signal: AbortSignal,
): Promise<SignedRelease> {
  const key = storeKey.catalogue(release);
  const found = await store.read(key, { limit: CATALOGUE_LIMIT, signal });
  if (found === undefined) {
    throw new CurlewError('NOT_FOUND', `${store.address}: there is no ${key}, which is signed`, {
      hint: 'publish the release again, or sign another one',
    });
  }
  if (digestOf(found.data) !== catalogue) {
    throw invalid(`verify ${release} of ${store.address}: ${key} is not the catalogue that was signed`, SWAPPED);
  }
  const parsed = parseCatalogue(Buffer.from(found.data).toString(), `${store.address}/${key}`);
  if (parsed.release !== release)
    throw invalid(`${store.address}/${key} is the catalogue of ${parsed.release}`, SWAPPED);
  requireContents(parsed, `${store.address}/${key}`);
  const noted = await readInputs(store, release, inputs, signal);
  return { release, catalogue: found.data, parsed, inputs: noted, signedBy, version };
}

async function readInputs(
  store: Store,
  release: string,
  signed: ReleaseStatement['inputs'],
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  if (signed === undefined) return undefined;
  const found = await store.read(storeKey.inputs(release), { limit: CATALOGUE_LIMIT, signal });
  return found !== undefined && digestOf(found.data) === signed ? found.data : undefined;
}

/** Of what is signed every package must be known by its table of contents: parts of it are used before the whole is there. */
export function requireContents(catalogue: Catalogue, from: string): void {
  for (const { name, versions } of catalogue.addons) {
    for (const { version, packages } of versions) {
      if (Object.values(packages).every(({ toc }) => toc !== undefined)) continue;
      throw new CurlewError('UNSUPPORTED', `${from}: the catalogue does not tell the contents of ${name} ${version}`, {
        hint: 'curlew reindex makes the catalogue of a release anew from its packages',
      });
    }
  }
}
