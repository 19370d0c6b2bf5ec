/**
 * Builds a new archive from existing ones, as a list of byte ranges: copies unchanged runs, and writes only changed headers
 * and the end again. Pure: uses the indexes, not the bytes.
 */
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import type { FileMode } from '../../core/package.ts';
import type { ArchiveIndex, ArchiveEntry, PlacedEntry } from './entry.ts';
import { packBytes } from './pack.ts';
import { formatEnd, headerMember, headerSize, paddingMember, paddingSize } from './place.ts';

/** A payload of at least this size is stored once per archive; the others become hard links . */
const LINK_FLOOR = 4096;

export type SplicePart =
  | { readonly kind: 'file'; readonly path: string; readonly mode: FileMode; readonly data: Uint8Array }
  | {
      readonly kind: 'archive';
      /** Which of the caller's sources the ranges refer to. */
      readonly source: number;
      readonly index: ArchiveIndex;
      /** Keeps an entry if true. A hard link must not be kept without the file it links to. */
      readonly select?: (entry: PlacedEntry) => boolean;
      /** Prefix for the path of each entry, whose header is then rewritten. */
      readonly below?: string | undefined;
    }
  | {
      /**
       * One entry of a source. Depending on the length, either its header or its payload begins at `at`; without the header, a
       * new one is written. Any other length is `PACKAGE_INVALID`.
       */
      readonly kind: 'entry';
      readonly source: number;
      readonly at: number;
      readonly length: number;
      readonly entry: ArchiveEntry & Packing;
    }
  | { readonly kind: 'link'; readonly entry: ArchiveEntry };

/** How a payload is packed, independent of its offset. */
type Packing = Pick<PlacedEntry, 'packed' | 'stored' | 'packedDigest'>;

/** The contiguous range from which an entry is copied: header, payload and padding, without the header if it is rewritten. */
export interface PayloadOrigin {
  readonly source: number;
  readonly offset: number;
  readonly length: number;
}

/** A run of bytes of the new archive, and their source. Never empty. */
export type Segment = {
  /** Offset in the new archive: the end of the previous segment. */
  readonly at: number;
} & (
  | { readonly kind: 'bytes'; readonly data: Uint8Array }
  | { readonly kind: 'range'; readonly source: number; readonly offset: number; readonly length: number }
);

export interface SplicePlan {
  /** Segments in order; together they form the new archive. */
  readonly segments: readonly Segment[];
  readonly size: number;
  readonly index: ArchiveIndex;
  /** For each entry of the index; undefined for an entry that is not copied. */
  readonly origins: readonly (PayloadOrigin | undefined)[];
}

/** Lays out the archive of these parts in this order. Two entries with the same name are `PACKAGE_INVALID`. */
export function planSplice(parts: readonly SplicePart[]): SplicePlan {
  const out = new Splicer();
  for (const part of parts) {
    if (part.kind === 'file') out.addFile(part);
    else if (part.kind === 'archive') out.addArchive(part);
    else if (part.kind === 'entry') out.addChosen(part);
    else out.addLink(part.entry);
  }
  return out.finish();
}

function tailLength({ packed, size }: ArchiveEntry & Packing): number {
  return packed === 0 ? 0 : packed + paddingSize(size);
}

function movedBelow(folder: string, entry: PlacedEntry): PlacedEntry {
  const { path, linkTo } = entry;
  return { ...entry, path: folder + path, linkTo: linkTo === undefined ? undefined : folder + linkTo };
}

class Splicer {
  readonly #segments: Segment[] = [];
  readonly #placed: PlacedEntry[] = [];
  readonly #origins: (PayloadOrigin | undefined)[] = [];
  readonly #names = new Set<string>();
  readonly #payloads = new Map<string, string>();
  #size = 0;

  addFile({ path, mode, data }: Extract<SplicePart, { kind: 'file' }>): void {
    const { member, packing } = packBytes(path, data);
    const entry: ArchiveEntry = { path, mode, size: data.byteLength, digest: digestOf(data) };
    this.#bytes(headerMember(entry));
    this.#place({ ...entry, ...packing, offset: this.#size });
    this.#bytes(member);
    if (member.byteLength > 0) this.#bytes(paddingMember(data.byteLength));
  }

  /** Header, payload and padding of an entry are one run of bytes; a hard link is only a new header. */
  addArchive({ source, index, select, below = '' }: Extract<SplicePart, { kind: 'archive' }>): void {
    let at = 0;
    for (const entry of index.entries) {
      const header = headerSize(entry);
      if (select === undefined || select(entry)) {
        const moved = below === '' ? entry : movedBelow(below, entry);
        this.addEntry({ source, offset: below === '' ? at : at + header }, moved, below === '');
      }
      at += header + tailLength(entry);
    }
    if (at !== index.tocOffset)
      throw new CurlewError('PACKAGE_INVALID', 'the index of a package does not cover all its bytes');
  }

  addChosen({ source, at, length, entry }: Extract<SplicePart, { kind: 'entry' }>): void {
    const tail = tailLength(entry);
    const isWhole = length !== tail;
    if (isWhole && length !== headerSize(entry) + tail) {
      throw new CurlewError('PACKAGE_INVALID', `${entry.path}: the length does not match its entry`);
    }
    this.addEntry({ source, offset: at }, entry, isWhole);
  }

  /** `from` is the offset of the header, or of the payload if `isWhole` is false. */
  addEntry(from: Omit<PayloadOrigin, 'length'>, entry: ArchiveEntry & Packing, isWhole: boolean): void {
    const linkTo = this.#linkFor(entry);
    if (linkTo !== entry.linkTo) {
      this.addLink({ ...entry, linkTo });
      return;
    }
    const header = headerSize(entry);
    const length = (isWhole ? header : 0) + tailLength(entry);
    this.#place({ ...entry, offset: this.#size + header }, { ...from, length });
    if (!isWhole) this.#bytes(headerMember(entry));
    this.#range(from.source, from.offset, length);
  }

  /** Adds a hard link. It must link to the first file with the same payload. */
  addLink({ path, mode, size, digest, linkTo }: ArchiveEntry): void {
    const link = { path, mode, size, digest, linkTo };
    if (linkTo === undefined || linkTo !== this.#payloads.get(`${mode} ${digest}`)) {
      throw new CurlewError('PACKAGE_INVALID', `${path}: not a link to the first file with this content`);
    }
    this.#place({ ...link, offset: 0, packed: 0, stored: false });
    this.#bytes(headerMember(link));
  }

  finish(): SplicePlan {
    const { index, members } = formatEnd(this.#size, this.#placed);
    for (const data of members) this.#bytes(data);
    return { segments: this.#segments, size: this.#size, index, origins: this.#origins };
  }

  /** The file that this entry can link to, if its payload is already in the archive. */
  #linkFor({ mode, size, digest, linkTo }: ArchiveEntry): string | undefined {
    if (linkTo === undefined && size < LINK_FLOOR) return undefined;
    const holder = this.#payloads.get(`${mode} ${digest}`);
    if (linkTo !== undefined && holder === undefined) {
      throw new CurlewError('PACKAGE_INVALID', `${linkTo}: it is left out, but another entry links to it`);
    }
    return holder;
  }

  #place(entry: PlacedEntry, origin?: PayloadOrigin): void {
    const { path, mode, digest, packed } = entry;
    if (this.#names.has(path)) throw new CurlewError('PACKAGE_INVALID', `${path}: two entries have this name`);
    this.#names.add(path);
    this.#placed.push(packed === 0 ? { ...entry, offset: 0 } : entry);
    this.#origins.push(origin);
    if (packed > 0 && !this.#payloads.has(`${mode} ${digest}`)) this.#payloads.set(`${mode} ${digest}`, path);
  }

  #bytes(data: Uint8Array): void {
    if (data.byteLength === 0) return;
    this.#segments.push({ at: this.#size, kind: 'bytes', data });
    this.#size += data.byteLength;
  }

  /** Adds a range, or extends the last one if it is contiguous. */
  #range(source: number, offset: number, length: number): void {
    if (length === 0) return;
    const last = this.#segments.at(-1);
    if (last?.kind === 'range' && last.source === source && last.offset + last.length === offset) {
      this.#segments[this.#segments.length - 1] = { ...last, length: last.length + length };
    } else {
      this.#segments.push({ at: this.#size, kind: 'range', source, offset, length });
    }
    this.#size += length;
  }
}
