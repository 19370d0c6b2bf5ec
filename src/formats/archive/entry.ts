/** The content of an archive of format 1 as data: entries before they are placed, and the index of placed entries. */
import type { Digest } from '../../core/digest.ts';
import type { PackageFile } from '../../core/package.ts';

/**
 * A file, or (in bundles only) a hard link to an earlier file of the same archive. `path` is the full entry name, `size` the
 * unpacked size, of a hard link that of the linked file.
 */
export interface ArchiveEntry extends PackageFile {
  /** For a hard link: the full entry name of the file with the payload. */
  readonly linkTo?: string | undefined;
}

/** An entry with its place in the archive. */
export interface PlacedEntry extends ArchiveEntry {
  /** Offset of the payload's gzip member; 0 without one (empty file, hard link). */
  readonly offset: number;
  /** Size of the payload's gzip member; 0 without one. */
  readonly packed: number;
  /** The member is framed by stored blocks, so that file offsets can be computed from raw offsets. */
  readonly stored: boolean;
  /** Digest of a deflated member's bytes: the same content can be deflated in many ways, of which the archive has one. */
  readonly packedDigest?: Digest | undefined;
}

export interface ArchiveIndex {
  /** Entries in archive order, without the TOC itself. */
  readonly entries: readonly PlacedEntry[];
  /** Offset of the TOC's gzip member: everything before it can be copied unchanged into another archive. */
  readonly tocOffset: number;
  /** Digest of the TOC's JSON text: signatures cover it. */
  readonly tocDigest: Digest;
  /** Bytes of the whole archive. */
  readonly size: number;
}

export interface RangeReadOptions {
  readonly signal: AbortSignal;
  /** Returns memory for the next chunk, at most `length` bytes, if the source can read into it; only that chunk uses it. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** Bytes that can be read by range: a file, an object in a store, bytes in memory. */
export interface RangeSource {
  /** For messages: a path or a redacted address. */
  readonly name: string;
  /** The same for the bytes at an offset, where they come from several archives; default: `name`. */
  readonly nameAt?: ((offset: number) => string) | undefined;
  readonly size: number;
  /** Exactly `length` bytes from `offset`, or an error. */
  readonly read: (offset: number, length: number, options: RangeReadOptions) => AsyncIterable<Uint8Array>;
}
