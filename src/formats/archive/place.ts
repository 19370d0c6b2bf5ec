/**
 * Assigns every entry of a new archive its place before the first byte is written. Pure.
 *
 * Each of these is a separate gzip member: an entry's tar header; its payload; the zero bytes that pad the payload to a
 * whole tar block. Headers and padding are stored, so they have one form only, which `verify` can recreate.
 */
import type { ArchiveIndex, ArchiveEntry, PlacedEntry } from './entry.ts';
import { isPlainHeader, paddingOf, TAR_BLOCK, tarHeader } from './header.ts';
import { storedMember, storedMemberSize } from './member.ts';
import { FOOTER_SIZE, formatFooter, formatToc } from './toc.ts';

/** An entry whose packed size is known; `packed` is 0 for an empty file. */
export type SizedEntry = Omit<PlacedEntry, 'offset'>;

/** Bytes that are not payload: headers, padding, TOC, footer. */
export interface ArchivePiece {
  readonly offset: number;
  readonly data: Uint8Array;
}

export interface ArchivePlan {
  readonly index: ArchiveIndex;
  /** Together with the payloads of the index they cover the file without gaps. */
  readonly pieces: readonly ArchivePiece[];
}

/** The member before an entry's payload. */
export function headerMember(entry: ArchiveEntry): Uint8Array {
  return storedMember(tarHeader(entry));
}

/** Size of {@link headerMember}, usually without building it. */
export function headerSize(entry: ArchiveEntry): number {
  return isPlainHeader(entry) ? storedMemberSize(TAR_BLOCK) : headerMember(entry).byteLength;
}

/** The member after a payload of `size` raw bytes; empty if no padding is needed. */
export function paddingMember(size: number): Uint8Array {
  const padding = paddingOf(size);
  return padding === 0 ? new Uint8Array(0) : storedMember(new Uint8Array(padding));
}

/** Size of {@link paddingMember}. */
export function paddingSize(size: number): number {
  const padding = paddingOf(size);
  return padding === 0 ? 0 : storedMemberSize(padding);
}

/** Lays out an archive of these entries, in this order. */
export function placeArchive(entries: readonly SizedEntry[]): ArchivePlan {
  const pieces: ArchivePiece[] = [];
  const placed: PlacedEntry[] = [];
  let at = 0;
  const put = (data: Uint8Array): void => {
    if (data.byteLength > 0) pieces.push({ offset: at, data });
    at += data.byteLength;
  };
  for (const entry of entries) {
    put(headerMember(entry));
    placed.push({ ...entry, offset: entry.packed === 0 ? 0 : at });
    at += entry.packed;
    if (entry.packed > 0) put(paddingMember(entry.size));
  }
  const end = formatEnd(at, placed);
  for (const data of end.members) put(data);
  return { index: end.index, pieces };
}

/** The end of an archive: TOC and footer, which begin at `tocOffset`. */
export function formatEnd(
  tocOffset: number,
  entries: readonly PlacedEntry[],
): { readonly index: ArchiveIndex; readonly members: readonly Uint8Array[] } {
  const toc = formatToc(entries);
  const size = tocOffset + toc.member.byteLength + FOOTER_SIZE;
  return { index: { entries, tocOffset, tocDigest: toc.digest, size }, members: [toc.member, formatFooter(tocOffset)] };
}
