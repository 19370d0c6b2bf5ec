/** Manifests and blobs of images, read from the packages that hold them; nothing is unpacked on disk. */
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../archive/entry.ts';
import { readFile, readIndex, readPayload } from '../archive/read.ts';
import { storedRange } from '../archive/stored.ts';
import { canonicalJson, digestOf, isDigest, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { packagePath } from '../core/layout.ts';
import { MANIFEST_LIMIT, OCI_INDEX, parseManifest } from '../registry/manifest.ts';
import { openStoreSource } from '../store/source.ts';
import type { Store } from '../store/store.ts';
import type { Catalogues } from './catalogues.ts';
import { dataContent, type Content } from './content.ts';
import { ofStore } from './failure.ts';
import { imageTable, type ImageHolder, type ImageTable, type Repository, type TaggedManifest } from './image-table.ts';
import { createShelf } from './shelf.ts';
import { createWatch, type WatchOptions } from './watch.ts';

export interface Images {
  /** Those of the current release. */
  readonly table: () => Promise<ImageTable>;
  /** By tag or digest; undefined when there is none. */
  readonly manifest: (repository: Repository, reference: string) => Promise<Content | undefined>;
  readonly blob: (repository: Repository, digest: Digest) => Promise<Content | undefined>;
}

/** Entries of all indexes together. */
const MOST_ENTRIES = 50_000;
/** Digests of blobs that are remembered by package, so that one that is in none of them is known without reading. */
const MOST_BLOBS = 200_000;

interface Opened {
  readonly source: RangeSource;
  readonly index: ArchiveIndex;
}

interface Found extends Opened {
  readonly entry: PlacedEntry;
}

export function createImages(
  store: Store,
  { catalogues, ...options }: WatchOptions & { readonly catalogues: Catalogues },
): Images {
  const { signal } = options;
  const watch = createWatch(store, options);
  const tables = createShelf<ImageTable>({ most: 4, weigh: () => 1 });
  const shelf = createShelf<Opened>({ most: MOST_ENTRIES, weigh: ({ index }) => index.entries.length + 100 });
  const held = createShelf<ReadonlySet<string>>({ most: MOST_BLOBS, weigh: ({ size }) => size + 1 });
  const versionOf = async (key: string): Promise<string> => `${key} ${(await watch(key)) ?? ''}`;
  const open = async (key: string, version: string): Promise<Opened> =>
    shelf.take(version, async () =>
      ofStore(async () => {
        const source = await openStoreSource(store, key, { signal });
        return { source, index: await readIndex(source, { signal }) };
      }),
    );
  const find = async (holders: readonly ImageHolder[], digest: Digest): Promise<Found | undefined> => {
    for (const { key, prefix } of holders) {
      const path = prefix + packagePath.blob(digest);
      const version = await versionOf(key);
      const blobs = await held.take(version, async () => blobsOf(await open(key, version), prefix));
      if (!blobs.has(path)) continue;
      const opened = await open(key, version);
      const entry = opened.index.entries.find((one) => one.path === path);
      if (entry !== undefined && entry.digest === digest) return { ...opened, entry };
    }
    return undefined;
  };
  const read = async (repository: Repository, digest: Digest): Promise<Manifest | undefined> => {
    const found = await find(repository.manifests.get(digest) ?? [], digest);
    if (found === undefined) return undefined;
    const data = await readFile(found.source, found.entry, { limit: MANIFEST_LIMIT, signal });
    return { data, digest, type: parseManifest(data, undefined, found.source.name).mediaType };
  };
  const indexOf = async (repository: Repository, tagged: readonly TaggedManifest[]): Promise<Manifest | undefined> => {
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
  /** Indexes of each repository by digest: made once as long as its table is kept, whatever is asked for. */
  const indexes = new WeakMap<Repository, Promise<ReadonlyMap<Digest, Manifest>>>();
  const indexesOf = async (repository: Repository): Promise<ReadonlyMap<Digest, Manifest>> => {
    const made = new Map<Digest, Manifest>();
    for (const tagged of repository.tags.values()) {
      const one = tagged.length > 1 ? await indexOf(repository, tagged) : undefined;
      if (one !== undefined) made.set(one.digest, one);
    }
    return made;
  };
  const byTag = async (repository: Repository, tagged: readonly TaggedManifest[]): Promise<Manifest | undefined> => {
    const [first, ...more] = tagged;
    if (first === undefined) return undefined;
    return more.length === 0 ? read(repository, first.digest) : indexOf(repository, tagged);
  };
  const byDigest = async (repository: Repository, digest: Digest): Promise<Manifest | undefined> => {
    const own = await read(repository, digest);
    if (own !== undefined) return own;
    const made = indexes.get(repository) ?? indexesOf(repository);
    indexes.set(repository, made);
    try {
      return (await made).get(digest);
    } catch (error) {
      indexes.delete(repository);
      throw error;
    }
  };
  return {
    table: async () => {
      const { catalogue, etag } = await catalogues.of(undefined);
      return tables.take(`${catalogue.release} ${etag}`, async () => imageTable(catalogue));
    },
    manifest: async (repository, reference) => {
      const found = isDigest(reference)
        ? await byDigest(repository, reference)
        : await byTag(repository, repository.tags.get(reference) ?? []);
      return found === undefined ? undefined : manifestContent(found, isDigest(reference));
    },
    blob: async (repository, digest) => {
      const found = await find(repository.holders, digest);
      return found === undefined ? undefined : blobContent(found, digest);
    },
  };
}

function blobsOf({ index }: Opened, prefix: string): ReadonlySet<string> {
  const folder = prefix + packagePath.blobs;
  return new Set(index.entries.flatMap(({ path }) => (path.startsWith(folder) ? [path] : [])));
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
  const damaged = (what: string): CurlewError =>
    new CurlewError('DIGEST_MISMATCH', `${source.name}: ${entry.path}: ${what}`);
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

/** A deflated payload is unpacked from its beginning, whatever is wanted of it. */
async function* cut(
  chunks: AsyncIterable<Uint8Array>,
  offset: number,
  length: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let at = 0;
  for await (const chunk of chunks) {
    const wanted = chunk.subarray(Math.max(0, offset - at), Math.max(0, offset + length - at));
    at += chunk.byteLength;
    if (wanted.byteLength > 0) yield wanted;
    if (at >= offset + length) return;
  }
}
