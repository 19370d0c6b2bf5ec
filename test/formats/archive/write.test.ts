import { link, open, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { packBytes, storedPacking } from '../../../src/formats/archive/pack.ts';
import { createFramePool } from '../../../src/formats/archive/frame-pool.ts';
import type { FrameSink } from '../../../src/formats/archive/frame-sink.ts';
import { GROUP_BLOCKS } from '../../../src/formats/archive/frame-protocol.ts';
import { BLOCK, unpackMember } from '../../../src/formats/archive/member.ts';
import { placeArchive, type ArchivePlan } from '../../../src/formats/archive/place.ts';
import { memorySource, openFileSource } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { createArchiveWriter, partialPath } from '../../../src/formats/archive/write.ts';
import { digestOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { archiveOf, noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive/write');
const signal = new AbortController().signal;

const GROUP = GROUP_BLOCKS * BLOCK;
const GZIP_HEADER = 10;
const text = Buffer.from('a: 1\n');
/** Sizes around every border of the frame. */
const blobs = [1, BLOCK - 1, BLOCK, BLOCK + 1, GROUP - 1, GROUP, GROUP + 1, 3 * GROUP + 12_345].map((size, seed) =>
  noise(size, seed + 1),
);
const blobPath = (index: number): string => `addons/a/1/images/blobs/sha256/${digestOf(blobs[index] ?? '').slice(7)}`;

function planOf(): ArchivePlan {
  const path = 'addons/a/1/a.yaml';
  return placeArchive([
    { path, mode: 0o644, size: text.byteLength, digest: digestOf(text), ...packBytes(path, text).packing },
    ...blobs.map((blob, index) => ({
      path: blobPath(index),
      mode: 0o644 as const,
      size: blob.byteLength,
      digest: digestOf(blob),
      ...storedPacking(blob.byteLength),
    })),
  ]);
}

/** Writes blob `index` in pieces of an odd size, from a raw offset. */
async function send(payload: { write: (chunk: Uint8Array) => Promise<void> | undefined }, blob: Buffer, from: number) {
  for (let at = from; at < blob.byteLength; at += 70_001) {
    await payload.write(blob.subarray(at, Math.min(at + 70_001, blob.byteLength)));
  }
}

async function writeAll(path: string, options: { readonly stopAfter?: number } = {}): Promise<readonly number[]> {
  const plan = planOf();
  await using pool = createFramePool({ threads: 2, width: blobs.length });
  const writer = await createArchiveWriter(path, plan, { pool, signal });
  const [first, ...rest] = plan.index.entries;
  if (first === undefined) throw new Error('no entries');
  await writer.putMember(first, packBytes(first.path, text).member);
  const froms = await Promise.all(
    rest.map(async (entry, index) => {
      const payload = await writer.openPayload(entry, { fresh: false });
      const blob = blobs[index] ?? Buffer.alloc(0);
      const until = options.stopAfter === undefined ? blob.byteLength : Math.min(blob.byteLength, options.stopAfter);
      await send(payload, blob.subarray(0, until), payload.from);
      if (until === blob.byteLength) await payload.finish();
      else await payload.abandon();
      return payload.from;
    }),
  );
  if (options.stopAfter === undefined) await writer.commit();
  else await writer.abandon({ keep: true });
  return froms;
}

test('payloads written in place, several at once, give the bytes that packing in memory gives', async () => {
  await using box = await tree();
  await writeAll(box.at('p.tar.gz'));
  const expected = archiveOf([
    { path: 'addons/a/1/a.yaml', data: text },
    ...blobs.map((data, index) => ({ path: blobPath(index), data })),
  ]);
  assert.ok((await readFile(box.at('p.tar.gz'))).equals(expected.bytes));
  assert.equal(await readdir(box.path), ['p.tar.gz']);
});

test('an interrupted file is continued where whole groups lie, and comes out the same', async () => {
  await using box = await tree();
  await writeAll(box.at('p.tar.gz'), { stopAfter: 2 * GROUP + 5 });
  assert.equal(await readdir(box.path), ['.p.tar.gz.partial']);
  const froms = await writeAll(box.at('p.tar.gz'));
  assert.is(froms[0], 1);
  assert.is(froms[5], GROUP);
  assert.is(froms.at(-1), GROUP);
  await using source = await openFileSource(box.at('p.tar.gz'));
  await verifyArchive(source, { signal });
});

test('a partial file of another plan is not used', async () => {
  await using box = await tree();
  const other = archiveOf([{ path: 'x', data: noise(100_000) }]);
  await writeFile(partialPath(box.at('p.tar.gz')), other.bytes);
  assert.ok((await writeAll(box.at('p.tar.gz'))).every((from) => from === 0));
});

test('a partial file that has another name as well is replaced, not written to', async () => {
  await using box = await tree();
  await writeAll(box.at('p.tar.gz'), { stopAfter: 2 * GROUP + 5 });
  await link(partialPath(box.at('p.tar.gz')), box.at('theirs'));
  const before = await readFile(box.at('theirs'));
  assert.ok((await writeAll(box.at('p.tar.gz'))).every((from) => from === 0));
  assert.ok((await readFile(box.at('theirs'))).equals(before));
  assert.is((await stat(box.at('p.tar.gz'))).nlink, 1);
});

test('bytes lost in the partial file are found, and a fresh start mends them', async () => {
  await using box = await tree();
  await writeAll(box.at('p.tar.gz'), { stopAfter: 3 * GROUP + 5 });
  const plan = planOf();
  const entry = plan.index.entries.at(-1);
  if (entry === undefined) throw new Error('no entries');
  const file = await open(partialPath(box.at('p.tar.gz')), 'r+');
  await file.write(Buffer.alloc(4096), 0, 4096, entry.offset + 1000);
  await file.close();
  await using pool = createFramePool({ threads: 1, width: 1 });
  const writer = await createArchiveWriter(box.at('p.tar.gz'), plan, { pool, signal });
  const blob = blobs.at(-1) ?? Buffer.alloc(0);
  const damaged = await writer.openPayload(entry, { fresh: false });
  assert.ok(damaged.from > 0);
  await send(damaged, blob, damaged.from);
  await assert.rejectsWith(damaged.finish(), 'DIGEST_MISMATCH');
  const fresh = await writer.openPayload(entry, { fresh: true });
  assert.is(fresh.from, 0);
  await send(fresh, blob, 0);
  await fresh.finish();
  await writer.abandon({ keep: false });
  assert.equal(await readdir(box.path), []);
});

test('a member whose first bytes were lost is written anew', async () => {
  await using box = await tree();
  await writeAll(box.at('p.tar.gz'), { stopAfter: 3 * GROUP + 5 });
  const { offset } = planOf().index.entries.at(-1) ?? { offset: 0 };
  const file = await open(partialPath(box.at('p.tar.gz')), 'r+');
  await file.write(Buffer.alloc(GZIP_HEADER), 0, GZIP_HEADER, offset);
  await file.close();
  const froms = await writeAll(box.at('p.tar.gz'));
  assert.is(froms.at(-1), 0);
  await using source = await openFileSource(box.at('p.tar.gz'));
  await verifyArchive(source, { signal });
});

test('a payload is copied from another package as it lies there', async () => {
  await using box = await tree();
  await writeAll(box.at('one.tar.gz'));
  const plan = planOf();
  await using pool = createFramePool({ threads: 1, width: 1 });
  const writer = await createArchiveWriter(box.at('two.tar.gz'), plan, { pool, signal });
  const donor = await open(box.at('one.tar.gz'), 'r');
  for (const entry of plan.index.entries.slice(1)) {
    const payload = await writer.openPayload(entry, { fresh: false });
    assert.is(await payload.copyFrom(donor.fd, entry.offset), entry.size);
    await payload.finish();
  }
  await donor.close();
  const [first] = plan.index.entries;
  if (first !== undefined) await writer.putMember(first, packBytes(first.path, text).member);
  await writer.commit();
  assert.ok((await readFile(box.at('two.tar.gz'))).equals(await readFile(box.at('one.tar.gz'))));
});

test('a wrong byte is a digest mismatch; too few or too many are errors', async () => {
  await using box = await tree();
  const plan = planOf();
  await using pool = createFramePool({ threads: 1, width: 1 });
  const writer = await createArchiveWriter(box.at('p.tar.gz'), plan, { pool, signal });
  const entry = plan.index.entries[2];
  const blob = Buffer.from(blobs[1] ?? '');
  if (entry === undefined) throw new Error('no entry');
  const short = await writer.openPayload(entry, { fresh: true });
  await short.write(blob.subarray(1));
  await assert.rejectsWith(short.finish(), 'FETCH_FAILED', /only 65533 of 65534/);
  const long = await writer.openPayload(entry, { fresh: true });
  assert.throwsWith(() => long.write(Buffer.concat([blob, blob])), 'FETCH_FAILED', /more bytes/);
  blob[7] = (blob[7] ?? 0) ^ 1;
  const wrong = await writer.openPayload(entry, { fresh: true });
  await wrong.write(blob);
  await assert.rejectsWith(wrong.finish(), 'DIGEST_MISMATCH');
  await writer.abandon({ keep: false });
});

test('a payload that is given up while it waits for memory takes none away', async () => {
  await using box = await tree({ file: '' });
  const file = await open(box.at('file'), 'r+');
  await using pool = createFramePool({ threads: 1, width: 1 });
  const one = Buffer.alloc(1);
  // Every one that has begun holds a slot until it is given up.
  const holding: FrameSink[] = [];
  for (;;) {
    const sink = pool.openSink(file.fd, 0, 100);
    const written = sink.write(one);
    if (written === undefined) {
      holding.push(sink);
      continue;
    }
    await sink.abandon();
    await holding.pop()?.abandon();
    await written;
    break;
  }
  assert.is(pool.openSink(file.fd, 0, 100).write(one), undefined);
  await file.close();
});

test('a file is deflated into one member whose bytes depend on nothing but its content', async () => {
  await using box = await tree({ text: 'compress me '.repeat(500_000) });
  await using pool = createFramePool({ threads: 1, width: 1 });
  const { packed, packedDigest } = await pool.deflate(box.at('text'), box.at('member'));
  const member = await readFile(box.at('member'));
  assert.is(member.byteLength, packed);
  assert.is(digestOf(member), packedDigest);
  assert.is(Buffer.from(unpackMember(member, 1 << 24)).toString(), 'compress me '.repeat(500_000));
  assert.is(
    packedDigest,
    'sha256:dd39e1e86a082f85a589e0c7a86c0ca0ee6d1061e4409a3b0d58e3acf43c8a79',
    'the deflater is part of the format: every package changes when it does',
  );
});

test('a plan larger than the disk is refused before a byte is written', async () => {
  await using box = await tree();
  const size = 2 ** 50;
  const plan = placeArchive([
    { path: 'a/images/x.gz', mode: 0o644, size, digest: digestOf('x'), ...storedPacking(size) },
  ]);
  await using pool = createFramePool({ threads: 1, width: 1 });
  const error = await assert.rejectsWith(createArchiveWriter(box.at('p'), plan, { pool, signal }), 'NO_SPACE');
  assert.match(error.message, / [kMGTP]?B are needed, .* free/);
  assert.equal(await readdir(box.path), []);
  assert.is((await stat(box.path)).isDirectory(), true);
  assert.ok(memorySource('m', Buffer.alloc(0)).size === 0);
});

test.run();
