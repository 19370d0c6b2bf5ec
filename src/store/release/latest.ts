/**
 * Unversioned copies, for readers who know no release. When all are in place, `addons-gen.json` says so: its metadata
 * names the release that they are of. The next publisher then copies only what differs from that release; where the mark
 * says something else, somebody was stopped or is still at work, and every copy is looked at.
 */
import { CATALOGUE_LIMIT, type Catalogue } from '../../core/catalogue.ts';
import { eachLimited } from '../../platform/limit/each.ts';
import { storeKey } from '../../core/layout.ts';
import { currentRelease, findCatalogue } from '../catalogue.ts';
import type { Metadata, Store } from '../store.ts';
import { fileOf, formatAddons, listPackages, type ListedPackage } from './catalogue.ts';
import { writeSupportedVersions } from './finish.ts';
import { packageMetadata } from './upload.ts';

/** What is known of a package's object in its release. */
export interface KnownObject {
  readonly etag: string;
  readonly size: number;
  readonly metadata: Metadata;
}

export interface LatestOptions {
  /** The release that was current before; undefined when there was none, or every copy is to be looked at. */
  readonly before: { readonly release: string; readonly packages: () => Promise<readonly ListedPackage[]> } | undefined;
  /** By file name, where known. */
  readonly objects?: ReadonlyMap<string, KnownObject>;
  /** Packages at once. */
  readonly jobs: number;
  readonly signal: AbortSignal;
}

/** Brings the unversioned copies to this release, each atomically, and tells how many were written. */
export async function writeLatest(store: Store, catalogue: Catalogue, options: LatestOptions): Promise<number> {
  const { release } = catalogue;
  const { before, jobs, signal } = options;
  const packages = listPackages(catalogue);
  const mark = await store.read(storeKey.latestAddons, { limit: CATALOGUE_LIMIT, signal });
  const trusted =
    before !== undefined && before.release !== release && mark?.object.metadata['release'] === before.release;
  const settled = new Map(
    trusted ? (await before.packages()).map((one) => [fileOf(one), one.entry.sha256] as const) : [],
  );
  let written = 0;
  await eachLimited(
    packages.filter((listed) => settled.get(fileOf(listed)) !== listed.entry.sha256),
    async (listed, context) => {
      if (await copyLatest(store, listed, { ...options, release, look: !trusted, signal: context.signal }))
        written += 1;
    },
    { width: jobs, signal },
  );
  const now = await currentRelease(store, { signal });
  if (now !== undefined && now.release !== release) {
    // Somebody was faster, and some of these copies may have come after theirs.
    const theirs = await findCatalogue(store, now.release, { signal });
    return theirs === undefined
      ? written
      : written + (await writeLatest(store, theirs, { before: undefined, jobs, signal }));
  }
  await writeSupportedVersions(store, storeKey.latestSupportedVersions, catalogue, { signal });
  const addons = Buffer.from(formatAddons(catalogue));
  if (mark?.object.metadata['release'] !== release || Buffer.compare(mark.data, addons) !== 0) {
    await store.put(storeKey.latestAddons, addons, { metadata: { release }, signal });
  }
  return written;
}

async function copyLatest(
  store: Store,
  listed: ListedPackage,
  { release, look, objects, signal }: LatestOptions & { readonly release: string; readonly look: boolean },
): Promise<boolean> {
  const file = fileOf(listed);
  const key = storeKey.latest(file);
  if (look) {
    const there = await store.head(key, { signal });
    if (there?.metadata['sha256'] === listed.entry.sha256 && there.size === listed.entry.size) return false;
  }
  const from = storeKey.package(release, file);
  const source = objects?.get(file) ?? (await store.head(from, { signal }));
  await store.copy(from, key, {
    metadata: { ...packageMetadata(listed, undefined), ...source?.metadata },
    sourceIfMatch: source?.etag,
    sourceSize: source?.size,
    signal,
  });
  return true;
}
