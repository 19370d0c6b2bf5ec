/** What an archive of format 1 holds, as data: entries before they have a place, and the index of those that have. */
import type { Digest } from '../../core/digest.ts';
import type { FileMode } from '../../core/package.ts';

/** A file, or (in bundles only) a hard link to an earlier file of the same archive. `path` is the full entry name. */
export interface Entry {
  readonly path: string;
  readonly mode: FileMode;
  /** Unpacked bytes; of the file linked to for a hard link. */
  readonly size: number;
  readonly digest: Digest;
  /** Full entry name of the file that holds the payload, for a hard link. */
  readonly linkTo?: string | undefined;
}

/** An entry with its place in the archive. */
export interface PlacedEntry extends Entry {
  /** Where the payload's gzip member begins; 0 when there is none (empty file, hard link). */
  readonly offset: number;
  /** Bytes of the payload's gzip member; 0 when there is none. */
  readonly packed: number;
  /** The member is framed by stored blocks, so that raw offset and file offset are arithmetic. */
  readonly stored: boolean;
  /** Of a deflated member's bytes: the same content can be deflated in many ways, and only one is this archive's. */
  readonly packedDigest?: Digest | undefined;
}

export interface ArchiveIndex {
  /** In archive order, without the TOC itself. */
  readonly entries: readonly PlacedEntry[];
  /** Where the TOC's gzip member begins: everything before it can be copied into another archive as it is. */
  readonly tocOffset: number;
  /** Of the TOC's JSON text: what a signature covers. */
  readonly tocDigest: Digest;
  /** Bytes of the whole archive. */
  readonly size: number;
}

export interface RangeReadOptions {
  readonly signal: AbortSignal;
  /** Memory of at most so many bytes for the next chunk, where the source can read into it; only that chunk uses it. */
  readonly allocate?: ((length: number) => Uint8Array) | undefined;
}

/** Bytes that can be read by range: a file, an object in a store, bytes in memory. */
export interface RangeSource {
  /** For messages: a path or a redacted address. */
  readonly name: string;
  readonly size: number;
  /** Exactly `length` bytes from `offset`, or an error. */
  readonly read: (offset: number, length: number, options: RangeReadOptions) => AsyncIterable<Uint8Array>;
}
