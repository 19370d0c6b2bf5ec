/**
 * Promotion: a release becomes a release of another store, as it is. Packages are copied by the server that has them,
 * then come catalogue, generated files, `VERSION`, latest copies; cut off anywhere, the same call completes it.
 */
import { formatCatalogue, type Catalogue } from '../../core/catalogue.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { currentRelease, findCatalogue, readCatalogue, type CurrentRelease } from '../catalogue.ts';
import type { Store } from '../store.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import { fileOf, listPackages, type ListedPackage } from './catalogue.ts';
import { finishRelease, holds } from './finish.ts';
import { refuseOlder } from './refuse-older.ts';
import { formatRecorded, parseRecorded, readRecorded } from './inputs.ts';
import { writeLatest } from './latest.ts';
import { keysBelow } from './previous.ts';
import type { Signer } from './sign-release.ts';
import { readSigned, type ReleaseTrust, type SignedOptions } from './signed-release.ts';
import { promotePackage, type PromoteOutcome } from './promote-package.ts';

/** A release with its catalogue, read before anything is written. */
export interface SourceRelease {
  readonly store: Store;
  readonly catalogue: Catalogue;
  /** What made its packages, where that is signed; undefined: what the store has is handed on. */
  readonly signed?: { readonly by: string; readonly inputs: Uint8Array | undefined };
}

export interface PromoteOptions {
  readonly to: Store;
  /** Its name there; the source's when undefined. */
  readonly release: string | undefined;
  /** Read every package in its new place and compare its digest with the catalogue's. */
  readonly deep: boolean;
  /** Let the bytes pass through this machine where the stores cannot copy from each other. */
  readonly stream: boolean;
  /** The release may be one that was there before the current one. */
  readonly makeCurrent?: boolean | undefined;
  /** Signs the release in its new place. */
  readonly signer?: Signer | undefined;
  /** Check everything that can be checked without writing, and write nothing. */
  readonly dryRun: boolean;
  /** Packages at once. */
  readonly jobs: number;
  readonly report: Report;
  readonly signal: AbortSignal;
}

interface PromotedPackage {
  readonly name: string;
  readonly version: string;
  readonly arch: string;
  readonly digest: string;
  readonly size: number;
  readonly outcome: PromoteOutcome;
}

export interface PromoteResult {
  readonly from: { readonly store: string; readonly release: string };
  readonly store: string;
  readonly release: string;
  /** The release that was current there before; undefined for the first. */
  readonly previous: string | undefined;
  readonly dryRun: boolean;
  /** The key that has signed the release where it comes from, when that was asked for. */
  readonly signedBy: string | undefined;
  readonly packages: readonly PromotedPackage[];
  /** Unversioned copies written. */
  readonly latest: number;
}

/** The release of a store, by default its current one; with `trust` it must be signed. */
export async function sourceRelease(
  store: Store,
  { release, trust, signal }: Omit<SignedOptions, 'trust'> & { readonly trust?: ReleaseTrust | undefined },
): Promise<SourceRelease> {
  if (trust !== undefined) {
    const { parsed, signedBy, inputs } = await readSigned(store, { release, trust, signal });
    return { store, catalogue: parsed, signed: { by: signedBy, inputs } };
  }
  return { store, catalogue: await readCatalogue(store, { release, signal }) };
}

/**
 * Promotes a release. The same release with other content there, a source that changes meanwhile, or somebody else who
 * was faster, is `STORE_CONFLICT`; one that was there before the current one is `DOWNGRADE`; a package that is not what
 * its catalogue says is `DIGEST_MISMATCH`.
 */
export async function promote(source: SourceRelease, options: PromoteOptions): Promise<PromoteResult> {
  const { to, jobs, report, signal, dryRun, signer } = options;
  const { store: from, catalogue: original } = source;
  const release = options.release ?? original.release;
  const catalogue: Catalogue = { ...original, release };
  refuseImpossible(source, release, options);
  const current = await currentRelease(to, { signal });
  await refuseOlder(to, release, { current, makeCurrent: options.makeCurrent, signal });
  await refuseOther(to, catalogue, signal);
  await noteStrangers(source, report, signal);
  const taken = await keysBelow(to, `${release}/`, signal);
  const packages = await mapLimited(
    listPackages(catalogue),
    async (listed, context) => {
      const key = storeKey.package(release, fileOf(listed));
      const place = { ...options, from, fromKey: storeKey.package(original.release, fileOf(listed)), key };
      const outcome = await reportStep(
        report,
        { id: key, title: formatRef(listed), bytes: listed.entry.size },
        () => promotePackage(listed, { ...place, taken: taken.has(key), signal: context.signal }),
        (done) => done,
      );
      return promoted(listed, outcome);
    },
    { width: jobs, signal },
  );
  const result = {
    from: { store: from.address, release: original.release },
    store: to.address,
    release,
    previous: current?.release,
    dryRun,
    signedBy: source.signed?.by,
    packages,
  };
  if (dryRun) return { ...result, latest: 0 };
  const inputs = await handOnRecorded(source, to, release, signal);
  if (signer === undefined) await handOnSignature(source, to, release, signal);
  await finishRelease(to, catalogue, { current, signer, inputs, signal });
  const before =
    current === undefined ? undefined : { release: current.release, packages: () => packagesOf(to, current, signal) };
  return { ...result, latest: await writeLatest(to, catalogue, { before, jobs, signal }) };
}

async function packagesOf(store: Store, { release }: CurrentRelease, signal: AbortSignal) {
  const catalogue = await findCatalogue(store, release, { signal });
  return catalogue === undefined ? [] : listPackages(catalogue);
}

function promoted({ name, version, arch, entry }: ListedPackage, outcome: PromoteOutcome): PromotedPackage {
  return { name, version, arch, digest: entry.digest, size: entry.size, outcome };
}

function refuseImpossible({ store, catalogue }: SourceRelease, release: string, { to, stream }: PromoteOptions): void {
  const near = store.place.server === to.place.server;
  if (near && store.place.base === to.place.base && release === catalogue.release) {
    throw new CurlewError('USAGE', `${store.address}: ${release} cannot be promoted to itself`, {
      hint: 'name another store, or another release behind an @',
    });
  }
  if (near || stream) return;
  throw new CurlewError(
    'UNSUPPORTED',
    `promote ${store.address} to ${to.address}: these stores cannot copy from each other`,
    { hint: '--stream lets every byte pass through this machine' },
  );
}

/** Before the catalogue: whoever publishes on top of the release may rely on it. */
async function handOnRecorded(
  { store, catalogue, signed }: SourceRelease,
  to: Store,
  release: string,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const recorded =
    signed === undefined
      ? await readRecorded(store, catalogue.release, { signal })
      : parseRecorded(Buffer.from(signed.inputs ?? '').toString());
  if (recorded.size === 0) return undefined;
  const data = Buffer.from(formatRecorded(recorded));
  const key = storeKey.inputs(release);
  if (!(await holds(to, key, data, signal))) await to.put(key, data, { signal });
  return data;
}

/** Under the same name the release is the same, and whoever signed it has said so of this one, too. */
async function handOnSignature(
  { store, catalogue }: SourceRelease,
  to: Store,
  release: string,
  signal: AbortSignal,
): Promise<void> {
  if (release !== catalogue.release) return;
  const key = storeKey.catalogueSignature(release);
  const found = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  if (found === undefined) return;
  try {
    await to.put(key, found.data, { ifNoneMatch: '*', signal });
  } catch (error) {
    // One that is there already is as good, or better.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
  }
}

/** Told before anything is copied: a release never changes. */
async function refuseOther(to: Store, catalogue: Catalogue, signal: AbortSignal): Promise<void> {
  const there = await findCatalogue(to, catalogue.release, { signal });
  if (there === undefined || formatCatalogue(there) === formatCatalogue(catalogue)) return;
  throw new CurlewError('STORE_CONFLICT', `${to.address}: ${catalogue.release} is there already, with other content`, {
    hint: 'a release never changes: choose another release behind the @ of --to',
  });
}

/** What lies in the release's place but not in its catalogue stays where it is, and that is said. */
async function noteStrangers({ store, catalogue }: SourceRelease, report: Report, signal: AbortSignal): Promise<void> {
  const { release } = catalogue;
  const own = new Set([
    ...listPackages(catalogue).map((listed) => storeKey.package(release, fileOf(listed))),
    storeKey.catalogue(release),
    storeKey.catalogueSignature(release),
    storeKey.inputs(release),
    storeKey.supportedVersions(release),
    storeKey.addons(release),
  ]);
  const strangers = [...(await keysBelow(store, `${release}/`, signal)).keys()].filter((key) => !own.has(key));
  const [first] = strangers;
  if (first === undefined) return;
  const others = strangers.length === 1 ? '' : ` and ${strangers.length - 1} more`;
  const text = `${store.address}: ${first}${others}: not in the catalogue, not promoted`;
  report({ type: 'note', level: 'warning', text });
}
