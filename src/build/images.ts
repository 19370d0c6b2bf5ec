/** Creates the files of `images/` from `image` steps: resolves references and lays out the images, without fetching blobs. */
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError } from '../core/errors.ts';
import { formatImageRef, parseImageRef, type ImageRef } from '../core/image-ref.ts';
import { packagePath } from '../core/layout.ts';
import type { PackageImage } from '../core/package.ts';
import type { Arch } from '../core/ref.ts';
import type { LockedImage } from '../manifest/lock.ts';
import type { ImageStep } from '../manifest/step.ts';
import { localFile } from '../manifest/within-repository.ts';
import { openImageArchive } from '../formats/oci/read-image-archive.ts';
import { alteredHint, type ResolvedImage } from '../formats/oci/image.ts';
import { DOCKER_ZSTD, parseConfig } from '../formats/oci/manifest.ts';
import { layersOf, type Layer } from '../formats/oci/check-layers.ts';
import { formatImageLayout } from '../formats/oci/oci-layout.ts';
import { measureFile } from './assets.ts';
import { bytesFile, type ContentFile } from './compile.ts';
import type { BuildPorts } from './ports.ts';

export interface StepImage {
  readonly step: ImageStep;
  readonly image: ResolvedImage;
  /** For the lock: the digest of the index or manifest; for an archive, of the file. */
  readonly locked: LockedImage;
}

export interface ResolveOptions {
  readonly root: string;
  readonly arch: Arch;
  /** Folder for temporary files until the package is built. */
  readonly scratch: string;
  readonly signal: AbortSignal;
}

type ImagePorts = Pick<BuildPorts, 'registry' | 'engine' | 'outsideFiles' | 'report'>;

/** Number of references resolved at once. */
const WIDTH = 8;

/** The reference of a step that names an image; already checked by the Manifest's parser. */
export function referenceOf(step: ImageStep): ImageRef {
  const ref = parseImageRef(step.reference ?? '');
  if (typeof ref !== 'string') return ref;
  throw new CurlewError('MANIFEST_INVALID', `image ${step.id}: ${ref}`);
}

/** Resolves the images of one add-on, in the order of the steps. */
export async function resolveImages(
  steps: readonly ImageStep[],
  ports: ImagePorts,
  options: ResolveOptions,
): Promise<readonly StepImage[]> {
  return mapLimited(
    steps,
    async (step, { signal }) => {
      try {
        const resolved = await resolveStep(step, ports, { ...options, signal });
        if (resolved.image.layers.some(({ mediaType }) => mediaType === DOCKER_ZSTD)) {
          const text = `image ${resolved.image.reference} needs containerd 2.0: its layers have docker's type for zstd, which older ones do not unpack; push it with OCI media types for those`;
          ports.report({ type: 'note', level: 'warning', text });
        }
        return resolved;
      } catch (error) {
        if (!(error instanceof CurlewError) || error.code === 'CANCELLED') throw error;
        if (error.message.startsWith(`image ${step.id}: `)) throw error;
        throw error.with({ message: `image ${step.id}: ${error.message}`, cause: error });
      }
    },
    { width: WIDTH, signal: options.signal },
  );
}

async function resolveStep(
  step: ImageStep,
  ports: ImagePorts,
  { root, arch, scratch, signal }: ResolveOptions,
): Promise<StepImage> {
  if (step.archive !== undefined) {
    const doing = 'read its archive';
    const path = localFile(step.archive, { root, doing, outsideFiles: ports.outsideFiles });
    const { digest } = await measureFile(path, doing, { signal });
    const names = step.reference === undefined ? undefined : [formatImageRef(referenceOf(step))];
    const image = await openImageArchive(path, { id: step.id, arch, names, scratch, signal });
    return { step, image, locked: lockedOf(step, image, digest) };
  }
  const ref = referenceOf(step);
  try {
    const image = await ports.registry.resolve(ref, { platform: { os: 'linux', arch }, signal });
    return { step, image, locked: lockedOf(step, image, image.resolved) };
  } catch (error) {
    // If the registry does not have the image or refuses it, try the engine.
    if (!(error instanceof CurlewError)) throw error;
    if (!['NOT_FOUND', 'AUTH_FAILED', 'FETCH_FAILED'].includes(error.code)) throw error;
    if (ports.engine === undefined) throw withEngineHint(error);
    const identity = await ports.engine.identify(ref, { signal }).catch((failure: unknown) => {
      if (!(failure instanceof CurlewError) || failure.code === 'CANCELLED') throw failure;
      const message = `${failure.message} (the registry also failed: ${error.message})`;
      throw failure.with({ message, cause: failure });
    });
    if (identity === undefined) throw error;
    const image = await ports.engine.export(ref, { folder: scratch, arch, signal });
    return { step, image, locked: lockedOf(step, image, identity) };
  }
}

function withEngineHint(error: CurlewError): CurlewError {
  const way =
    'if only the Docker engine of this machine has it, add --from-engine; the Manifest also takes a file of docker save: image ID FILE.tar';
  return error.with({ hint: error.hint === undefined ? way : `${error.hint}; ${way}` });
}

function lockedOf(step: ImageStep, image: ResolvedImage, digest: LockedImage['digest']): LockedImage {
  const { reference, platform, manifest } = image;
  const platforms = { [platform]: { digest: image.digest, size: manifest.byteLength } };
  return { id: step.id, reference, digest, platforms };
}

/** The layers of one image, with what they must unpack to. */
export function layersOfImage({ image }: StepImage): readonly Layer[] {
  const of = `image ${image.reference}`;
  const { diffIds } = parseConfig(image.config.data, image.layers.length, of);
  return layersOf(of, image.layers, diffIds);
}

export function packageImageOf({ step, image }: StepImage): PackageImage {
  const { reference, digest, platform } = image;
  return { id: step.id, reference, digest, platform };
}

/** The files of `images/` as one OCI layout; each blob once, even if several images use it. */
export function layoutFiles(images: readonly StepImage[]): readonly ContentFile[] {
  if (images.length === 0) return [];
  const layout = formatImageLayout(images.map(({ step, image }) => ({ id: step.id, image })));
  const files = layout.files.map(({ path, data }) => bytesFile(packagePath.image(path), data));
  const blobs = layout.blobs.map(({ descriptor, image }): ContentFile => {
    const { digest, size } = descriptor;
    return {
      path: packagePath.blob(digest),
      mode: 0o644,
      size,
      digest,
      content: {
        kind: 'blob',
        of: image.reference,
        send: async (options) => image.fetch(descriptor, options),
        ifAltered: alteredHint(image),
      },
    };
  });
  return [...files, ...blobs];
}
