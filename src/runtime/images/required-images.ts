/** Images that packages require, from untrusted input: the list in addon.json, and the manifests or archives it names. */
import { digestOf, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { formatImageRef, imageNames, parseImageRef } from '../../core/image-ref.ts';
import { fileNameProblem, packagePath } from '../../core/layout.ts';
import type { AddonJson, PackageImage } from '../../core/package.ts';
import type { Arch } from '../../core/ref.ts';
import type { Descriptor } from '../../formats/oci/image.ts';
import {
  CONFIG_LIMIT,
  DOCKER_LAYER,
  MANIFEST_LIMIT,
  parseConfig,
  parseImageManifest,
} from '../../formats/oci/manifest.ts';
import type { LaidOutImage } from '../../formats/oci/oci-layout.ts';
import { isFor } from '../../formats/oci/platform.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import { readArchive, type ArchiveRow, type ImageFiles } from './docker-archive.ts';
import { layersOf, type Layer } from '../../formats/oci/check-layers.ts';
import { createSingleFlightCache } from '../../platform/limit/single-flight-cache.ts';

/** An image in an OCI layout: blobs can be sent individually. */
export interface OciForm {
  readonly kind: 'oci';
  readonly image: LaidOutImage;
  /** Digests of the unpacked layers, in the order of the manifest. */
  readonly diffIds: readonly Digest[];
  readonly blob: (descriptor: Descriptor, options: Cancellable) => AsyncIterable<Uint8Array>;
}

/** An image in a docker archive, plain or gzipped: it can only be sent as a whole. */
export interface ArchiveForm {
  readonly kind: 'archive';
  readonly config: Digest;
  readonly layers: number;
  /** The layers as the archive has them, with what they unpack to; their digests are not known. */
  readonly layersAt: (path: string) => readonly Layer[];
  /** Size of the archive file. */
  readonly bytes: number;
  readonly open: (options: Cancellable) => AsyncIterable<Uint8Array>;
}

export type ImageForm = OciForm | ArchiveForm;

export interface RequiredImage {
  /** For messages. */
  readonly reference: string;
  /** Normalized names for it in the runtime; at least one. */
  readonly names: readonly string[];
  /** Digest of the manifest; undefined for an archive, for which the runtime creates one. */
  readonly digest: Digest | undefined;
  /** Reads manifest and config once. Throws `IMAGE_INVALID`, `DIGEST_MISMATCH` or errors of reading. */
  readonly form: (options: Cancellable) => Promise<ImageForm>;
}

const MAX_IMAGES = 10_000;

const ARCHES: Readonly<Record<string, Arch>> = { x64: 'amd64', arm64: 'arm64' };

/** The architecture of this machine; undefined if no package supports it. */
export const HOST_ARCH: Arch | undefined = ARCHES[process.arch];
const HOST_PLATFORM = `linux/${HOST_ARCH ?? process.arch}`;

/**
 * The images that an addon.json lists, each once. Nothing is read yet. `IMAGE_INVALID` if the list is invalid, `UNSUPPORTED` if
 * an image is for another platform.
 */
export function packageImages(
  files: ImageFiles,
  { images, imageFormat }: Pick<AddonJson, 'images' | 'imageFormat'>,
  platform: string = HOST_PLATFORM,
): readonly RequiredImage[] {
  if (images.length > MAX_IMAGES) throw invalid(files, `${images.length} images, more than ${MAX_IMAGES}`);
  const digests = new Map<string, Digest>();
  const wanted = new Map<string, RequiredImage>();
  const forms = createSingleFlightCache<ImageForm>();
  for (const image of images) {
    const ref = parseImageRef(image.reference);
    if (typeof ref === 'string') throw invalid(files, `image ${quoted(image.reference)}: ${ref}`);
    const reference = formatImageRef(ref);
    if (image.platform !== platform) {
      throw new CurlewError(
        'UNSUPPORTED',
        `${files.name}: image ${reference} is for ${quoted(image.platform)}, this machine is ${platform}`,
        { hint: "use the package of this machine's architecture" },
      );
    }
    const isArchive = imageFormat === 'docker-archive';
    // A docker archive cannot contain a name with a digest.
    const names = imageNames(ref).filter((name) => !isArchive || !name.includes('@'));
    if (names.length === 0) throw invalid(files, `image ${reference} has no tag, and its archive cannot name a digest`);
    for (const name of names) {
      const other = digests.get(name);
      if (other !== undefined && other !== image.digest) throw invalid(files, `two different images are named ${name}`);
      digests.set(name, image.digest);
    }
    const form = isArchive ? archiveOf(files, image, reference) : layoutOf(files, image, { reference, names });
    const formOnce: RequiredImage['form'] = async (options) => forms.get(reference, async () => form(options));
    wanted.set(reference, { reference, names, digest: isArchive ? undefined : image.digest, form: formOnce });
  }
  return [...wanted.values()];
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 200));
}

function invalid({ name }: ImageFiles, what: string): CurlewError {
  return new CurlewError('IMAGE_INVALID', `${name}: ${what}`, { hint: 'build or fetch the package again' });
}

function layoutOf(
  files: ImageFiles,
  { digest, platform }: PackageImage,
  { reference, names }: Pick<RequiredImage, 'reference' | 'names'>,
): RequiredImage['form'] {
  const from = `${files.name}: image ${reference}`;
  return async ({ signal }) => {
    const manifest = await readBlob(files, { digest, limit: MANIFEST_LIMIT, from }, { signal });
    const parsed = parseImageManifest(manifest, undefined, from);
    if (parsed.kind === 'index') throw invalid(files, `image ${reference}: expected a manifest, found an index`);
    const { config: descriptor, layers, mediaType } = parsed;
    const data = await readBlob(files, { digest: descriptor.digest, limit: CONFIG_LIMIT, from }, { signal });
    const { os, arch, diffIds } = parseConfig(data, layers.length, from);
    // The build has decided, maybe by an index or by the user: only another system is certain not to run.
    if (!isFor({ os, arch }, { os: 'linux', arch: HOST_ARCH ?? 'amd64' }, 'index'))
      throw invalid(files, `image ${reference} is for ${quoted(`${os}/${arch}`)}`);
    const config = { descriptor, data };
    const image = { reference, names, resolved: digest, digest, mediaType, manifest, config, layers, platform };
    return {
      kind: 'oci',
      image,
      diffIds,
      blob: (layer, options) => files.read(packagePath.blob(layer.digest), options),
    };
  };
}

async function readBlob(
  files: ImageFiles,
  { digest, limit, from }: { readonly digest: Digest; readonly limit: number; readonly from: string },
  { signal }: Cancellable,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of files.read(packagePath.blob(digest), { signal })) {
    size += part.byteLength;
    if (size > limit) throw new CurlewError('IMAGE_INVALID', `${from}: ${digest} is larger than ${limit} bytes`);
    parts.push(part);
  }
  const data = Buffer.concat(parts);
  if (digestOf(data) === digest) return data;
  throw new CurlewError('DIGEST_MISMATCH', `${from}: the blob ${digest} is damaged`, {
    hint: 'build or fetch the package again',
  });
}

function archiveOf(files: ImageFiles, { id }: PackageImage, reference: string): RequiredImage['form'] {
  const problem = fileNameProblem(id);
  if (problem !== undefined) throw invalid(files, `the id ${quoted(id)} of image ${reference} ${problem}`);
  const path = packagePath.dockerArchive(id);
  return async ({ signal }) => {
    const { rows, bytes, open } = await readArchive(files, path, { signal });
    const [row, ...more] = rows;
    if (row === undefined || more.length > 0) throw invalid(files, `${path} contains ${rows.length} images, not one`);
    return archiveForm(`${files.name}: image ${reference}`, row, { bytes, open });
  };
}

function archiveForm(
  from: string,
  { config, layers, diffIds }: ArchiveRow,
  { bytes, open }: Pick<ArchiveForm, 'bytes' | 'open'>,
): ArchiveForm {
  const layersAt = (path: string): readonly Layer[] => {
    if (diffIds === undefined && layers.includes(path))
      throw new CurlewError('IMAGE_INVALID', `${from}: its config does not say what its layers unpack to`);
    // No other layer has this digest: a name in an archive does not prove what its bytes are.
    const digest = digestOf(`${from}\n${path}`);
    const descriptors = layers.map(() => ({ mediaType: DOCKER_LAYER, digest, size: 0 }));
    return layersOf(from, descriptors, diffIds ?? []).filter((_, at) => layers[at] === path);
  };
  return { kind: 'archive', config, layers: layers.length, layersAt, bytes, open };
}

/** The images of an archive without an addon.json, with the names in the archive. */
export async function archiveImages(
  files: ImageFiles,
  path: string,
  { signal }: Cancellable,
): Promise<readonly RequiredImage[]> {
  const { rows, bytes, open } = await readArchive(files, path, { signal });
  return rows
    .filter(({ names }) => names.length > 0)
    .map((row) => {
      const { names } = row;
      const form = archiveForm(`${files.name}: ${names.join(', ')}`, row, { bytes, open });
      return { reference: names.join(', '), names, digest: undefined, form: async () => form };
    });
}
