/** A container image of one platform, wherever it lies: in a registry, in a local archive, in a Docker engine. */
import type { Digest } from '../../core/digest.ts';
import type { ImageRef } from '../../core/image-ref.ts';
import type { Arch } from '../../core/ref.ts';

export interface Platform {
  readonly os: 'linux';
  readonly arch: Arch;
}

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
}

export interface BlobFetchOptions {
  /** Bytes that are there already; delivery begins at this one. */
  readonly from: number;
  /**
   * Takes the bytes in order. They may be used until the call returns or, when it returns a promise, until that is
   * settled; reading pauses meanwhile.
   */
  readonly write: (chunk: Uint8Array) => Promise<void> | undefined;
  readonly signal: AbortSignal;
}

/**
 * Delivers the bytes of one blob. Comes back with a way to have them from elsewhere, for the case that they turn out to
 * be wrong: always from byte 0, and never for ever. Undefined when there is nobody else to ask.
 */
export type SendBlob = (options: BlobFetchOptions) => Promise<SendBlob | undefined>;

export interface ResolvedImage {
  /** The full normalised reference. */
  readonly reference: string;
  /** Every name under which a node's runtime is to know the image; at least one. */
  readonly names: readonly string[];
  /** What the reference names: an index, or the platform's manifest itself. */
  readonly resolved: Digest;
  /** Of the platform's manifest. */
  readonly digest: Digest;
  readonly mediaType: string;
  /** Byte for byte as its source has it. */
  readonly manifest: Uint8Array;
  readonly config: { readonly descriptor: Descriptor; readonly data: Uint8Array };
  /** In the order of the manifest, lowest first; a digest may occur more than once. */
  readonly layers: readonly Descriptor[];
  /** `linux/amd64`. */
  readonly platform: string;
  /**
   * Delivers exactly the bytes of a layer from `from` to its size, resuming broken connections by itself. They are
   * not verified: the caller hashes what it keeps. What `write` throws is passed on as it is.
   */
  readonly fetch: (descriptor: Descriptor, options: BlobFetchOptions) => ReturnType<SendBlob>;
}

export interface ImageSource {
  /** Throws `NOT_FOUND`, `AUTH_FAILED`, `FETCH_FAILED`, `DIGEST_MISMATCH`, `IMAGE_INVALID` or `UNSUPPORTED`. */
  readonly resolve: (
    ref: ImageRef,
    options: { readonly platform: Platform; readonly signal: AbortSignal },
  ) => Promise<ResolvedImage>;
}

/** `linux/amd64`. */
export function formatPlatform({ os, arch }: Platform): string {
  return `${os}/${arch}`;
}
