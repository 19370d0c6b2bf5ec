import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { PlacedEntry, RangeSource } from '../../../src/formats/archive/entry.ts';
import { createFramePool } from '../../../src/formats/archive/frame-pool.ts';
import type { Holder } from '../../../src/formats/archive/holder.ts';
import { storedMemberSize } from '../../../src/formats/archive/member.ts';
import { placeArchive } from '../../../src/formats/archive/place.ts';
import { memorySource, openFileSource } from '../../../src/formats/archive/read.ts';
import { indexOfContents, recreateArchive } from '../../../src/formats/archive/recreate.ts';
import { tocJson } from '../../../src/formats/archive/toc.ts';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { archiveOf, noise, type TestFile } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive/recreate');

const LONG = Buffer.from(Array.from({ length: 400_000 }, (_, at) => `line ${at % 7919} of it\n`).join(''));
const FILES: readonly TestFile[] = [
  { path: 'a/empty', data: '' },
  { path: 'a/small', data: 'text' },
  { path: 'a/text', data: 'word '.repeat(50_000), mode: 0o755 },
  { path: 'a/noise', data: noise(200_000) },
  { path: 'a/blocks', data: noise(65_535 * 2) },
  { path: 'a/bytes of the builder', data: LONG.subarray(0, 3_000_000) },
];

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(Uint8Array.from(chunk));
  return Buffer.concat(parts);
}

test('an archive is made again from plain files and its table of contents, bit for bit', async ({ signal }) => {
  await using box = await tree();
  const { bytes, plan } = archiveOf(FILES);
  for (const { path, data } of FILES) {
    await mkdir(dirname(box.at(path)), { recursive: true });
    await writeFile(box.at(path), data);
  }
  const index = indexOfContents(tocJson(plan.index.entries), plan.index.size, 'x');
  assert.equal(index, plan.index);
  const holderOf = ({ path }: PlacedEntry): Holder => ({ kind: 'file', path: box.at(path) });
  assert.ok((await bytesOf(recreateArchive(index, holderOf, { signal }))).equals(bytes));
});

test('payloads of other archives are taken, whichever way they are packed there', async ({ signal }) => {
  const { bytes, plan } = archiveOf(FILES);
  for (const deflated of [true, false]) {
    const other = archiveOf(FILES.map((file) => ({ ...file, path: `b/${file.path}.gz`, deflated })));
    const source = memorySource('other', other.bytes);
    const holderOf = ({ digest }: PlacedEntry): Holder => {
      const entry = other.plan.index.entries.find((one) => one.digest === digest);
      if (entry === undefined) throw new Error(`no ${digest}`);
      return { kind: 'entry', source, entry };
    };
    assert.ok((await bytesOf(recreateArchive(plan.index, holderOf, { signal }))).equals(bytes), String(deflated));
  }
});

for (const piece of [100, 65_540, 100_000, 1 << 20]) {
  test(`payloads are passed on from memory that is used again, read in pieces of ${piece} bytes`, async ({
    signal,
  }) => {
    await using box = await tree({ 'b.tar.gz': '' });
    const { bytes, plan } = archiveOf(FILES);
    await writeFile(box.at('b.tar.gz'), bytes);
    await using file = await openFileSource(box.at('b.tar.gz'));
    const source: RangeSource = {
      ...file,
      async *read(offset, length, options) {
        for (let at = 0; at < length; at += piece) {
          yield* file.read(offset + at, Math.min(piece, length - at), options);
        }
      },
    };
    const holderOf = (entry: PlacedEntry): Holder => ({ kind: 'entry', source, entry });
    const own = new Set<ArrayBufferLike>();
    const free: ArrayBufferLike[] = [];
    const allocate = (length: number): Uint8Array => {
      const memory = free.pop() ?? new ArrayBuffer(1 << 20);
      own.add(memory);
      return new Uint8Array(memory).fill(0xee).subarray(0, length);
    };
    const parts: Uint8Array[] = [];
    for await (const chunk of recreateArchive(plan.index, holderOf, { signal, allocate })) {
      parts.push(Uint8Array.from(chunk));
      if (own.delete(chunk.buffer)) free.push(chunk.buffer);
    }
    assert.ok(Buffer.concat(parts).equals(bytes));
  });
}

test('what the builder has deflated piece by piece is deflated so again', async ({ signal }) => {
  await using box = await tree();
  await using pool = createFramePool({ threads: 1, width: 1 });
  for (const size of [(1 << 20) + 1, 2 << 20, 5_000_000]) {
    const raw = LONG.subarray(0, size);
    await writeFile(box.at('raw'), raw);
    const { packed, packedDigest } = await pool.deflate(box.at('raw'), box.at(`member-${size}`));
    const entry = { path: 'x', mode: 0o644, size, digest: digestOf(raw), packed, stored: false, packedDigest } as const;
    const { index } = placeArchive([entry]);
    const [placed] = index.entries;
    const holder: Holder = { kind: 'file', path: box.at('raw') };
    const made = await bytesOf(recreateArchive(index, () => holder, { signal }));
    const member = made.subarray(placed?.offset, (placed?.offset ?? 0) + packed);
    assert.ok(member.equals(await readFile(box.at(`member-${size}`))), String(size));
  }
});

test('payloads that are not what the table promises are refused, whatever holds them', async ({ signal }) => {
  await using box = await tree({ short: 'tex', long: 'texts', other: 'tExt' });
  const { plan } = archiveOf([{ path: 'a', data: 'text' }]);
  const wrong = archiveOf([{ path: 'a', data: 'tExt' }]);
  const [entry] = wrong.plan.index.entries;
  if (entry === undefined) throw new Error('no entry');
  const lying = { ...entry, digest: digestOf('text') };
  const bytes = { kind: 'bytes', path: 'm', data: Buffer.from('tExt') } as const;
  const larger = { ...plan.index, entries: plan.index.entries.map((one) => ({ ...one, size: 5 })) };
  const text = { ...bytes, data: Buffer.from('text') };
  await assert.rejectsWith(bytesOf(recreateArchive(larger, () => text, { signal })), 'DIGEST_MISMATCH');
  for (const holder of [
    ...['short', 'long', 'other', 'none', '.'].map((name) => ({ kind: 'file', path: box.at(name) }) as const),
    bytes,
    { kind: 'entry', source: memorySource('w', wrong.bytes), entry: lying } as const,
    { kind: 'entry', source: memorySource('w', wrong.bytes), entry } as const,
  ]) {
    const made = bytesOf(recreateArchive(plan.index, () => holder, { signal }));
    if (holder.kind === 'file' && holder.path === box.at('.')) await assert.rejectsWith(made, 'FILE_UNUSABLE');
    else await assert.rejectsWith(made, 'DIGEST_MISMATCH');
  }
});

test('a packed form that the deflater does not make is told, and copied where an archive has it', async ({
  signal,
}) => {
  const { plan } = archiveOf([{ path: 'a', data: 'word '.repeat(1000) }]);
  const [entry] = plan.index.entries;
  if (entry === undefined) throw new Error('no entry');
  const odd = { ...plan.index, entries: [{ ...entry, packedDigest: digestOf('odd') }] };
  const plain = { kind: 'bytes', path: 'm', data: Buffer.from('word '.repeat(1000)) } as const;
  await assert.rejectsWith(
    bytesOf(recreateArchive(odd, () => plain, { signal })),
    'UNSUPPORTED',
    /m: a cannot be packed again with identical bytes/,
  );
  const damaged = archiveOf([{ path: 'a', data: 'word '.repeat(1000) }]);
  damaged.bytes[entry.offset + 20] = (damaged.bytes[entry.offset + 20] ?? 0) ^ 1;
  const holder = { kind: 'entry', source: memorySource('d', damaged.bytes), entry } as const;
  await assert.rejectsWith(
    bytesOf(recreateArchive(plan.index, () => holder, { signal })),
    'DIGEST_MISMATCH',
    /^d: a: its packed bytes are damaged/,
  );
});

test('tables of contents of files above 4 GiB and 8 GiB are read as those of others, by their text alone', () => {
  const sizes = [2 ** 32 - 1, 2 ** 32, 2 ** 32 + 65_535, 2 ** 33, 2 ** 40];
  const entries = sizes.map((size) => {
    const digest = digestOf(String(size));
    return { path: `a/${size}`, mode: 0o644, size, digest, packed: storedMemberSize(size), stored: true } as const;
  });
  const { index } = placeArchive(entries);
  assert.equal(indexOfContents(tocJson(index.entries), index.size, 'x'), index);
  assert.throwsWith(() => indexOfContents(tocJson(index.entries), index.size - 2 ** 32, 'x'), 'PACKAGE_INVALID');
});

test('a table of contents that no archive can have is refused', () => {
  const { plan } = archiveOf(FILES);
  const { entries, size } = plan.index;
  const json = tocJson(entries);
  const moved = entries.map((entry) => (entry.packed > 0 ? { ...entry, offset: entry.offset + 1 } : entry));
  const spaced = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(json).toString()), undefined, 1));
  const grown = spaced.byteLength - json.byteLength;
  for (const [text, bytes] of [
    [json, size - 1],
    [json, size + 1],
    [json, 0],
    [json, Number.MAX_SAFE_INTEGER],
    [tocJson(moved), size],
    [tocJson(entries.slice(1)), size],
    [spaced, size + grown],
    [Buffer.from('{"version":1,"entries":[{}]}'), size],
    [Buffer.from('x'), size],
  ] as const) {
    assert.throwsWith(() => indexOfContents(text, bytes, 'x'), 'PACKAGE_INVALID');
  }
});

test.run();
