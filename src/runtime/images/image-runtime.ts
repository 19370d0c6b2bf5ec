/** The interface of container runtimes for loading images; containerd and Docker implement it. */
import type { Digest } from '../../core/digest.ts';
import type { KeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import type { Semaphore } from '../../platform/limit/semaphore.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import type { ImageForm, OciForm, RequiredImage } from './required-images.ts';

export const RUNTIME_NAMES = ['containerd', 'docker'] as const;
export type RuntimeName = (typeof RUNTIME_NAMES)[number];

/** The image that a name refers to. */
export interface KnownName {
  /** The runtime's ID: of a manifest for containerd, of a config or a manifest for Docker. */
  readonly id: Digest;
  /** Its layers are unpacked, so that containers can start from it at once. */
  readonly ready: boolean;
  /** All its blobs are present. Blobs of unpacked layers are not needed to start containers. */
  readonly complete: boolean;
}

/** A container runtime that responds. */
export interface ImageRuntime {
  readonly name: RuntimeName;
  /** Number of images to load at once. */
  readonly width: number;
  /** Limits loads to `width`. */
  readonly loads: Semaphore;
  /** By digest: no two loads may send the same layer at the same time. */
  readonly layers: KeyedMutex;
  /** The images of the names that exist. */
  readonly lookUp: (names: readonly string[], options: Cancellable) => Promise<ReadonlyMap<string, KnownName>>;
  /** The names that it can give an image; at least one. */
  readonly namesOf: (image: RequiredImage, options: Cancellable) => Promise<readonly string[]>;
  /** True if a name refers to this image. */
  readonly isImage: (known: KnownName, image: RequiredImage, options: Cancellable) => Promise<boolean>;
  /** Lists its content. The returned function gives the missing blobs of an image. */
  readonly listContent: (options: Cancellable) => Promise<(form: OciForm) => ReadonlySet<Digest>>;
  /** Imports the tar of an OCI layout or a docker archive. `doing` starts the message of an error. */
  readonly importTar: (doing: string, bytes: AsyncIterable<Uint8Array>, options: Cancellable) => Promise<void>;
  /** Gives an image a second name, which must be free. */
  readonly alias: (name: string, alias: string, options: Cancellable) => Promise<void>;
  /** Where curlew has made a cluster, keeps images with these names from the kubelet's collector, as far as the runtime can. */
  readonly protect?: (names: readonly string[], options: Cancellable) => Promise<void>;
  /** Removes these names if they exist; names of images that a container uses stay. */
  readonly remove: (
    names: readonly string[],
    options: Cancellable,
  ) => Promise<{ readonly removed: readonly string[]; readonly used: readonly string[] }>;
}

/** All blobs of an image. */
export function blobsOf({ image }: OciForm): ReadonlySet<Digest> {
  return new Set([image.digest, image.config.descriptor.digest, ...image.layers.map(({ digest }) => digest)]);
}

/** Bytes of the given blobs of an image (default: all), each counted once; for an archive, its size. */
export function bytesOf(form: ImageForm, blobs?: ReadonlySet<Digest>): number {
  if (form.kind === 'archive') return form.bytes;
  const { image } = form;
  const sizes = new Map<Digest, number>([
    [image.digest, image.manifest.byteLength],
    [image.config.descriptor.digest, image.config.data.byteLength],
    ...image.layers.map(({ digest, size }) => [digest, size] as const),
  ]);
  let sum = 0;
  for (const [digest, size] of sizes) if (blobs?.has(digest) !== false) sum += size;
  return sum;
}
