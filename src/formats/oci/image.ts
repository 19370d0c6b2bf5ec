/** A container image for one platform, from a registry, a local archive or a Docker engine. */
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
  /** Where a layer is if the registry does not have it. */
  readonly urls?: readonly string[] | undefined;
}

export interface BlobFetchOptions {
  /** Offset of the first byte to deliver. */
  readonly from: number;
  /**
   * Receives the bytes in order. They are valid until the call returns or, if it returns a promise, until that settles;
   * reading pauses meanwhile.
   */
  readonly write: (chunk: Uint8Array) => Promise<void> | undefined;
  /** How many sources to pass over, because their bytes were wrong; default: none. */
  readonly skip?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Delivers the bytes of one blob. Returns what to skip, if they turn out to be wrong, to fetch them from another source, from
 * byte 0; undefined if there is no other source.
 */
export type SendBlob = (options: BlobFetchOptions) => Promise<number | undefined>;

/** What to do about wrong bytes of a layer from a registry. */
const ALTERED = 'the fetched bytes do not match the manifest: the registry or a proxy modifies them';

/** What to do about wrong bytes of a layer. */
export function alteredHint({ ifAltered = ALTERED }: Pick<ResolvedImage, 'ifAltered'>): string {
  return ifAltered;
}

export interface ResolvedImage {
  /** The full normalized reference. */
  readonly reference: string;
  /** Every name of the image in a node's runtime; at least one. */
  readonly names: readonly string[];
  /** Digest that the reference resolves to: an index, or the platform's manifest itself. */
  readonly resolved: Digest;
  /** Digest of the platform's manifest. */
  readonly digest: Digest;
  readonly mediaType: string;
  /** Byte for byte as at the source. */
  readonly manifest: Uint8Array;
  readonly config: { readonly descriptor: Descriptor; readonly data: Uint8Array };
  /** Layers in the order of the manifest, lowest first; a digest may occur more than once. */
  readonly layers: readonly Descriptor[];
  /** `linux/amd64`. */
  readonly platform: string;
  /** What to do about wrong bytes of a layer, if it does not come from a registry. */
  readonly ifAltered?: string;
  /**
   * Delivers exactly the bytes of a layer from `from` to its size, and resumes broken connections. Does not verify them:
   * the caller hashes the bytes that it keeps. Errors of `write` are thrown unchanged.
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
