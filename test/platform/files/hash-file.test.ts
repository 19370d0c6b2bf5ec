import { execa } from 'execa';
import { digestOf } from '../../../src/core/digest.ts';
import { hashFile } from '../../../src/platform/files/hash-file.ts';
import * as assert from '../../support/assert.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('hash of a file');

test('size and digest are those of all bytes, and each chunk is handed on', async ({ signal }) => {
  const large = noise((1 << 20) + 5);
  await using box = await tree({ none: '', small: 'abc', large });
  for (const [name, bytes] of [
    ['none', ''],
    ['small', 'abc'],
    ['large', large],
  ] as const) {
    const chunks: Buffer[] = [];
    const onChunk = (chunk: Uint8Array): void => void chunks.push(Buffer.from(chunk));
    const { size, digest } = await hashFile(box.at(name), { onChunk, signal });
    assert.equal([size, digest], [Buffer.byteLength(bytes), digestOf(bytes)]);
    assert.ok(Buffer.concat(chunks).equals(Buffer.from(bytes)));
  }
});

test('what is missing, a folder and a pipe that nobody writes to are told', async ({ signal }) => {
  await using box = await tree({ 'folder/x': '' });
  await execa('mkfifo', [box.at('pipe')]);
  await assert.rejectsWith(hashFile(box.at('none'), { signal }), 'NOT_FOUND', /none: no such file/);
  for (const name of ['folder', 'pipe']) {
    await assert.rejectsWith(hashFile(box.at(name), { signal }), 'FILE_UNUSABLE', new RegExp(`${name}: not a file`));
  }
});

test('it stops when it is told to', async () => {
  await using box = await tree({ x: 'abc' });
  let reason: unknown;
  await hashFile(box.at('x'), { signal: AbortSignal.abort('stop') }).catch((error: unknown) => {
    reason = error;
  });
  assert.is(reason, 'stop');
});

test.run();
