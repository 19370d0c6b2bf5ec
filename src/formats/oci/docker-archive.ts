/**
 * kURL's form of an image: one archive in the format of `docker save`, for `docker load` and containerd's import. The planner is
 * pure; equal images give equal lists. Layers keep their compression: all readers detect it from the bytes.
 */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { Bytes } from '../../core/bytes.ts';
import { canonicalJson, hexOf } from '../../core/digest.ts';
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { fieldsOf, parseText, shallowJson } from '../../core/json.ts';
import type { Descriptor, ResolvedImage } from './image.ts';

export interface ArchiveFile {
  readonly path: string;
  readonly size: number;
  /** The bytes themselves, or the blob that holds them. */
  readonly content:
    | { readonly kind: 'data'; readonly data: Uint8Array }
    | { readonly kind: 'blob'; readonly descriptor: Descriptor };
}

function dataFile(path: string, data: Uint8Array): ArchiveFile {
  return { path, size: data.byteLength, content: { kind: 'data', data } };
}

function extensionOf({ mediaType }: Descriptor): string {
  if (mediaType.endsWith('gzip')) return 'tar.gz';
  return mediaType.endsWith('zstd') ? 'tar.zst' : 'tar';
}

/**
 * The files of the archive in tar order: `manifest.json` first, so that readers know the content in advance, the config, the
 * layers from the lowest, each once. Throws `UNSUPPORTED` for an image without a tag to load it under.
 */
export function planDockerArchive(image: ResolvedImage): readonly ArchiveFile[] {
  const tags = image.names.filter((name) => !name.includes('@'));
  if (tags.length === 0) {
    throw new CurlewError('UNSUPPORTED', `${image.reference}: an archive in docker's format requires a tag`, {
      hint: 'write name:tag@sha256:…, or use the OCI format',
    });
  }
  const configPath = `${hexOf(image.config.descriptor.digest)}.json`;
  const layerPath = (layer: Descriptor): string => `${hexOf(layer.digest)}.${extensionOf(layer)}`;
  const layers = new Map<string, ArchiveFile>(
    image.layers.map((descriptor) => [
      layerPath(descriptor),
      {
        path: layerPath(descriptor),
        size: descriptor.size,
        content: { kind: 'blob', descriptor },
      },
    ]),
  );
  const manifest = [{ Config: configPath, RepoTags: tags, Layers: image.layers.map(layerPath) }];
  return [
    dataFile('manifest.json', Buffer.from(`${canonicalJson(manifest)}\n`)),
    dataFile(configPath, image.config.data),
    ...layers.values(),
  ];
}

/** Creates the error for an archive from outside. */
export type BadArchive = (what: string, cause?: unknown) => CurlewError;

/** The rows of an archive's `manifest.json`; what has another form is left out. */
export function readDockerManifest(
  data: Uint8Array,
  bad: BadArchive,
): readonly {
  readonly config: string | undefined;
  readonly tags: readonly string[];
  readonly layers: readonly string[];
}[] {
  const list = parseText(Buffer.from(data).toString(), shallowJson, (what, cause) =>
    bad(`manifest.json: ${what}`, cause),
  );
  return (Array.isArray(list) ? (list as readonly unknown[]) : []).map((row) => {
    const { Config: config, RepoTags: tags, Layers: layers } = fieldsOf(row);
    return { config: typeof config === 'string' ? config : undefined, tags: textsIn(tags), layers: textsIn(layers) };
  });
}

/** The texts of a list; none of anything else. */
export function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** An unpacked tar may be this many times larger than the archive; a gzip bomb is about 1000 times larger. */
const MAX_RATIO = 200;
const ALWAYS_ALLOWED = 64 << 20;
const READ_SIZE = 1 << 20;

/** The tar in an archive of `size` bytes, which may be gzipped or not. */
export function unpacked(archive: AsyncIterable<Uint8Array>, size: number, bad: BadArchive): AsyncIterable<Uint8Array> {
  return limited(unzipped(archive, bad), Math.max(ALWAYS_ALLOWED, size * MAX_RATIO), bad);
}

/** The uncompressed bytes; the input may be gzipped or not. */
async function* unzipped(packed: AsyncIterable<Uint8Array>, bad: BadArchive): Bytes {
  const chunks = packed[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = prefixed(first.value, chunks);
  if (Buffer.from(first.value.subarray(0, 2)).toString('hex') !== '1f8b') {
    yield* all;
    return;
  }
  const source = Readable.from(all, { objectMode: false });
  const gunzip = createGunzip({ chunkSize: READ_SIZE });
  source.once('error', (error) => gunzip.destroy(error));
  source.pipe(gunzip);
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    if (errnoOf(error)?.startsWith('Z_') === true) throw bad(asError(error).message, error);
    throw error;
  } finally {
    gunzip.destroy();
    source.destroy();
  }
}

async function* prefixed(first: Uint8Array, rest: AsyncIterator<Uint8Array>): Bytes {
  try {
    yield first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* limited(bytes: AsyncIterable<Uint8Array>, most: number, bad: BadArchive): Bytes {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.byteLength;
    if (count > most) throw bad(`it unpacks to more than ${most} bytes`);
    yield chunk;
  }
}
