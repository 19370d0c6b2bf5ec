/** What loading needs of a container runtime; one file each for containerd and Docker. */
import type { Digest } from '../../core/digest.ts';
import type { KeyedMutex } from '../../platform/limit/keyed-mutex.ts';
import type { Semaphore } from '../../platform/limit/semaphore.ts';
import type { Cancellable } from './archive.ts';
import type { ImageForm, OciForm, WantedImage } from './wanted.ts';

/** What a name stands for. */
export interface KnownName {
  /** The runtime's own id: of a manifest for containerd, of a config or a manifest for Docker. */
  readonly id: Digest;
  /** Its layers are unpacked, so that containers can be made of it at once. */
  readonly ready: boolean;
  /** All its blobs are there, too. An image can do without its layers' once they are unpacked. */
  readonly whole: boolean;
}

/** A container runtime that answers. */
export interface ImageRuntime {
  readonly name: 'containerd' | 'docker';
  /** How many images it takes at once. */
  readonly width: number;
  /** Of as many images. */
  readonly loads: Semaphore;
  /** By digest: no two loads may bring the same layer at the same time. */
  readonly layers: KeyedMutex;
  /** Those of the names that it knows. */
  readonly survey: (names: readonly string[], options: Cancellable) => Promise<ReadonlyMap<string, KnownName>>;
  /** The names that it can give to an image; at least one. */
  readonly namesOf: (image: WantedImage, options: Cancellable) => Promise<readonly string[]>;
  /** Whether what a name stands for is this image. */
  readonly isImage: (known: KnownName, image: WantedImage, options: Cancellable) => Promise<boolean>;
  /** Asks what it has. The answer names the blobs of an image that it lacks. */
  readonly stock: (options: Cancellable) => Promise<(form: OciForm) => ReadonlySet<Digest>>;
  /** Takes the tar of an OCI layout or a docker archive. `doing` begins the message of an error. */
  readonly take: (doing: string, bytes: AsyncIterable<Uint8Array>, options: Cancellable) => Promise<void>;
  /** Gives an image that it knows by one name a second name, which nothing has. */
  readonly alias: (name: string, alias: string, options: Cancellable) => Promise<void>;
  /** Removes those of the names that it knows; the image of one that a container uses stays. */
  readonly remove: (names: readonly string[], options: Cancellable) => Promise<RemovedImages>;
}

export interface RemovedImages {
  readonly removed: readonly string[];
  readonly used: readonly string[];
}

/** All blobs of an image. */
export function blobsOf({ image }: OciForm): ReadonlySet<Digest> {
  return new Set([image.digest, image.config.descriptor.digest, ...image.layers.map(({ digest }) => digest)]);
}

/** Bytes of some blobs of an image, each once; of the whole archive for the other form. */
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
