/**
 * Reads an image from a local archive in the formats of `docker save`, `podman save`, `skopeo` and `crane`: docker's format
 * (manifest.json) and OCI archives, plain or compressed with gzip or zstd. Returns the same type as for an image from a registry.
 */
import { createHash } from 'node:crypto';
import { constants, createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, stat, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { canonicalJson, digestOf, hexOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError, errnoOf, errorAbout, fileError } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { isObject, parseText, shallowJson } from '../../core/json.ts';
import type { Arch } from '../../core/ref.ts';
import { readDockerManifest, textsIn } from './docker-archive.ts';
import { formatPlatform, type Descriptor, type Platform, type ResolvedImage } from './image.ts';
import {
  CONFIG_LIMIT,
  DOCKER_CONFIG,
  DOCKER_LAYER,
  DOCKER_MANIFEST,
  DOCKER_ZSTD,
  MANIFEST_LIMIT,
  MANIFEST_TYPES,
  OCI_CONFIG,
  OCI_INDEX,
  OCI_LAYER,
  OCI_MANIFEST,
  parseConfig,
  parseImageManifest,
} from './manifest.ts';
import { isFor, isIndexType, otherPlatform, platformImage, type PlatformImage } from './platform.ts';
import { indexTar, readTarEntry, type TarPlace } from './tar-index.ts';
import { OTHER_PACKINGS, packingOf, unpacked } from './unpacked.ts';

interface ArchiveOptions {
  /** The id of the Manifest's `image` line, for messages. */
  readonly id: string;
  readonly arch: Arch;
  /** Names of the image; default: the names in the archive. */
  readonly names?: readonly string[] | undefined;
  /** Folder for the unpacked tar of a compressed archive, where `fetch` reads it. */
  readonly scratch: string;
  readonly signal: AbortSignal;
}

/** An open archive, with a lookup of its files. */
interface Opened {
  readonly file: FileHandle;
  readonly find: (path: string) => TarPlace | undefined;
  readonly from: string;
}

/** An image, its names in the archive, and the places of its layers. */
interface FoundImage {
  readonly image: PlatformImage;
  readonly names: readonly string[];
  readonly places: ReadonlyMap<Digest, TarPlace>;
}

/** An entry of index.json. */
type Entry = Readonly<Record<string, unknown>>;

const READ_SIZE = 1024 * 1024;
const MAX_NAMES = 100;

function invalid(from: string, what: string, hint?: string): CurlewError {
  return new CurlewError('IMAGE_INVALID', `${from}: ${what}`, { hint });
}

async function readFromArchive({ file, find, from }: Opened, path: string, limit: number): Promise<Uint8Array> {
  const place = find(path);
  if (place === undefined) throw invalid(from, `${JSON.stringify(path.slice(0, 200))} is missing in it`);
  return readTarEntry(file, place, limit, `${from}: ${path}`);
}

/** Full names with tags; ignores texts without a repository, such as a bare tag. */
function namesOf(candidates: readonly string[]): readonly string[] {
  const refs = candidates.slice(0, MAX_NAMES).map((text) => (/[/:]/.test(text) ? parseImageRef(text) : text));
  return [...new Set(refs.flatMap((ref) => (typeof ref === 'string' ? [] : [formatImageRef(ref)])))];
}

/** Describes a layer in an archive of docker's format: the config has the digest of an unpacked layer; a compressed one must be hashed. */
async function layerOf(
  { file, from }: Opened,
  place: TarPlace,
  diffId: Digest,
  signal: AbortSignal,
): Promise<Descriptor> {
  const start = await readTarEntry(file, { offset: place.offset, size: Math.min(4, place.size) }, 4, from);
  const packing = packingOf(start);
  if (packing === undefined) return { mediaType: DOCKER_LAYER, digest: diffId, size: place.size };
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(READ_SIZE);
  for (let at = 0; at < place.size;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, Math.min(READ_SIZE, place.size - at), place.offset + at);
    if (bytesRead === 0) throw invalid(from, 'it was truncated while it was being read');
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return { mediaType: `${DOCKER_LAYER}.${packing}`, digest: `sha256:${hash.digest('hex')}`, size: place.size };
}

/** The manifest of an archive's image: docker's, but that of OCI for layers with zstd, since older containerds read no other. */
function describe(
  config: Pick<Descriptor, 'digest' | 'size'>,
  layers: readonly Descriptor[],
): {
  readonly mediaType: string;
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
} {
  if (!layers.some(({ mediaType }) => mediaType === DOCKER_ZSTD))
    return { mediaType: DOCKER_MANIFEST, config: { mediaType: DOCKER_CONFIG, ...config }, layers };
  const ociType = (type: string): string => type.replace(DOCKER_LAYER, OCI_LAYER).replace(/\.(?=gzip$|zstd$)/, '+');
  return {
    mediaType: OCI_MANIFEST,
    config: { mediaType: OCI_CONFIG, ...config },
    layers: layers.map((layer) => ({ ...layer, mediaType: ociType(layer.mediaType) })),
  };
}

async function dockerRows(archive: Opened): Promise<ReturnType<typeof readDockerManifest>> {
  return readDockerManifest(
    await readFromArchive(archive, 'manifest.json', MANIFEST_LIMIT),
    errorAbout('IMAGE_INVALID', archive.from),
  );
}

async function dockerImage(archive: Opened, { arch, signal }: ArchiveOptions): Promise<FoundImage> {
  const { find, from } = archive;
  const [row, ...more] = await dockerRows(archive);
  if (row === undefined) throw invalid(from, 'manifest.json lists no image');
  if (more.length > 0)
    throw invalid(from, `${more.length + 1} images in it`, 'save each image into a separate archive');
  const { config: configPath, tags, layers: paths } = row;
  if (configPath === undefined) throw invalid(from, 'manifest.json lists no config');
  const data = await readFromArchive(archive, configPath, CONFIG_LIMIT);
  const digest = digestOf(data);
  const [, named = hexOf(digest)] = /([0-9a-f]{64})(?:\.json)?$/.exec(configPath) ?? [];
  if (named !== hexOf(digest)) throw new CurlewError('DIGEST_MISMATCH', `${from}: ${configPath} is ${digest}`);
  const { diffIds, ...actual } = parseConfig(data, paths.length, `${from}: ${configPath}`);
  const platform: Platform = { os: 'linux', arch };
  if (!isFor(actual, platform, 'user')) throw otherPlatform(from, formatPlatform(platform), actual, '');
  const places = new Map<Digest, TarPlace>();
  const layers: Descriptor[] = [];
  for (const [index, path] of paths.entries()) {
    const place = find(path);
    const diffId = diffIds[index];
    if (place === undefined || diffId === undefined)
      throw invalid(from, `layer ${JSON.stringify(path)} is missing in it`);
    const layer = await layerOf(archive, place, diffId, signal);
    const known = places.get(layer.digest);
    if (known !== undefined && known.size !== place.size) throw invalid(from, `two sizes for ${layer.digest}`);
    places.set(layer.digest, place);
    layers.push(layer);
  }
  const described = describe({ digest, size: data.byteLength }, layers);
  const image = {
    mediaType: described.mediaType,
    manifest: Buffer.from(canonicalJson({ schemaVersion: 2, ...described })),
    config: { descriptor: described.config, data },
    layers: described.layers,
  };
  return { image, names: namesOf(tags), places };
}

/** The names in the entries of index.json, and these as an index, without repeated digests. */
function indexOf(
  entries: readonly Entry[],
  from: string,
): { readonly names: readonly string[]; readonly index: Uint8Array } {
  const manifests = [...new Map(entries.map((entry) => [entry['digest'], entry])).values()];
  const named = entries.map(({ digest, annotations }) => {
    const { 'io.containerd.image.name': full, 'org.opencontainers.image.ref.name': short } = isObject(annotations)
      ? annotations
      : {};
    return { digest, names: namesOf(textsIn([full ?? short])) };
  });
  const images = new Set(named.filter(({ names }) => names.length > 0).map(({ digest }) => digest));
  const isUnclear = manifests.every(({ mediaType, platform }) => platform === undefined && !isIndexType(mediaType));
  const count = Math.max(images.size, isUnclear ? manifests.length : 0);
  if (count > 1) throw invalid(from, `${count} images in it`, 'save each image into a separate archive');
  const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests };
  return { names: named.flatMap(({ names }) => names), index: Buffer.from(JSON.stringify(index)) };
}

/** The entries of index.json; none for `null`, which docker writes for an image that it saves by digest. */
async function indexEntries(archive: Opened, from: string): Promise<readonly Entry[]> {
  const data = await readFromArchive(archive, 'index.json', MANIFEST_LIMIT);
  const parsed = parseText(Buffer.from(data).toString('utf8'), shallowJson, errorAbout('IMAGE_INVALID', from));
  const list = isObject(parsed) ? (parsed['manifests'] ?? []) : undefined;
  if (!Array.isArray(list)) throw invalid(from, 'no list of manifests');
  return withoutArtifacts(archive, list.filter(isObject));
}

/** Leaves out signatures, SBOMs and the like next to images, which runtimes pass over, too; a list of nothing else stays as it is. */
async function withoutArtifacts(archive: Opened, entries: readonly Entry[]): Promise<readonly Entry[]> {
  if (entries.length < 2 || entries.length > MAX_NAMES) return entries;
  const images: Entry[] = [];
  for (const entry of entries) if (!(await isArtifact(archive, entry))) images.push(entry);
  return images.length > 0 ? images : entries;
}

/** False also for what is missing or damaged: that is an error where it is used. */
async function isArtifact(archive: Opened, { digest, mediaType }: Entry): Promise<boolean> {
  if (typeof mediaType === 'string' && !MANIFEST_TYPES.includes(mediaType)) return true;
  if (!isDigest(digest) || archive.find(blobPath(digest)) === undefined) return false;
  try {
    parseImageManifest(await readFromArchive(archive, blobPath(digest), MANIFEST_LIMIT), undefined, archive.from);
    return false;
  } catch (error) {
    if (error instanceof CurlewError) return error.code === 'UNSUPPORTED';
    throw error;
  }
}

function blobPath(digest: Digest): string {
  return `blobs/sha256/${hexOf(digest)}`;
}

function isOci({ find }: Opened): boolean {
  return find('oci-layout') !== undefined && find('index.json') !== undefined;
}

/** The index of an OCI archive, whose names can be in docker's manifest instead; undefined if only that lists the image. */
async function ociIndex(archive: Opened): Promise<ReturnType<typeof indexOf> | undefined> {
  const from = `${archive.from}: index.json`;
  const entries = await indexEntries(archive, from);
  const isDocker = archive.find('manifest.json') !== undefined;
  if (entries.length === 0 && isDocker) return undefined;
  if (entries.length === 0)
    throw invalid(from, 'it lists no image', 'save the image again by name: docker save NAME:TAG');
  const { names, index } = indexOf(entries, from);
  return { names: isDocker && names.length === 0 ? await dockerNames(archive) : names, index };
}

async function dockerNames(archive: Opened): Promise<readonly string[]> {
  return namesOf((await dockerRows(archive)).flatMap(({ tags }) => tags));
}

async function ociImage(archive: Opened, options: ArchiveOptions): Promise<FoundImage> {
  const { find, from } = archive;
  const found = await ociIndex(archive);
  if (found === undefined) return dockerImage(archive, options);
  const { names, index } = found;
  const image = await platformImage(
    { data: index, mediaType: undefined },
    async ({ digest }, _kind, limit) => ({
      data: await readFromArchive(archive, blobPath(digest), limit),
      mediaType: undefined,
    }),
    // The user names the file, so an image in it needs no platform.
    {
      platform: { os: 'linux', arch: options.arch },
      name: '',
      anyPlatform: true,
      from,
      has: (digest) => find(blobPath(digest)) !== undefined,
    },
  );
  const places = new Map<Digest, TarPlace>();
  for (const { digest, size } of image.layers) {
    const place = find(blobPath(digest));
    if (place === undefined || place.size !== size)
      throw invalid(from, `layer ${digest} is missing in it or incomplete`);
    places.set(digest, place);
  }
  return { image, names, places };
}

/** The path of the plain tar: the archive itself, or its unpacked content in `scratch`, within limits. */
async function plainTar(path: string, from: string, { scratch, signal }: ArchiveOptions): Promise<string> {
  await using file = await open(path);
  const { size } = await file.stat();
  const { buffer } = await file.read(Buffer.alloc(6), 0, 6, 0);
  const [, other] = OTHER_PACKINGS.find(([magic]) => buffer.toString('hex').startsWith(magic)) ?? [];
  if (other !== undefined)
    throw invalid(from, `it is compressed with ${other}`, 'unpack it, or compress it with gzip or zstd');
  if (packingOf(buffer) === undefined) return path;
  const target = join(await mkdtemp(join(scratch, 'image-')), 'image.tar');
  const packed = createReadStream(path, { highWaterMark: READ_SIZE });
  await pipeline(
    Readable.from(unpacked(packed, { size }, errorAbout('IMAGE_INVALID', from))),
    createWriteStream(target),
    {
      signal,
    },
  );
  return target;
}

/** Sends the rest of a layer to a writer, and waits for its promises. */
async function sendEntry(path: string, { offset, size }: TarPlace, options: Parameters<ResolvedImage['fetch']>[1]) {
  const { from, write, signal } = options;
  await using file = await open(path);
  const buffer = Buffer.alloc(READ_SIZE);
  for (let at = from; at < size;) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, Math.min(READ_SIZE, size - at), offset + at);
    if (bytesRead === 0) throw new CurlewError('FILE_UNUSABLE', `cannot read ${path}: it was truncated`);
    at += bytesRead;
    await write(buffer.subarray(0, bytesRead));
  }
}

/**
 * Opens the one image of an archive. Throws `FILE_UNUSABLE` if it cannot be read, `IMAGE_INVALID` if it is not an image
 * archive, is damaged, or contains several images or none with a name, `UNSUPPORTED` for another platform.
 */
export async function openImageArchive(path: string, options: ArchiveOptions): Promise<ResolvedImage> {
  const from = `image ${options.id}: archive ${path}`;
  try {
    const plain = await plainTar(path, from, options);
    const { size: total } = await stat(plain);
    await using file = await open(plain);
    const find = await indexTar(file, total, from, { signal: options.signal });
    const archive: Opened = { file, find, from };
    if (!isOci(archive) && find('manifest.json') === undefined)
      throw invalid(from, 'it contains neither index.json nor manifest.json');
    const { image, names: own, places } = await (isOci(archive) ? ociImage : dockerImage)(archive, options);
    const { names = own } = options;
    const [reference] = names;
    if (reference === undefined) {
      const hint = `name it in the Manifest: image ${options.id} FILE.tar NAME:TAG; or save it by name: docker save NAME:TAG`;
      throw invalid(from, 'its image has no name', hint);
    }
    const digest = digestOf(image.manifest);
    return {
      ...image,
      reference,
      names,
      digest,
      resolved: digest,
      platform: formatPlatform({ os: 'linux', arch: options.arch }),
      ifAltered: `${path} is damaged: save the image again`,
      fetch: async (descriptor, fetchOptions) => {
        const place = isDigest(descriptor.digest) ? places.get(descriptor.digest) : undefined;
        if (place === undefined) throw new TypeError(`no layer of ${path}: ${descriptor.digest}`);
        await sendEntry(plain, place, fetchOptions);
        return undefined;
      },
    };
  } catch (error) {
    options.signal.throwIfAborted();
    throw errnoOf(error) === undefined ? error : fileError(`read ${from}`, error);
  }
}

/**
 * The names of the image in an archive, without reading its layers; undefined if they cannot be known: a compressed archive would
 * have to be unpacked, and a damaged one is reported by a build.
 */
export async function namesInArchive(
  path: string,
  { signal }: Pick<ArchiveOptions, 'signal'>,
): Promise<readonly string[] | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await file.stat();
    if (!stats.isFile()) return undefined;
    const archive: Opened = { file, find: await indexTar(file, stats.size, path, { signal }), from: path };
    return (isOci(archive) ? await ociIndex(archive) : undefined)?.names ?? (await dockerNames(archive));
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CurlewError || errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}
