/** Archives in the format of `docker save`: the images they contain, and their uncompressed bytes. */
import type { Cancellable } from '../../core/cancellable.ts';
import { isDigest, digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError, errorAbout } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { walkTar } from '../../formats/archive/walk-tar.ts';
import { readDockerManifest } from '../../formats/oci/docker-archive.ts';
import { CONFIG_LIMIT, MANIFEST_LIMIT, parseConfig } from '../../formats/oci/manifest.ts';
import { unpacked, type BadArchive } from '../../formats/oci/unpacked.ts';

/** The files of a package; paths are relative to the package's prefix. */
export interface ImageFiles {
  /** For messages. */
  readonly name: string;
  /** Bytes of a file; undefined if it does not exist. */
  readonly size: (path: string) => Promise<number | undefined>;
  readonly read: (path: string, options: Cancellable) => AsyncIterable<Uint8Array>;
}

/** One image of an archive. */
export interface ArchiveRow {
  /** Full names with tags; none if it was saved without one. */
  readonly names: readonly string[];
  readonly config: Digest;
  /** Paths of its layers in the archive. */
  readonly layers: readonly string[];
  /** What its layers unpack to, by its config; undefined if that does not say it of each. */
  readonly diffIds: readonly Digest[] | undefined;
}

interface ImageArchive {
  readonly rows: readonly ArchiveRow[];
  /** Size of the archive file. */
  readonly bytes: number;
  /** The uncompressed tar. */
  readonly open: (options: Cancellable) => AsyncIterable<Uint8Array>;
}

const MANIFEST_JSON = 'manifest.json';
const MAX_IMAGES = 1000;
/** Configs are named by their digest: `<hex>.json`, or `blobs/sha256/<hex>` since Docker 25. */
const CONFIG = /(?:^|\/)([0-9a-f]{64})(?:\.json)?$/;

/** Reads as much of an archive as is needed to list its images. `IMAGE_INVALID` if it is not such an archive. */
export async function readArchive(files: ImageFiles, path: string, { signal }: Cancellable): Promise<ImageArchive> {
  const from = `${files.name}: ${path}`;
  const invalid = errorAbout('IMAGE_INVALID', from, 'build or fetch the package again');
  const bytes = await files.size(path);
  if (bytes === undefined) throw invalid('no such file');
  const open = (options: Cancellable): AsyncIterable<Uint8Array> =>
    unpacked(files.read(path, options), { size: bytes }, invalid);
  let rows: readonly Omit<ArchiveRow, 'diffIds'>[] | undefined;
  const configs = new Map<Digest, readonly Digest[]>();
  const seen = new Set<string>();
  for await (const file of walkTar(open({ signal }), { refuse: (what) => invalid(what), signal })) {
    const [, hex] = CONFIG.exec(file.path) ?? [];
    const isManifest = file.path === MANIFEST_JSON;
    if (!isManifest && hex === undefined) continue;
    if (seen.has(file.path)) throw invalid(`two entries named ${JSON.stringify(file.path)}`);
    seen.add(file.path);
    if (isManifest) {
      if (file.size > MANIFEST_LIMIT) throw invalid(`${MANIFEST_JSON} is larger than ${MANIFEST_LIMIT} bytes`);
      rows = parseRows(await file.data(), invalid);
    } else if (file.size <= CONFIG_LIMIT && rows?.every(({ config }) => config !== `sha256:${hex}`) !== true) {
      // Many layers have such names, too: once it is known which are configs, they are not read.
      const data = await file.data();
      configs.set(digestOf(data), diffIdsIn(data));
    }
    if (rows?.every(({ config }) => configs.has(config)) === true) break;
  }
  if (rows === undefined) throw invalid(`not an image archive: ${MANIFEST_JSON} is missing`);
  const complete = rows.map((row): ArchiveRow => {
    const diffIds = configs.get(row.config);
    if (diffIds === undefined) throw invalid(`the config ${row.config} is missing or damaged`);
    return { ...row, diffIds: diffIds.length === row.layers.length ? diffIds : undefined };
  });
  return { rows: complete, bytes, open };
}

/** None for what is not a config: a layer can have such a name. */
function diffIdsIn(data: Uint8Array): readonly Digest[] {
  try {
    return parseConfig(data, undefined, '').diffIds;
  } catch (error) {
    if (error instanceof CurlewError) return [];
    throw error;
  }
}

function parseRows(data: Uint8Array, bad: BadArchive): readonly Omit<ArchiveRow, 'diffIds'>[] {
  const list = readDockerManifest(data, bad);
  if (list.length === 0) throw bad(`${MANIFEST_JSON} names no image`);
  if (list.length > MAX_IMAGES) throw bad(`${list.length} images, more than ${MAX_IMAGES}`);
  return list.map(({ config: path, tags, layers }) => {
    const config = `sha256:${CONFIG.exec(path ?? '')?.[1] ?? ''}`;
    if (!isDigest(config)) throw bad(`${MANIFEST_JSON} names no config`);
    const names = tags.map((tag) => {
      const ref = parseImageRef(tag);
      if (typeof ref === 'string') throw bad(`the name ${JSON.stringify(tag.slice(0, 200))}: ${ref}`);
      return formatImageRef(ref);
    });
    return { names, config, layers };
  });
}
