/**
 * Promotion copies a release unchanged to another store: first packages, then the catalog, generated files, `VERSION`
 * and unversioned copies. After an interruption the same call completes it.
 */
import type { Reporting } from '../../core/cancellable.ts';
import { formatCatalog, type Catalog } from '../../core/catalog.ts';
import type { Digest } from '../../core/digest.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { canceledOr, CurlewError, NOTHING_WRITTEN } from '../../core/errors.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { formatRef } from '../../core/ref.ts';
import { currentRelease, findCatalog, readCatalog, type CurrentRelease } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { SIGNATURE_LIMIT } from '../../formats/signing/signature.ts';
import { fileOf, listPackages, type ListedPackage } from './make-catalog.ts';
import { finishRelease, hasContent, publishedAs } from './finish-release.ts';
import { noteLowerName, refuseOlder } from './refuse-older.ts';
import { noteReplaced } from './replaced-release.ts';
import { formatRecorded, parseRecorded, readRecorded } from './release-inputs.ts';
import { writeUnversionedCopies } from './unversioned-copies.ts';
import { keysBelow } from './previous-release.ts';
import type { Signer } from './sign-release.ts';
import { readSigned, type ReleaseTrust, type SignedOptions } from './signed-release.ts';
import { promotePackage, type PromoteOutcome } from './promote-package.ts';
import type { PublishedPackage } from './publish.ts';

/** A release with its catalog, read before anything is written. */
export interface SourceRelease {
  readonly store: Store;
  readonly catalog: Catalog;
  /** The signer and the signed build inputs; undefined if signatures are not checked: the store's `inputs.json` is copied. */
  readonly signed?: { readonly by: string; readonly inputs: Uint8Array | undefined };
}

export interface PromoteOptions extends Reporting {
  readonly to: Store;
  /** Release string in the target; undefined for the same as in the source. */
  readonly release: string | undefined;
  /** Read every copied package and compare its digest with the catalog. */
  readonly deep: boolean;
  /** Transfer the bytes through this machine if the stores cannot copy from each other. */
  readonly stream: boolean;
  /** Allow a release that is older than the current one. */
  readonly makeCurrent?: boolean | undefined;
  /** Signs the release in the target store. */
  readonly signer?: Signer | undefined;
  /** Run all checks without writing. */
  readonly dryRun: boolean;
  /** Number of concurrent packages. */
  readonly jobs: number;
}

interface PromotedPackage extends Pick<PublishedPackage, 'name' | 'version' | 'arch' | 'digest' | 'size' | 'replaces'> {
  readonly outcome: PromoteOutcome;
}

export interface PromoteResult {
  readonly from: { readonly store: string; readonly release: string };
  readonly store: string;
  readonly release: string;
  /** The release that was current in the target before; undefined for the first. */
  readonly previous: string | undefined;
  readonly dryRun: boolean;
  /** Name of the key that signed the source release, if signatures were checked. */
  readonly signedBy: string | undefined;
  readonly packages: readonly PromotedPackage[];
  /** Number of written unversioned copies. */
  readonly latest: number;
}

/** A release of a store, by default the current one; with `trust` it must be signed. */
export async function sourceRelease(
  store: Store,
  { release, trust, signal }: Omit<SignedOptions, 'trust'> & { readonly trust?: ReleaseTrust | undefined },
): Promise<SourceRelease> {
  if (trust !== undefined) {
    const { parsed, signedBy, inputs } = await readSigned(store, { release, trust, signal });
    return { store, catalog: parsed, signed: { by: signedBy, inputs } };
  }
  return { store, catalog: await readCatalog(store, { release, signal }) };
}

const CONTINUES =
  'the same command continues the release, and copies no package again; readers see it only once it is whole';

/**
 * Promotes a release. `STORE_CONFLICT`: the target has the same release with different content, the source changes meanwhile,
 * or another publisher was faster. `DOWNGRADE`: the release is older than the target's current one. `DIGEST_MISMATCH`: a
 * package does not match its catalog.
 */
export async function promote(source: SourceRelease, options: PromoteOptions): Promise<PromoteResult> {
  let left = NOTHING_WRITTEN;
  const onWrite = (): void => {
    left = CONTINUES;
  };
  return promoteTo(source, options, onWrite).catch((error: unknown) => {
    throw canceledOr(error, options.signal, left);
  });
}

async function promoteTo(source: SourceRelease, options: PromoteOptions, onWrite: () => void): Promise<PromoteResult> {
  const { to, jobs, report, signal, dryRun, signer } = options;
  const { store: from, catalog: original } = source;
  const release = options.release ?? original.release;
  refuseImpossible(source, release, options);
  const current = await currentRelease(to, { signal });
  await refuseOlder(to, release, { current, makeCurrent: options.makeCurrent, signal });
  noteLowerName(release, { ...options, current });
  const catalog = await sameIn(to, { ...original, release }, signal);
  const before = current === undefined ? undefined : await packagesOf(to, current, signal);
  const replaced = noteReplaced(listPackages(catalog), before, report);
  await warnUnlisted(source, report, signal);
  const existing = await keysBelow(to, `${release}/`, signal);
  const packages = await mapLimited(
    listPackages(catalog),
    async (listed, context) => {
      const key = storeKey.package(release, fileOf(listed));
      const place = { ...options, from, fromKey: storeKey.package(original.release, fileOf(listed)), key };
      const outcome = await reportStep(
        report,
        { id: key, title: formatRef(listed), bytes: listed.entry.size },
        () => promotePackage(listed, { ...place, exists: existing.has(key), signal: context.signal }),
        (done) => done,
      );
      if (!dryRun && outcome !== 'present') onWrite();
      return promoted(listed, outcome, replaced.get(fileOf(listed)));
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
  onWrite();
  const inputs = await copyRecorded(source, to, release, signal);
  // A target that has its own time of the release has its own signature, too.
  if (signer === undefined && catalog.published === original.published)
    await copySignature(source, to, release, signal);
  await finishRelease(to, catalog, { current, signer, inputs, signal });
  return { ...result, latest: await writeUnversionedCopies(to, catalog, { before, jobs, signal }) };
}

async function packagesOf(store: Store, { release }: CurrentRelease, signal: AbortSignal) {
  const catalog = await findCatalog(store, release, { signal });
  return { release, packages: catalog === undefined ? [] : listPackages(catalog) };
}

function promoted(
  { name, version, arch, entry }: ListedPackage,
  outcome: PromoteOutcome,
  replaces: Digest | undefined,
): PromotedPackage {
  const facts = { name, version, arch, digest: entry.digest, size: entry.size, outcome };
  return replaces === undefined ? facts : { ...facts, replaces };
}

function refuseImpossible({ store, catalog }: SourceRelease, release: string, { to, stream }: PromoteOptions): void {
  const sameServer = store.place.server === to.place.server;
  if (sameServer && store.place.base === to.place.base && release === catalog.release) {
    throw new CurlewError('USAGE', `${store.address}: ${release} cannot be promoted to itself`, {
      hint: 'use another store, or add another release after an @',
    });
  }
  if (sameServer || stream) return;
  throw new CurlewError(
    'UNSUPPORTED',
    `cannot promote ${store.address} to ${to.address}: these stores cannot copy from each other`,
    { hint: 'add --stream to transfer every byte through this machine' },
  );
}

/** Copies `inputs.json` before the catalog is written: a publisher that bases a release on this one needs it. */
async function copyRecorded(
  { store, catalog, signed }: SourceRelease,
  to: Store,
  release: string,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const recorded =
    signed === undefined
      ? await readRecorded(store, catalog.release, { signal })
      : parseRecorded(Buffer.from(signed.inputs ?? '').toString());
  if (recorded.size === 0) return undefined;
  const data = Buffer.from(formatRecorded(recorded));
  const key = storeKey.inputs(release);
  if (!(await hasContent(to, key, data, signal))) await to.put(key, data, { signal });
  return data;
}

/** Copies the catalog's signature. It covers the release string, so it is valid only under the same one. */
async function copySignature(
  { store, catalog }: SourceRelease,
  to: Store,
  release: string,
  signal: AbortSignal,
): Promise<void> {
  if (release !== catalog.release) return;
  const key = storeKey.catalogSignature(release);
  const signature = await store.read(key, { limit: SIGNATURE_LIMIT, signal });
  if (signature === undefined) return;
  try {
    await to.put(key, signature.data, { ifNoneMatch: '*', signal });
  } catch (error) {
    // An existing signature is kept.
    if (!(error instanceof CurlewError) || error.code !== 'STORE_CONFLICT') throw error;
  }
}

/** The catalog as the target has it, or will have it. Throws before anything is copied if the target has other content. */
async function sameIn(to: Store, catalog: Catalog, signal: AbortSignal): Promise<Catalog> {
  const existing = await findCatalog(to, catalog.release, { signal });
  if (existing === undefined) return catalog;
  if (formatCatalog(existing) === formatCatalog(publishedAs(catalog, existing))) return existing;
  throw new CurlewError('STORE_CONFLICT', `${to.address}: ${catalog.release} already exists with different content`, {
    hint: 'a release never changes: use another release after the @ of --to',
  });
}

/** Warns about objects of the source release that are not in its catalog: they are not copied. */
async function warnUnlisted({ store, catalog }: SourceRelease, report: Report, signal: AbortSignal): Promise<void> {
  const { release } = catalog;
  const known = new Set([
    ...listPackages(catalog).map((listed) => storeKey.package(release, fileOf(listed))),
    storeKey.catalog(release),
    storeKey.catalogSignature(release),
    storeKey.inputs(release),
    storeKey.supportedVersions(release),
    storeKey.addons(release),
    ...(catalog.channels ?? []).map((name) => storeKey.channel(release, name)),
  ]);
  const unlisted = [...(await keysBelow(store, `${release}/`, signal)).keys()].filter((key) => !known.has(key));
  const [first] = unlisted;
  if (first === undefined) return;
  const others = unlisted.length === 1 ? '' : ` and ${unlisted.length - 1} more`;
  const text = `${store.address}: ${first}${others}: not in the catalog, not promoted`;
  report({ type: 'note', level: 'warning', text });
}
