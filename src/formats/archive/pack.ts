/** How a payload is packed: stored if it is already compressed, deflated otherwise. The rule is part of the format. */
import { deflateSync } from 'fflate';
import { digestOf } from '../../core/digest.ts';
import type { PlacedEntry } from './entry.ts';
import { deflatedMember, storedMember, storedMemberSize } from './member.ts';

/** Extensions of compressed files. */
const COMPRESSED =
  /\.(?:gz|tgz|xz|txz|bz2|tbz2|zst|tzst|lz4|br|zip|jar|whl|rpm|deb|apk|7z|png|jpe?g|gif|webp|woff2|pdf)$/i;

/** Image blobs are always stored: their place must be known before they are fetched. */
const BLOB = /(?:^|\/)images\/blobs\/sha256\/[0-9a-f]{64}$/;

const SAMPLE = 64 << 10;
const MIN_SAVED = 0.05;

/** Limit of unpacked to packed bytes: far above the ratio of real files. */
export const MAX_RATIO = 500;
const RATIO_FLOOR = 1 << 20;

/**
 * True if a payload deflates so well, like an empty disk image, that it could be a bomb: extraction refuses it, so packing
 * stores it. Never true for up to 1 MiB.
 */
export function isBomb(size: number, packed: number, ratio: number = MAX_RATIO): boolean {
  return size > RATIO_FLOOR && size > packed * ratio;
}

/** True if a payload of this name is stored regardless of its content. */
export function isStoredByName(path: string): boolean {
  return COMPRESSED.test(path) || BLOB.test(path);
}

/** True if a payload that begins with these bytes (64 KiB, or all of it) is stored because deflating saves less than 5 %. */
export function isStoredBySample(beginning: Uint8Array): boolean {
  const sample = beginning.subarray(0, SAMPLE);
  return deflateSync(sample, { level: 6 }).byteLength > sample.byteLength * (1 - MIN_SAVED);
}

/** The fields of the table of contents for a packed payload. */
export type Packing = Pick<PlacedEntry, 'packed' | 'stored' | 'packedDigest'>;

/** The packing of a stored payload of `size` raw bytes: computed without the bytes. */
export function storedPacking(size: number): Packing {
  return { packed: size === 0 ? 0 : storedMemberSize(size), stored: size > 0 };
}

/** Packs a payload in memory; an empty one has no member. */
export function packBytes(path: string, raw: Uint8Array): { readonly member: Uint8Array; readonly packing: Packing } {
  if (raw.byteLength === 0) return { member: raw, packing: storedPacking(0) };
  if (isStoredByName(path) || isStoredBySample(raw)) {
    return { member: storedMember(raw), packing: storedPacking(raw.byteLength) };
  }
  const member = deflatedMember(raw);
  if (isBomb(raw.byteLength, member.byteLength)) {
    return { member: storedMember(raw), packing: storedPacking(raw.byteLength) };
  }
  return { member, packing: { packed: member.byteLength, stored: false, packedDigest: digestOf(member) } };
}
