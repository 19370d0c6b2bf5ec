/**
 * An archive read by the words of docs/format.md alone: nothing of `src/` is used, so that page and code can be held
 * against each other. Throws at the first thing that is not as the page has it.
 */
import { createHash } from 'node:crypto';
import { crc32, inflateRawSync } from 'node:zlib';
import * as assert from 'node:assert/strict';

export interface FormatEntry {
  readonly path: string;
  readonly mode: number;
  readonly data: Buffer;
  readonly stored: boolean | undefined;
  readonly linkTo: string | undefined;
  /** A pax header stands before its own. */
  readonly pax: boolean;
}

/** The table of the page, with which {@link checkFields} compares the fields. */
interface TocRow {
  readonly name: string;
  readonly type: 'reg' | 'hardlink';
  readonly size: number;
  readonly modtime: string;
  readonly mode: number;
  readonly digest: string;
  readonly linkName?: string;
  readonly offset?: number;
  readonly chunkDigest?: string;
  readonly packed?: number;
  readonly stored?: boolean;
  readonly packedDigest?: string;
}

const MEMBER_HEADER = Buffer.from('1f8b08000000000000ff', 'hex');
const FULL = 65_535;

function sha256(data: Uint8Array): string {
  return `sha256:${createHash('sha256').update(data).digest('hex')}`;
}

function trailerOf(raw: Uint8Array): Buffer {
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(raw), 0);
  trailer.writeUInt32LE(raw.byteLength % 2 ** 32, 4);
  return trailer;
}

/** A stored member of `size` raw bytes that begins at `at`, by the formulas of the page. */
function readStored(file: Buffer, at: number, size: number): { readonly raw: Buffer; readonly end: number } {
  assert.deepEqual(file.subarray(at, at + 10), MEMBER_HEADER);
  const blocks = Math.ceil(size / FULL);
  const raw = Buffer.alloc(size);
  for (let block = 0; block < blocks; block += 1) {
    const length = Math.min(FULL, size - block * FULL);
    const begins = at + 10 + 65_540 * block;
    assert.equal(file[begins], block === blocks - 1 ? 1 : 0);
    assert.equal(file.readUInt16LE(begins + 1), length);
    assert.equal(file.readUInt16LE(begins + 3), 0xffff - length);
    file.copy(raw, block * FULL, begins + 5, begins + 5 + length);
  }
  for (const n of [0, Math.floor(size / 2), size - 1]) {
    assert.equal(file[at + 10 + 65_540 * Math.floor(n / FULL) + 5 + (n % FULL)], raw[n]);
  }
  const end = at + 10 + 5 * blocks + size + 8;
  assert.deepEqual(file.subarray(end - 8, end), trailerOf(raw));
  return { raw, end };
}

interface TarHeader {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
  readonly type: string;
  readonly linkTo: string;
}

function readTarHeader(block: Buffer): TarHeader {
  const text = (from: number, length: number): string => {
    const field = block.subarray(from, from + length);
    const end = field.indexOf(0);
    return field.subarray(0, end === -1 ? length : end).toString('utf8');
  };
  const octal = (from: number, length: number): number => Number.parseInt(text(from, length).trim() || '0', 8);
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  assert.equal(octal(148, 8), sum);
  assert.equal(block.subarray(257, 265).toString('latin1'), 'ustar\u000000');
  for (const [from, length] of [
    [108, 8],
    [116, 8],
    [136, 12],
  ] as const) {
    assert.equal(octal(from, length), 0, 'uid, gid and mtime are 0');
  }
  assert.ok(
    block.subarray(265, 329).every((byte) => byte === 0),
    'no user and group names',
  );
  const [prefix, name] = [text(345, 155), text(0, 100)];
  const path = prefix === '' ? name : `${prefix}/${name}`;
  return { path, size: octal(124, 12), mode: octal(100, 8), type: text(156, 1), linkTo: text(157, 100) };
}

function readPax(body: Buffer): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (let at = 0; at < body.byteLength;) {
    const length = Number.parseInt(body.subarray(at).toString('latin1'), 10);
    const [key = '', value = ''] = body
      .subarray(at, at + length - 1)
      .toString('utf8')
      .replace(/^\d+ /, '')
      .split('=', 2);
    fields.set(key, value);
    at += length;
  }
  return fields;
}

function isPlain(path: string): boolean {
  return /^[\u0000-\u007f]*$/.test(path) && Buffer.byteLength(path) <= 100;
}

/** The stored member with the tar header of an entry, a pax one before it where the page says so. */
function readHeader(file: Buffer, at: number, { name, size, mode, linkName }: TocRow) {
  const pax = file[at + 10 + 5 + 156] === 'x'.charCodeAt(0);
  const first = pax ? readTarHeader(file.subarray(at + 15, at + 15 + 512)) : undefined;
  const paxSize = first === undefined ? 0 : 512 + Math.ceil(first.size / 512) * 512;
  const { raw, end } = readStored(file, at, paxSize + 512);
  const own = readTarHeader(raw.subarray(paxSize));
  const records = first === undefined ? undefined : readPax(raw.subarray(512, 512 + first.size));
  assert.equal(own.mode, mode);
  assert.equal(own.type, linkName === undefined ? '0' : '1');
  assert.equal(records?.get('path') ?? own.path, name);
  if (linkName === undefined) assert.equal(Number(records?.get('size') ?? own.size), size);
  else assert.equal(records?.get('linkpath') ?? own.linkTo, linkName);
  assert.deepEqual(
    [...(records?.keys() ?? [])].toSorted(),
    records === undefined ? [] : [linkName === undefined ? 'size' : 'linkpath', 'path'].toSorted(),
  );
  if (isPlain(name) && isPlain(linkName ?? '') && size < 8 * 2 ** 30) assert.equal(pax, false);
  return { end, pax };
}

function checkPath(path: string): void {
  const parts = path.split('/');
  assert.ok(Buffer.byteLength(path) <= 1024 && parts.length <= 64, path);
  for (const part of parts) {
    assert.ok(part !== '' && part !== '.' && part !== '..' && Buffer.byteLength(part) <= 255, path);
    assert.ok(!/[\\\u0000-\u001f\u007f]/.test(part), path);
  }
}

const FIELDS = ['name', 'size', 'modtime', 'mode', 'digest'];
const PAYLOAD_FIELDS = ['offset', 'chunkDigest', 'packed', 'stored'];

function checkFields(row: TocRow): void {
  const payload = row.type === 'reg' && row.size !== 0;
  const expected = [
    ...FIELDS,
    'type',
    ...(row.type === 'hardlink' ? ['linkName'] : []),
    ...(payload ? PAYLOAD_FIELDS : []),
    ...(payload && row.stored === false ? ['packedDigest'] : []),
  ];
  assert.deepEqual(Object.keys(row).toSorted(), expected.toSorted());
  assert.equal(row.modtime, '1970-01-01T00:00:00Z');
  assert.ok(row.mode === 0o644 || row.mode === 0o755);
}

/** Reads the whole archive, every byte of it. */
export function readByThePage(file: Buffer): readonly FormatEntry[] {
  const footer = file.subarray(-51);
  const tocAt = Number.parseInt(footer.subarray(16, 32).toString('latin1'), 16);
  const expected = `1f8b08040000000000ff1a0053471600${Buffer.from(`${tocAt.toString(16).padStart(16, '0')}STARGZ`).toString('hex')}`;
  assert.equal(footer.toString('hex'), `${expected}010000ffff0000000000000000`);

  const tocMember = file.byteLength - 51 - tocAt;
  const tocRaw = tocMember - 18 - 5 * Math.ceil((tocMember - 18) / 65_540);
  const toc = readStored(file, tocAt, tocRaw);
  assert.equal(toc.end, file.byteLength - 51);
  const tocHeader = readTarHeader(toc.raw.subarray(0, 512));
  assert.equal(tocHeader.path, 'stargz.index.json');
  assert.ok(toc.raw.subarray(512 + tocHeader.size).every((byte) => byte === 0));
  assert.equal(toc.raw.byteLength, 512 + Math.ceil(tocHeader.size / 512) * 512 + 1024);
  const { version, entries } = JSON.parse(toc.raw.subarray(512, 512 + tocHeader.size).toString('utf8')) as {
    version: number;
    entries: readonly TocRow[];
  };
  assert.equal(version, 1);

  const byPath = new Map<string, FormatEntry>();
  let at = 0;
  for (const row of entries) {
    checkFields(row);
    const { name: path, size, mode, linkName: linkTo, packed = 0, stored } = row;
    checkPath(path);
    assert.ok(!byPath.has(path));
    const header = readHeader(file, at, row);
    at = header.end;
    let data: Buffer = Buffer.alloc(0);
    if (linkTo !== undefined) {
      const target = byPath.get(linkTo);
      assert.ok(target !== undefined && target.linkTo === undefined, 'a link leads to an earlier file');
      data = target.data;
    } else if (size > 0) {
      assert.equal(row.offset, at);
      if (stored === true) {
        const { raw, end } = readStored(file, at, size);
        assert.equal(end, at + packed);
        data = raw;
      } else {
        const member = file.subarray(at, at + packed);
        assert.deepEqual(member.subarray(0, 10), MEMBER_HEADER);
        data = inflateRawSync(member.subarray(10, -8));
        assert.deepEqual(member.subarray(-8), trailerOf(data));
        assert.equal(row.packedDigest, sha256(member));
      }
      assert.equal(row.chunkDigest, row.digest);
      at += packed;
      if (size % 512 !== 0) {
        const padding = readStored(file, at, 512 - (size % 512));
        assert.ok(padding.raw.every((byte) => byte === 0));
        at = padding.end;
      }
    }
    assert.equal(data.byteLength, size);
    assert.equal(row.digest, sha256(data));
    byPath.set(path, { path, mode, data, stored, linkTo, pax: header.pax });
  }
  assert.equal(at, tocAt, 'the bricks tile the file');
  return [...byPath.values()];
}
