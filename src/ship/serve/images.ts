/** Manifests and blobs of images, read directly from packages without unpacking on disk. */
import type { Bytes } from '../../core/bytes.ts';
import type { PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import { readFile, readPayload } from '../../formats/archive/read.ts';
import { storedRange } from '../../formats/archive/stored-member.ts';
import { canonicalJson, digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { errorAbout } from '../../core/errors.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';
import { MANIFEST_LIMIT, OCI_INDEX, parseImageManifest } from '../../formats/oci/manifest.ts';
import { storeSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import { bytesOfBlobs, findBlob, type BlobTable } from './blob-table.ts';
import type { Catalogs } from './catalogs.ts';
import { dataContent, type Content } from './content.ts';
import { asServerError } from './failure.ts';
import { imageTable, type ImageHolder, type ImageTable, type ImageRepo, type TaggedManifest } from './image-table.ts';
import type { Planner } from './planner.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface Images {
  /** Images of the current release. */
  readonly table: () => Promise<ImageTable>;
  /** By tag or digest; undefined if it does not exist. */
  readonly manifest: (repository: ImageRepo, reference: string) => Promise<Content | undefined>;
  readonly blob: (repository: ImageRepo, digest: Digest) => Promise<Content | undefined>;
}

/** Memory for blob tables in bytes: about 250,000 blobs. */
const TABLE_BYTES = 16 << 20;
/** Upper bound of the memory of a source, in bytes. */
const SOURCE_BYTES = 2048;

interface Opened {
  readonly source: RangeSource;
  readonly blobs: BlobTable;
}

interface Found {
  readonly source: RangeSource;
  readonly entry: PlacedEntry;
}

interface ImagesOptions extends WatchOptions {
  readonly catalogs: Catalogs;
  readonly planner: Planner;
}

export function createImages(store: Store, { catalogs, planner, ...options }: ImagesOptions): Images {
  const { signal } = options;
  const watch = createWatch(store, options);
  const tables = createSingleFlightCache<ImageTable>({ most: 4 });
  const opened = createSingleFlightCache<Opened>({
    most: TABLE_BYTES,
    weigh: ({ blobs }) => bytesOfBlobs(blobs) + SOURCE_BYTES,
  });
  const open = async ({ key, prefix }: ImageHolder): Promise<Opened> =>
    opened.get(`${key} ${(await watch(key)) ?? ''}`, async () =>
      asServerError(async () => {
        const { object, blobs } = await planner.run({ kind: 'blobs', key, prefix }, { signal });
        return { source: storeSource(store, object), blobs };
      }),
    );
  const find = async (holders: readonly ImageHolder[], digest: Digest): Promise<Found | undefined> => {
    for (const holder of holders) {
      const { source, blobs } = await open(holder);
      const entry = findBlob(blobs, holder.prefix, digest);
      if (entry !== undefined) return { source, entry };
    }
    return undefined;
  };
  const read = async (repository: ImageRepo, digest: Digest): Promise<Manifest | undefined> => {
    const place = await find(repository.manifests.get(digest) ?? [], digest);
    if (place === undefined) return undefined;
    const data = await readFile(place.source, place.entry, { limit: MANIFEST_LIMIT, signal });
    return { data, digest, type: parseImageManifest(data, undefined, place.source.name).mediaType };
  };
  const indexOf = async (repository: ImageRepo, tagged: readonly TaggedManifest[]): Promise<Manifest | undefined> => {
    const rows: unknown[] = [];
    for (const { arch, digest } of tagged) {
      const one = await read(repository, digest);
      if (one === undefined) return undefined;
      const platform = { os: 'linux', architecture: arch };
      rows.push({ mediaType: one.type, digest, size: one.data.byteLength, platform });
    }
    const data = Buffer.from(canonicalJson({ schemaVersion: 2, mediaType: OCI_INDEX, manifests: rows }));
    return { data, digest: digestOf(data), type: OCI_INDEX };
  };
  /** Indexes of each repository by digest, created once while its table is cached. */
  const indexes = new WeakMap<ImageRepo, Promise<ReadonlyMap<Digest, Manifest>>>();
  const indexesOf = async (repository: ImageRepo): Promise<ReadonlyMap<Digest, Manifest>> => {
    const created = new Map<Digest, Manifest>();
    for (const tagged of repository.tags.values()) {
      const one = tagged.length > 1 ? await indexOf(repository, tagged) : undefined;
      if (one !== undefined) created.set(one.digest, one);
    }
    return created;
  };
  const byTag = async (repository: ImageRepo, tagged: readonly TaggedManifest[]): Promise<Manifest | undefined> => {
    const [first, ...more] = tagged;
    if (first === undefined) return undefined;
    return more.length === 0 ? read(repository, first.digest) : indexOf(repository, tagged);
  };
  const byDigest = async (repository: ImageRepo, digest: Digest): Promise<Manifest | undefined> => {
    const own = await read(repository, digest);
    if (own !== undefined) return own;
    const pending = indexes.get(repository) ?? indexesOf(repository);
    indexes.set(repository, pending);
    try {
      return (await pending).get(digest);
    } catch (error) {
      indexes.delete(repository);
      throw error;
    }
  };
  return {
    table: async () => {
      const { catalog, etag } = await catalogs.of(undefined);
      return tables.get(`${catalog.release} ${etag}`, async () => imageTable(catalog));
    },
    manifest: async (repository, reference) => {
      const manifest = isDigest(reference)
        ? await byDigest(repository, reference)
        : await byTag(repository, repository.tags.get(reference) ?? []);
      return manifest === undefined ? undefined : manifestContent(manifest, isDigest(reference));
    },
    blob: async (repository, digest) => {
      const place = await find(repository.holders, digest);
      return place === undefined ? undefined : blobContent(place, digest);
    },
  };
}

interface Manifest {
  readonly data: Uint8Array;
  readonly digest: Digest;
  readonly type: string;
}

function manifestContent({ data, digest, type }: Manifest, pinned: boolean): Content {
  return dataContent(data, {
    etag: `"${digest}"`,
    type,
    cache: pinned ? 'forever' : 'ask',
    headers: { 'Docker-Content-Digest': digest },
  }).content;
}

function blobContent({ source, entry }: Found, digest: Digest): Content {
  const damaged = errorAbout('DIGEST_MISMATCH', `${source.name}: ${entry.path}`);
  return {
    size: entry.size,
    etag: `"${digest}"`,
    type: 'application/octet-stream',
    cache: 'forever',
    headers: { 'Docker-Content-Digest': digest },
    fromStart: !entry.stored,
    read: (offset, length, options) =>
      entry.stored
        ? storedRange(source, entry, { offset, length, damaged, ...options })
        : cut(readPayload(source, entry, options), offset, length),
  };
}

/** A range of a deflated payload, which must be inflated from its beginning. */
async function* cut(chunks: AsyncIterable<Uint8Array>, offset: number, length: number): Bytes {
  let at = 0;
  for await (const chunk of chunks) {
    const inRange = chunk.subarray(Math.max(0, offset - at), Math.max(0, offset + length - at));
    at += chunk.byteLength;
    if (inRange.byteLength > 0) yield inRange;
    if (at >= offset + length) return;
  }
}
