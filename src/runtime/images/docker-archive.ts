/** Archives in the format of `docker save`: the images they contain, and their uncompressed bytes. */
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { isDigest, digestOf, type Digest } from '../../core/digest.ts';
import { asError, CurlewError, errnoOf } from '../../core/errors.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { fieldsOf, isTexts, shallowJson } from '../../core/json.ts';
import { walkTar } from '../../formats/archive/walk-tar.ts';
import { CONFIG_LIMIT, MANIFEST_LIMIT } from '../../formats/oci/manifest.ts';

export interface Cancellable {
  readonly signal: AbortSignal;
}

/** The files of a package; paths are relative to the package's prefix. */
export interface ImageFiles {
  /** For messages. */
  readonly name: string;
  /** Bytes of a file; undefined if it does not exist. */
  readonly size: (path: string) => Promise<number | undefined>;
  readonly read: (path: string, options: Cancellable) => AsyncIterable<Uint8Array>;
}

/** One image of an archive. */
interface ArchiveRow {
  /** Full names with tags; none if it was saved without one. */
  readonly names: readonly string[];
  readonly config: Digest;
  /** How many it has. */
  readonly layers: number;
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
/** An unpacked tar may be this many times larger than the archive; a gzip bomb is about 1000 times larger. */
const MAX_RATIO = 200;
const ALWAYS_ALLOWED = 64 << 20;
const READ_SIZE = 1 << 20;

/** Reads as much of an archive as is needed to list its images. `IMAGE_INVALID` if it is not such an archive. */
export async function readArchive(files: ImageFiles, path: string, { signal }: Cancellable): Promise<ImageArchive> {
  const from = `${files.name}: ${path}`;
  const invalid = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('IMAGE_INVALID', `${from}: ${what}`, { cause, hint: 'build or fetch the package again' });
  const bytes = await files.size(path);
  if (bytes === undefined) throw invalid('no such file');
  const most = Math.max(ALWAYS_ALLOWED, bytes * MAX_RATIO);
  const open = (options: Cancellable): AsyncIterable<Uint8Array> =>
    limited(unzipped(files.read(path, options), invalid), most, invalid);
  let rows: readonly ArchiveRow[] | undefined;
  const configs = new Set<Digest>();
  for await (const file of walkTar(open({ signal }), { refuse: (what) => invalid(what), signal })) {
    if (file.path === MANIFEST_JSON) {
      if (file.size > MANIFEST_LIMIT) throw invalid(`${MANIFEST_JSON} is larger than ${MANIFEST_LIMIT} bytes`);
      rows = parseRows(await file.data(), invalid);
    } else if (CONFIG.test(file.path) && file.size <= CONFIG_LIMIT) {
      configs.add(digestOf(await file.data()));
    }
    if (rows?.every(({ config }) => configs.has(config)) === true) break;
  }
  if (rows === undefined) throw invalid(`not an image archive: ${MANIFEST_JSON} is missing`);
  const broken = rows.find(({ config }) => !configs.has(config));
  if (broken !== undefined) throw invalid(`the config ${broken.config} is missing or damaged`);
  return { rows, bytes, open };
}

function parseRows(data: Uint8Array, invalid: (what: string, cause?: unknown) => Error): readonly ArchiveRow[] {
  let list: unknown;
  try {
    list = shallowJson(Buffer.from(data).toString('utf8'));
  } catch (error) {
    throw invalid(`${MANIFEST_JSON} is not JSON`, error);
  }
  if (!Array.isArray(list) || list.length === 0) throw invalid(`${MANIFEST_JSON} names no image`);
  if (list.length > MAX_IMAGES) throw invalid(`${list.length} images, more than ${MAX_IMAGES}`);
  return list.map((row: unknown) => {
    const { Config: path, RepoTags: tags, Layers: layers } = fieldsOf(row);
    const config = typeof path === 'string' ? `sha256:${CONFIG.exec(path)?.[1] ?? ''}` : '';
    if (!isDigest(config)) throw invalid(`${MANIFEST_JSON} names no config`);
    const names = (isTexts(tags) ? tags : []).map((tag) => {
      const ref = parseImageRef(tag);
      if (typeof ref === 'string') throw invalid(`the name ${JSON.stringify(tag.slice(0, 200))}: ${ref}`);
      return formatImageRef(ref);
    });
    return { names, config, layers: Array.isArray(layers) ? layers.length : 0 };
  });
}

/** The uncompressed bytes; the input may be gzipped or not. */
async function* unzipped(
  packed: AsyncIterable<Uint8Array>,
  invalid: (what: string, cause?: unknown) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
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
    if (errnoOf(error)?.startsWith('Z_') === true) throw invalid(asError(error).message, error);
    throw error;
  } finally {
    gunzip.destroy();
    source.destroy();
  }
}

async function* prefixed(
  first: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* limited(
  bytes: AsyncIterable<Uint8Array>,
  most: number,
  invalid: (what: string) => Error,
): AsyncGenerator<Uint8Array, void, undefined> {
  let count = 0;
  for await (const chunk of bytes) {
    count += chunk.byteLength;
    if (count > most) throw invalid(`it unpacks to more than ${most} bytes`);
    yield chunk;
  }
}
