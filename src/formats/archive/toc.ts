/**
 * The table of contents (`stargz.index.json`) and the footer that leads to it, as eStargz has them
 * (github.com/containerd/stargz-snapshotter, docs/estargz.md), with three fields of our own: `packed`, `stored`,
 * `packedDigest`.
 */
import { digestOf, isDigest, type Digest } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { parseJson } from '../../core/json.ts';
import { pathProblem, TOC_NAME } from '../../core/layout.ts';
import type { ArchiveIndex, PlacedEntry } from './entry.ts';
import { paddingOf, TAR_END, tarHeader } from './header.ts';
import { sameBytes, storedMember, storedMemberSize, unframeMember } from './member.ts';

export const FOOTER_SIZE = 51;
/** Limits for reading: a TOC of a million entries fits. */
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

/** The entry as the TOC has it. */
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
  /** The member that begins at `tocOffset`: tar header, JSON, padding, end of the tar. */
  readonly member: Uint8Array;
  readonly digest: Digest;
}

/** The JSON text of the TOC of placed entries. */
export function tocJson(entries: readonly PlacedEntry[]): Uint8Array {
  return Buffer.from(JSON.stringify({ version: 1, entries: entries.map(tocRow) }));
}

/** Makes the TOC of placed entries. */
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

/** Bytes from the beginning of the TOC to the end of the archive, for a JSON text of `length` bytes. */
export function endSize(length: number): number {
  return storedMemberSize(tocHeader(length).byteLength + length + paddingOf(length) + TAR_END) + FOOTER_SIZE;
}

/** An empty member whose extra field `SG` says where the TOC begins. */
export function formatFooter(tocOffset: number): Uint8Array {
  const payload = Buffer.from(`${tocOffset.toString(16).padStart(16, '0')}STARGZ`);
  const head = Uint8Array.of(0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 26, 0, 0x53, 0x47, 22, 0);
  const tail = Uint8Array.of(1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0);
  return Buffer.concat([head, payload, tail]);
}

function damaged(name: string, what: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${what}`, {
    hint: 'the file is damaged, incomplete or not a curlew package: fetch or build it again',
  });
}

/** Reads the footer of an archive of `size` bytes; returns where the TOC begins. */
export function parseFooter(footer: Uint8Array, size: number, name: string): number {
  const hex = Buffer.from(footer.subarray(16, 32)).toString('latin1');
  const offset = /^[0-9a-f]{16}$/.test(hex) ? Number.parseInt(hex, 16) : Number.NaN;
  if (!Number.isSafeInteger(offset) || !sameBytes(footer, formatFooter(offset))) {
    if (/\.part-\d{3}$/.test(name)) {
      throw new CurlewError('PACKAGE_INVALID', `${name}: it is a part of a file, not the whole`, {
        hint: `name the head file beside it: ${name.replace(/\.part-\d{3}$/, '.parts.json')}`,
      });
    }
    throw damaged(name, 'no archive footer at its end');
  }
  if (offset >= size - FOOTER_SIZE) throw damaged(name, 'the footer points beyond the end');
  if (size - FOOTER_SIZE - offset > TOC_LIMIT) throw damaged(name, 'the table of contents is too large');
  return offset;
}

/** Reads the TOC's member; `tocOffset` and `size` are the archive's. */
export function parseToc(member: Uint8Array, tocOffset: number, size: number, name: string): ArchiveIndex {
  return parseTocJson(tocText(member, name), tocOffset, size, name);
}

/** The JSON text in the TOC's member. */
export function tocText(member: Uint8Array, name: string): Uint8Array {
  const tar = unframeMember(member);
  if (tar === undefined) throw damaged(name, 'table of contents: not framed as format 1 has it');
  const declared = Number.parseInt(Buffer.from(tar.subarray(124, 136)).toString('latin1'), 8);
  const json = tar.subarray(512, 512 + (Number.isSafeInteger(declared) ? declared : 0));
  if (!sameBytes(tar, tocTar(json))) throw damaged(name, 'table of contents: not a tar entry of format 1');
  return json;
}

/** The same for the JSON alone, as `tar` unpacks it: then the offsets are no more than numbers. */
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
 * Rows of a TOC from outside, each checked, and all together: no name twice, no payloads that overlap or end behind
 * `tocOffset`, no link to what is no earlier file. `PACKAGE_INVALID` otherwise; fields that are not known do not count.
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

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function parseRow(row: unknown): PlacedEntry | string {
  if (!isObject(row)) return 'not an object';
  const { name, type, size, mode, digest, linkName, offset = 0, packed = 0, stored = false, packedDigest } = row;
  if (typeof name !== 'string') return 'no name';
  const problem = pathProblem(name);
  if (problem !== undefined) return `the path ${JSON.stringify(name.slice(0, 200))} ${problem}`;
  if (name === TOC_NAME) return 'the table of contents lists itself';
  if (type !== 'reg' && type !== 'hardlink') return `${name}: only files and hard links are allowed`;
  if (mode !== 0o644 && mode !== 0o755) return `${name}: the mode is neither 0644 nor 0755`;
  if (typeof digest !== 'string' || !isDigest(digest)) return `${name}: no digest`;
  if (!isCount(size) || !isCount(offset) || !isCount(packed) || typeof stored !== 'boolean') return `${name}: sizes`;
  if (type === 'hardlink') {
    if (typeof linkName !== 'string' || packed !== 0 || offset !== 0) return `${name}: not a proper hard link`;
    return { path: name, mode, size, digest, linkTo: linkName, offset: 0, packed: 0, stored: false };
  }
  if (row['chunkDigest'] !== undefined && row['chunkDigest'] !== digest) return `${name}: chunk digest`;
  if (size === 0 ? packed !== 0 || offset !== 0 : packed === 0) return `${name}: size and payload disagree`;
  // Without a payload there are no bytes that a reader could hash.
  if (size === 0 && digest !== EMPTY) return `${name}: not the digest of an empty file`;
  if (stored && packed !== storedMemberSize(size)) return `${name}: size and payload disagree`;
  const entry = { path: name, mode, size, digest, offset, packed, stored } as const;
  if (packedDigest === undefined && (stored || packed === 0)) return entry;
  if (stored || typeof packedDigest !== 'string' || !isDigest(packedDigest)) return `${name}: packed digest`;
  return { ...entry, packedDigest };
}

/** What the entries may not do together: meet in name or place, or link to what is not an earlier file. */
function indexProblem(entries: readonly PlacedEntry[], tocOffset: number): string | undefined {
  const files = new Map<string, PlacedEntry>();
  let end = 0;
  for (const entry of entries) {
    const { path, linkTo, offset, packed } = entry;
    if (files.has(path)) return `${path} stands twice`;
    if (linkTo !== undefined) {
      const target = files.get(linkTo);
      if (target === undefined || target.linkTo !== undefined) return `${path} links to no earlier file`;
      if (target.size !== entry.size || target.digest !== entry.digest || target.mode !== entry.mode) {
        return `${path} differs from the file it links to`;
      }
    }
    if (packed > 0) {
      if (offset < end || offset + packed > tocOffset) return `${path} overlaps or lies outside`;
      end = offset + packed;
    }
    files.set(path, entry);
  }
  const both = fileAndFolder([...files.keys()]);
  return both === undefined ? undefined : `${both} is a file and a folder`;
}

/** One of the paths that another one needs as a folder. Sorted, as all folders together need far more memory than paths. */
function fileAndFolder(paths: readonly string[]): string | undefined {
  // Nothing sorts before the separator then, so what lies in a file follows it at once.
  const sorted = paths.map((path) => path.replaceAll('/', '\0')).toSorted();
  const found = sorted.find((path, at) => sorted[at + 1]?.startsWith(`${path}\0`) === true);
  return found?.replaceAll('\0', '/');
}
