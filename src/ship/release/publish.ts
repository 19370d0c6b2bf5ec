/**
 * Publishes a release: packages, catalog, generated files, `VERSION` and unversioned copies, in this order. An interrupted
 * publish leaves the previous release intact, and the same call completes it.
 */
import type { Cancellable, Reporting } from '../../core/cancellable.ts';
import { mapLimited } from '../../platform/limit/each.ts';
import { CurlewError } from '../../core/errors.ts';
import { reportStep } from '../../core/events.ts';
import { storeKey } from '../../core/layout.ts';
import { compareText, formatRef, type AddonVersion } from '../../core/ref.ts';
import { secondsOf } from '../../formats/signing/claim.ts';
import { findCatalog } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import {
  fileOf,
  packageIdentity,
  listPackages,
  makeCatalog,
  type ListedPackage,
  type ReleasePackages,
} from './make-catalog.ts';
import { finishRelease, hasContent } from './finish-release.ts';
import { formatRecorded, type RecordedPackage } from './release-inputs.ts';
import { writeUnversionedCopies, type KnownObject } from './unversioned-copies.ts';
import { readPrevious, type Previous } from './previous-release.ts';
import { noteLowerName, refuseOlder } from './refuse-older.ts';
import { noteDropped, noteLeftOut, noteReplaced } from './replaced-release.ts';
import { checkedRelease, releasesToTry } from './release-name.ts';
import type { Signer } from './sign-release.ts';
import type { VersionOrders } from './version-order.ts';
import {
  listedOf,
  OtherContent,
  placePackage,
  type UploadOutcome,
  type PackageFileToPublish,
  type PlacedObject,
  type PackageToPlace,
} from './upload.ts';

export interface PublishOptions extends Reporting {
  readonly store: Store;
  /** Undefined for the next one of the day, `vYYYY.MM.DD-N`. */
  readonly release: string | undefined;
  readonly now: Date;
  /** True to include packages of the previous release that are not given here. */
  readonly carry: boolean;
  /** The previous release, if already read. The publish fails if it is no longer the current one. */
  readonly previous?: Previous | undefined;
  /** File names of packages to include from the previous release regardless of `carry`. */
  readonly unchanged?: ReadonlySet<string>;
  /** Version order per add-on. Other add-ons with given files are in descending order; the rest keep their order. */
  readonly orders?: VersionOrders;
  /** Names of the channels of the release; undefined for those of the previous one. */
  readonly channels?: readonly string[] | undefined;
  /** Signs the release. The previous release must be signed too (`readPrevious` with its trust). */
  readonly signer?: Signer | undefined;
  /** Allow a release that is older than the current one. */
  readonly makeCurrent?: boolean | undefined;
  /** Git commit for the metadata of uploaded packages, if known. */
  readonly commit: string | undefined;
  /** Number of concurrent packages. */
  readonly jobs: number;
}

export interface PublishedPackage extends AddonVersion {
  readonly arch: string;
  readonly digest: string;
  readonly size: number;
  readonly outcome: UploadOutcome;
  /** Digest of this version in the previous release of this store, if that has different content. */
  readonly replaces?: string;
  /** Bytes sent; less than the size if an interrupted upload was resumed. */
  readonly sent: number;
}

export interface PublishResult {
  readonly store: string;
  readonly release: string;
  /** The release that was current before; undefined for the first. */
  readonly previous: string | undefined;
  readonly packages: readonly PublishedPackage[];
  /** Names of the channels of the release. */
  readonly channels: readonly string[];
  /** Absent for an unsigned release. */
  readonly signed?: {
    /** Name of the key. */
    readonly by: string | undefined;
    /** Until when the signature of the current release is valid, ISO 8601. */
    readonly until: string;
  };
  /** Package bytes sent in this run. */
  readonly bytesUp: number;
  readonly bytesCopied: number;
  /** Package bytes that an earlier run had uploaded. */
  readonly bytesPresent: number;
  /** Number of written unversioned copies. */
  readonly latest: number;
}

/**
 * Publishes package files as a release. An existing release with different content, or a concurrent publisher, causes
 * `STORE_CONFLICT`; a release older than the current one is `DOWNGRADE`. Without a release string, resumes an unfinished release
 * of the day, or uses the next number if that has different content.
 */
export async function publishPackages(
  files: readonly PackageFileToPublish[],
  options: PublishOptions,
): Promise<PublishResult> {
  const { store, jobs, signal } = options;
  const previous = options.previous ?? (await readPrevious(store, { signal }));
  if (options.release !== undefined)
    await refuseOlder(store, options.release, { ...options, current: previous.current });
  const channels = [...new Set(options.channels ?? previous.channels)].toSorted(compareText);
  const requested = gather(files, previous, options);
  requireSome(requested);
  const { release, placed, fresh } = await placeInFirstFree(requested, previous, { ...options, channels });
  const made = makeCatalog(
    release,
    placed.map(({ listed }) => listed),
    ordersOf(files, previous, options),
    channels,
  );
  const catalog = { ...made, published: options.now.toISOString() };
  noteLeftOut(catalog, options.report);
  noteLowerName(release, { ...options, current: previous.current });
  const inputs = await writeRecorded(release, requested, placed, { ...options, fresh });
  const statement = await finishRelease(store, catalog, { ...options, inputs, current: previous.current });
  const before = previousPackages(previous);
  const listed = listPackages(catalog);
  const replaced = noteReplaced(listed, before, options.report);
  noteDropped(listed, before, options.report);
  const latest = await writeUnversionedCopies(store, catalog, { before, objects: objectsOf(placed), jobs, signal });
  const packages = placed.map(({ listed, outcome, sent }) => {
    const { name, version, arch, entry } = listed;
    const replaces = replaced.get(fileOf(listed));
    const facts = { name, version, arch, digest: entry.digest, size: entry.size, outcome, sent };
    return replaces === undefined ? facts : { ...facts, replaces };
  });
  const bytes = (of: (one: PublishedPackage) => number): number => packages.reduce((sum, one) => sum + of(one), 0);
  const totals = {
    bytesUp: bytes(({ sent }) => sent),
    bytesCopied: bytes(({ size, outcome }) => (outcome === 'copied' ? size : 0)),
    bytesPresent: bytes(({ size, outcome, sent }) => (outcome === 'copied' ? 0 : size - sent)),
  };
  const signed = statement && { by: options.signer?.trust.keys[0]?.name, until: secondsOf(statement.expires) };
  const result = { store: store.address, release, previous: previous.current?.release, packages, channels };
  return { ...result, ...(signed && { signed }), ...totals, latest };
}

export function requireSome(packages: readonly unknown[]): void {
  if (packages.length === 0) throw new CurlewError('USAGE', 'no package to publish');
}

/** Add-ons without new files keep their order, because their order file may not be available. */
function ordersOf(
  files: readonly PackageFileToPublish[],
  { packages }: Previous,
  { orders = new Map() }: PublishOptions,
): VersionOrders {
  const fresh = new Set(files.map(({ addon }) => addon.name));
  const defaults = new Map<string, string[]>();
  for (const { listed } of packages.values()) {
    if (fresh.has(listed.name)) continue;
    defaults.set(listed.name, [...(defaults.get(listed.name) ?? []), listed.version]);
  }
  return new Map<string, readonly string[]>([...defaults, ...orders]);
}

export function noneLeft(): CurlewError {
  return new CurlewError('USAGE', 'all release strings of the day are used', { hint: 'add --release' });
}

/** The add-ons that the store offers now; undefined before its first release. */
export function previousPackages({ current, packages }: Previous): ReleasePackages | undefined {
  if (current === undefined) return undefined;
  return { release: current.release, packages: [...packages.values()].map(({ listed }) => listed) };
}

function objectsOf(placed: readonly PlacedObject[]): ReadonlyMap<string, KnownObject> {
  return new Map(
    placed.flatMap(({ listed, object }) => (object === undefined ? [] : [[fileOf(listed), object] as const])),
  );
}

/** Pairs each package file with the same package of the previous release, and adds packages to include from there. */
function gather(
  files: readonly PackageFileToPublish[],
  { packages }: Previous,
  { carry, unchanged }: PublishOptions,
): readonly PackageToPlace[] {
  const built = files.map((file): PackageToPlace => {
    const before = packages.get(fileOf(file.addon));
    const fresh: PackageToPlace = { file, earlier: undefined };
    const same = before !== undefined && packageIdentity(before.listed) === packageIdentity(listedOf(fresh));
    return same ? { file, earlier: before } : fresh;
  });
  const names = new Set(files.map(({ addon }) => fileOf(addon)));
  const taken = [...packages].filter(([name]) => !names.has(name) && (carry || unchanged?.has(name) === true));
  return [...built, ...taken.map(([, one]): PackageToPlace => ({ file: undefined, earlier: one }))];
}

interface PlacedRelease {
  readonly release: string;
  readonly placed: readonly PlacedObject[];
  /** True if the release was empty before. */
  readonly fresh: boolean;
}

/** Places the packages in the given release, or in the first of the day without different content. */
async function placeInFirstFree(
  requested: readonly PackageToPlace[],
  { current }: Previous,
  options: PublishOptions,
): Promise<PlacedRelease> {
  if (options.release !== undefined) return placeAll(checkedRelease(options.release, '--release'), requested, options);
  let unfinishedRelease: string | undefined;
  for (const release of releasesToTry(options.now, current?.release)) {
    if (unfinishedRelease !== undefined) {
      const text = `${unfinishedRelease} is unfinished and has different content; continuing with ${release}`;
      options.report({ type: 'note', level: 'warning', text });
    }
    try {
      return await placeAll(release, requested, options);
    } catch (error) {
      if (!(error instanceof OtherContent)) throw error;
      unfinishedRelease = release;
    }
  }
  throw noneLeft();
}

async function placeAll(
  release: string,
  requested: readonly PackageToPlace[],
  options: PublishOptions,
): Promise<PlacedRelease> {
  const { jobs, signal } = options;
  // Throws if two packages have the same key, before anything is written.
  const listed = requested.map(listedOf);
  makeCatalog(release, listed);
  const finished = await requireSame(release, listed, options);
  const place = async (one: PackageToPlace, fresh: boolean, within: Cancellable): Promise<PlacedObject> => {
    const id = listedOf(one);
    const [key, title] = [storeKey.package(release, fileOf(id)), formatRef(id)];
    return reportStep(
      options.report,
      { id: key, title },
      () =>
        placePackage(one, { ...options, release, fresh, signed: options.signer !== undefined, signal: within.signal }),
      ({ outcome }) => outcome,
    );
  };
  // One copy runs before all others: if its target exists, an earlier run has started this release.
  const scout = requested.find(({ earlier }) => earlier?.object !== undefined && earlier.release !== release);
  const first = scout === undefined ? undefined : await place(scout, !finished, { signal });
  const fresh = !finished && first?.outcome !== 'present';
  const placed = await mapLimited(
    requested,
    async (one, context) => (one === scout && first !== undefined ? first : place(one, fresh, context)),
    { width: jobs, signal },
  );
  return { release, placed, fresh };
}

/**
 * True if the release is finished. Throws `OtherContent` if it is finished with different packages or channels; of those in
 * `unbuilt`, only the file names are compared.
 */
export async function requireSame(
  release: string,
  requested: readonly ListedPackage[],
  {
    store,
    channels = [],
    unbuilt = new Set(),
    signal,
  }: Pick<PublishOptions, 'store' | 'channels' | 'signal'> & { readonly unbuilt?: ReadonlySet<string> },
): Promise<boolean> {
  const catalog = await findCatalog(store, release, { signal });
  const row = (one: ListedPackage): string => (unbuilt.has(fileOf(one)) ? fileOf(one) : packageIdentity(one));
  const rows = (all: readonly ListedPackage[]): string => all.map(row).toSorted().join();
  if (catalog === undefined) return false;
  const isSame = rows(listPackages(catalog)) === rows(requested);
  if (isSame && String(catalog.channels ?? []) === String(channels)) return true;
  throw new OtherContent('STORE_CONFLICT', `${store.address}: ${release} was published with different content`, {
    hint: 'a release never changes: use another release string',
  });
}

/** Writes `inputs.json`, before the catalog because readers of the catalog need it. Undefined if nothing was recorded. */
async function writeRecorded(
  release: string,
  requested: readonly PackageToPlace[],
  placed: readonly PlacedObject[],
  { store, commit, fresh, signal }: PublishOptions & { readonly fresh: boolean },
): Promise<Uint8Array | undefined> {
  const recorded = new Map<string, RecordedPackage>();
  for (const [at, { file, earlier }] of requested.entries()) {
    const listed = placed[at]?.listed;
    if (listed === undefined) continue;
    const since = earlier?.recorded?.since ?? earlier?.release ?? release;
    if (file?.inputs !== undefined) {
      const known = placed[at]?.outcome === 'uploaded' ? commit : earlier?.recorded?.commit;
      const noted = known === undefined ? {} : { commit: known };
      recorded.set(fileOf(listed), { digest: listed.entry.digest, since, inputs: file.inputs, ...noted });
    } else if (earlier?.recorded !== undefined) recorded.set(fileOf(listed), earlier.recorded);
  }
  if (recorded.size === 0) return undefined;
  const data = Buffer.from(formatRecorded(recorded));
  const key = storeKey.inputs(release);
  if (fresh || !(await hasContent(store, key, data, signal))) await store.put(key, data, { signal });
  return data;
}
