import { execa } from 'execa';
import { memorySource, openFileSource, readPayload } from '../../../src/formats/archive/read.ts';
import type { RangeSource } from '../../../src/formats/archive/entry.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import * as assert from '../../support/assert.ts';
import { collect } from '../../support/bytes.ts';
import { archiveOf, noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive/read');

/** Bytes in memory that arrive in pieces of one size. */
function inPieces(bytes: Buffer, piece: number): RangeSource {
  return {
    ...memorySource('m', bytes),
    async *read(offset, length) {
      for (let at = 0; at < length; at += piece) {
        yield bytes.subarray(offset + at, offset + Math.min(length, at + piece));
      }
    },
  };
}

/** Inflated in many pieces. */
const LONG = Buffer.from(Array.from({ length: 30_000 }, (_, at) => `compress me ${at} `).join(''));

for (const piece of [1, 7, 9, 10, 11, 4096]) {
  test(`a deflated payload is read whole when it arrives in pieces of ${piece} bytes`, async ({ signal }) => {
    const { bytes, plan } = archiveOf([{ path: 'text', data: LONG }]);
    const [entry] = plan.index.entries;
    if (entry === undefined) throw new Error('no entry');
    assert.is(entry.stored, false);
    assert.ok((await collect(readPayload(inPieces(bytes, piece), entry, { signal }))).equals(LONG));
  });
}

test('a long deflated payload is read without a warning about listeners', async ({ signal }) => {
  const warnings: string[] = [];
  const listen = ({ message }: Error): void => {
    warnings.push(message);
  };
  process.on('warning', listen);
  const data = Buffer.from(noise(3 << 20).toString('base64'));
  const { bytes, plan } = archiveOf([{ path: 'text', data }]);
  const [entry] = plan.index.entries;
  if (entry === undefined) throw new Error('no entry');
  assert.is(entry.stored, false);
  assert.ok((await collect(readPayload(inPieces(bytes, 64 << 10), entry, { signal }))).equals(data));
  await new Promise(setImmediate);
  process.off('warning', listen);
  assert.equal(warnings, []);
});

for (const [what, data] of [
  ['stored', noise(300_000)],
  ['deflated', LONG],
] as const) {
  test(`the source is let go when a ${what} payload has been read, is damaged, or is read no further`, async ({
    signal,
  }) => {
    const { bytes, plan } = archiveOf([{ path: 'file', data }]);
    const [entry] = plan.index.entries;
    if (entry === undefined) throw new Error('no entry');
    assert.is(entry.stored, what === 'stored');
    let open = 0;
    const counted = (from: Buffer): RangeSource => ({
      ...memorySource('m', from),
      async *read(offset, length) {
        open += 1;
        try {
          for (let at = offset; at < offset + length; at += 4096) {
            yield from.subarray(at, Math.min(at + 4096, offset + length));
          }
        } finally {
          open -= 1;
        }
      },
    });
    await collect(readPayload(counted(bytes), entry, { signal }));
    assert.is(open, 0, 'read');
    const damaged = Buffer.from(bytes);
    damaged.fill(0x55, entry.offset + 2000, entry.offset + 2100);
    await assert.rejectsWith(collect(readPayload(counted(damaged), entry, { signal })), 'DIGEST_MISMATCH');
    assert.is(open, 0, 'damaged');
    for await (const _chunk of readPayload(counted(bytes), entry, { signal })) break;
    assert.is(open, 0, 'left');
  });
}

test('what the source says is told as it is: only bytes can be damaged', async ({ signal }) => {
  const { bytes, plan } = archiveOf([{ path: 'text', data: LONG }]);
  const [entry] = plan.index.entries;
  if (entry === undefined) throw new Error('no entry');
  const broken: RangeSource = {
    ...memorySource('m', bytes),
    async *read(offset) {
      yield bytes.subarray(offset, offset + 1000);
      throw Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO' });
    },
  };
  let thrown: unknown;
  await collect(readPayload(broken, entry, { signal })).catch((error: unknown) => (thrown = error));
  assert.not.ok(thrown instanceof CurlewError);
  assert.match(String(thrown), /EIO/);
});

test('a folder, a pipe and a missing file are refused at once', async () => {
  await using box = await tree({ 'folder/x': '' });
  await execa('mkfifo', [box.at('pipe')]);
  await assert.rejectsWith(openFileSource(box.at('folder')), 'FILE_UNUSABLE', /not a file/);
  await assert.rejectsWith(openFileSource(box.at('pipe')), 'FILE_UNUSABLE', /not a file/);
  await assert.rejectsWith(openFileSource(box.at('none')), 'NOT_FOUND');
});

test.run();
