/**
 * Positions of the blobs of a package's images, in two buffers. Buffers are transferred between threads, while a hundred thousand
 * objects would be cloned one by one, and need 64 bytes for each blob. Pure.
 */
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import { hexOf, type Digest } from '../../core/digest.ts';
import { packagePath } from '../../core/layout.ts';

export interface BlobTable {
  /** All digests, as sorted bytes. */
  readonly digests: Uint8Array;
  /** Four numbers for each digest: offset, packed, size, and 1 if the payload is stored. */
  readonly places: Float64Array;
}

const DIGEST_BYTES = 32;
const COLUMNS = 4;

/** The blobs among the entries of a package, whose paths begin with `prefix`. */
export function blobTable(entries: readonly PlacedEntry[], prefix: string): BlobTable {
  const blobs = entries
    .filter(({ path, digest }) => path === prefix + packagePath.blob(digest))
    .toSorted((one, other) => (one.digest < other.digest ? -1 : 1));
  const digests = new Uint8Array(blobs.length * DIGEST_BYTES);
  const places = new Float64Array(blobs.length * COLUMNS);
  for (const [at, { digest, offset, packed, size, stored }] of blobs.entries()) {
    digests.set(Buffer.from(hexOf(digest), 'hex'), at * DIGEST_BYTES);
    places.set([offset, packed, size, stored ? 1 : 0], at * COLUMNS);
  }
  return { digests, places };
}

/** The package's entry, without its real mode and the digest of its packed bytes, which are not served. */
export function findBlob({ digests, places }: BlobTable, prefix: string, digest: Digest): PlacedEntry | undefined {
  const requested = Buffer.from(hexOf(digest), 'hex');
  let low = 0;
  for (let high = digests.byteLength / DIGEST_BYTES; low < high;) {
    const middle = (low + high) >>> 1;
    const begin = middle * DIGEST_BYTES;
    const order = Buffer.compare(digests.subarray(begin, begin + DIGEST_BYTES), requested);
    if (order < 0) low = middle + 1;
    else if (order > 0) high = middle;
    else {
      const [offset = 0, packed = 0, size = 0, stored] = places.subarray(middle * COLUMNS, (middle + 1) * COLUMNS);
      const path = prefix + packagePath.blob(digest);
      return { path, mode: 0o644, digest, offset, packed, size, stored: stored === 1 };
    }
  }
  return undefined;
}

/** Memory of the table in bytes. */
export function bytesOfBlobs({ digests, places }: BlobTable): number {
  return digests.byteLength + places.byteLength;
}
