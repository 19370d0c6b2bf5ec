/**
 * The table of contents (`stargz.index.json`) and the footer that points to it, in the form of eStargz
 * (github.com/containerd/stargz-snapshotter, docs/estargz.md), with three additional fields: `packed`, `stored`,
 * `packedDigest`.
 */
import { digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject, isSize, parseJson } from '../../core/json.ts';
import { pathProblem, TOC_NAME } from '../../core/layout.ts';
import { partsPath, wholeOf } from '../../core/parts.ts';
import type { ArchiveIndex, PlacedEntry } from './entry.ts';
import { paddingOf, TAR_END, tarHeader } from './header.ts';
import { sameBytes, storedMember, storedMemberSize, unframeMember } from './member.ts';

export const FOOTER_SIZE = 51;
/** Read limits: large enough for a TOC of a million entries. */
const TOC_LIMIT = 512 * 2 ** 20;
const ENTRY_LIMIT = 1_000_000;
const EMPTY = digestOf('');

export interface TocRow {
  readonly name: string;
  readonly type: 'reg' | 'hardlink';
  readonly size: number;
  readonly modtime: string;
  readonly mode: number;
  readonly linkName?: string;
  readonly digest: Digest;
  readonly offset?: number;
  readonly chunkDigest?: Digest;
  readonly packed?: number;
  readonly stored?: boolean;
  readonly packedDigest?: Digest;
}

/** The row of an entry in the TOC. */
export function tocRow({
  path,
  mode,
  size,
  digest,
  linkTo,
  offset,
  packed,
  stored,
  packedDigest,
}: PlacedEntry): TocRow {
  const common = { name: path, size, modtime: '1970-01-01T00:00:00Z', mode, digest };
  if (linkTo !== undefined) return { ...common, type: 'hardlink', linkName: linkTo };
  if (packed === 0) return { ...common, type: 'reg' };
  const row = { ...common, type: 'reg', offset, chunkDigest: digest, packed, stored } as const;
  return packedDigest === undefined ? row : { ...row, packedDigest };
}

export interface Toc {
  /** The member at `tocOffset`: tar header, JSON, padding, end of the tar. */
  readonly member: Uint8Array;
  readonly digest: Digest;
}

/** The JSON text of the TOC of placed entries. */
export function tocJson(entries: readonly PlacedEntry[]): Uint8Array {
  return Buffer.from(JSON.stringify({ version: 1, entries: entries.map(tocRow) }));
}

/** Formats the TOC of placed entries. */
export function formatToc(entries: readonly PlacedEntry[]): Toc {
  const json = tocJson(entries);
  return { member: storedMember(tocTar(json)), digest: digestOf(json) };
}

function tocTar(json: Uint8Array): Uint8Array {
  const header = tocHeader(json.byteLength);
  const end = new Uint8Array(paddingOf(json.byteLength) + TAR_END);
  return Buffer.concat([header, json, end]);
}

function tocHeader(size: number): Uint8Array {
  return tarHeader({ path: TOC_NAME, mode: 0o644, size, linkTo: undefined });
}

/** Size from the beginning of the TOC to the end of the archive, for a JSON text of `length` bytes. */
export function endSize(length: number): number {
  return storedMemberSize(tocHeader(length).byteLength + length + paddingOf(length) + TAR_END) + FOOTER_SIZE;
}

/** An empty member whose extra field `SG` contains the offset of the TOC. */
export function formatFooter(tocOffset: number): Uint8Array {
  const payload = Buffer.from(`${tocOffset.toString(16).padStart(16, '0')}STARGZ`);
  const head = Uint8Array.of(0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 26, 0, 0x53, 0x47, 22, 0);
  const tail = Uint8Array.of(1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0);
  return Buffer.concat([head, payload, tail]);
}

export function damaged(name: string, what: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${what}`, {
    hint: 'the file is damaged, incomplete or not a curlew package: fetch or build it again',
  });
}

/** Where the TOC begins; undefined for what is not the footer of an archive. */
function tocOffsetIn(footer: Uint8Array): number | undefined {
  const hex = Buffer.from(footer.subarray(16, 32)).toString('latin1');
  const offset = /^[0-9a-f]{16}$/.test(hex) ? Number.parseInt(hex, 16) : Number.NaN;
  return Number.isSafeInteger(offset) && sameBytes(footer, formatFooter(offset)) ? offset : undefined;
}

/** True for a file that ends as archives of this format do, such as a bundle, but not the archive of a chart. */
export function hasFooter(bytes: Uint8Array): boolean {
  return tocOffsetIn(bytes.subarray(-FOOTER_SIZE)) !== undefined;
}

/** Reads the footer of an archive of `size` bytes; returns where the TOC begins. */
export function parseFooter(footer: Uint8Array, size: number, name: string): number {
  const offset = tocOffsetIn(footer);
  if (offset === undefined) {
    const whole = wholeOf(name);
    if (whole !== undefined) {
      throw new CurlewError('PACKAGE_INVALID', `${name}: it is one part of a file`, {
        hint: `use the head file next to it: ${partsPath.head(whole)}`,
      });
    }
    throw damaged(name, 'not a package or bundle of curlew, or its end is missing');
  }
  if (offset >= size - FOOTER_SIZE) throw damaged(name, 'the footer points beyond the end');
  if (size - FOOTER_SIZE - offset > TOC_LIMIT) throw damaged(name, 'the table of contents is too large');
  return offset;
}

/** Reads the TOC's member; `tocOffset` and `size` are the archive's. */
export function parseToc(member: Uint8Array, tocOffset: number, size: number, name: string): ArchiveIndex {
  return parseTocJson(tocText(member, name), tocOffset, size, name);
}

/** The JSON text of the TOC's member. */
export function tocText(member: Uint8Array, name: string): Uint8Array {
  const tar = unframeMember(member);
  if (tar === undefined)
    throw damaged(name, 'not a package or bundle of curlew: its table of contents has another form');
  const declared = Number.parseInt(Buffer.from(tar.subarray(124, 136)).toString('latin1'), 8);
  const json = tar.subarray(512, 512 + (Number.isSafeInteger(declared) ? declared : 0));
  if (!sameBytes(tar, tocTar(json)))
    throw damaged(name, 'not a package or bundle of curlew: its table of contents has another form');
  return json;
}

/** {@link parseToc} for the JSON text alone, as `tar` unpacks it; the offsets are then unverified numbers. */
export function parseTocJson(json: Uint8Array, tocOffset: number, size: number, name: string): ArchiveIndex {
  let value: unknown;
  try {
    value = parseJson(json);
  } catch (error) {
    throw damaged(name, `table of contents: ${error instanceof Error ? error.message : String(error)}`);
  }
  const rows = isObject(value) && value['version'] === 1 ? value['entries'] : undefined;
  if (!Array.isArray(rows)) throw damaged(name, 'table of contents: version or entries are missing');
  const entries = readTocRows(rows, tocOffset, name);
  return { entries, tocOffset, tocDigest: digestOf(json), size };
}

/**
 * Rows of a TOC from outside, checked one by one and together: unique names, no payloads that overlap or end after
 * `tocOffset`, links to earlier files only. `PACKAGE_INVALID` otherwise; unknown fields are ignored.
 */
export function readTocRows(rows: readonly unknown[], tocOffset: number, name: string): readonly PlacedEntry[] {
  if (rows.length > ENTRY_LIMIT) throw damaged(name, `table of contents: more than ${ENTRY_LIMIT} entries`);
  const entries = rows.map((row, index) => {
    const entry = parseRow(row);
    if (typeof entry === 'string') throw damaged(name, `table of contents: entry ${index + 1}: ${entry}`);
    return entry;
  });
  const problem = indexProblem(entries, tocOffset);
  if (problem !== undefined) throw damaged(name, `table of contents: ${problem}`);
  return entries;
}

function parseRow(row: unknown): PlacedEntry | string {
  if (!isObject(row)) return 'not an object';
  const { name, type, size, mode, digest, linkName, offset = 0, packed = 0, stored = false, packedDigest } = row;
  if (typeof name !== 'string') return 'it has no name';
  const problem = pathProblem(name);
  if (problem !== undefined) return `the path ${JSON.stringify(name.slice(0, 200))} ${problem}`;
  if (name === TOC_NAME) return 'the table of contents lists itself';
  if (type !== 'reg' && type !== 'hardlink') return `${name}: only files and hard links are allowed`;
  if (mode !== 0o644 && mode !== 0o755) return `${name}: the mode is neither 0644 nor 0755`;
  if (!isDigest(digest)) return `${name}: the digest is missing or not valid`;
  if (!isSize(size) || !isSize(offset) || !isSize(packed) || typeof stored !== 'boolean')
    return `${name}: invalid size`;
  if (type === 'hardlink') {
    if (typeof linkName !== 'string' || packed !== 0 || offset !== 0) return `${name}: not a valid hard link`;
    return { path: name, mode, size, digest, linkTo: linkName, offset: 0, packed: 0, stored: false };
  }
  if (row['chunkDigest'] !== undefined && row['chunkDigest'] !== digest)
    return `${name}: the chunk digest is not valid`;
  if (size === 0 ? packed !== 0 || offset !== 0 : packed === 0) return `${name}: size and payload do not match`;
  // Readers cannot verify this digest, since there is no payload.
  if (size === 0 && digest !== EMPTY) return `${name}: not the digest of an empty file`;
  if (stored && packed !== storedMemberSize(size)) return `${name}: size and payload do not match`;
  const entry = { path: name, mode, size, digest, offset, packed, stored } as const;
  if (packedDigest === undefined && (stored || packed === 0)) return entry;
  if (stored || !isDigest(packedDigest)) return `${name}: the packed digest is not valid`;
  return { ...entry, packedDigest };
}

/** Conflicts between entries: equal names, overlapping payloads, links to anything but an earlier file. */
function indexProblem(entries: readonly PlacedEntry[], tocOffset: number): string | undefined {
  const files = new Map<string, PlacedEntry>();
  let end = 0;
  for (const entry of entries) {
    const { path, linkTo, offset, packed } = entry;
    if (files.has(path)) return `${path} is listed twice`;
    if (linkTo !== undefined) {
      const target = files.get(linkTo);
      if (target === undefined || target.linkTo !== undefined) return `${path} does not link to an earlier file`;
      if (target.size !== entry.size || target.digest !== entry.digest || target.mode !== entry.mode) {
        return `${path} differs from the file it links to`;
      }
    }
    if (packed > 0) {
      if (offset < end || offset + packed > tocOffset) return `${path} overlaps another entry or the table of contents`;
      end = offset + packed;
    }
    files.set(path, entry);
  }
  const conflict = fileAndFolder([...files.keys()]);
  return conflict === undefined ? undefined : `${conflict} is a file and a folder`;
}

/** A path that is also the folder of another path. Sorts the paths, since a set of all folders needs far more memory. */
function fileAndFolder(paths: readonly string[]): string | undefined {
  // NUL sorts before any other character, so a path below a file directly follows the file.
  const sorted = paths.map((path) => path.replaceAll('/', '\0')).toSorted();
  const conflict = sorted.find((path, at) => sorted[at + 1]?.startsWith(`${path}\0`) === true);
  return conflict?.replaceAll('\0', '/');
}
