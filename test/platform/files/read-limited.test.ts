import { execa } from 'execa';
import { writeFile } from 'node:fs/promises';
import { CurlewError } from '../../../src/core/errors.ts';
import { readLimited } from '../../../src/platform/files/read-limited.ts';
import * as assert from '../../support/assert.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('files/read-limited');

test('a file of the greatest size allowed is read whole, one byte more is refused', async () => {
  const bytes = noise(200_000);
  await using box = await tree({ file: bytes, empty: '' });
  assert.ok((await readLimited(box.at('file'), 200_000)).equals(bytes));
  assert.is((await readLimited(box.at('empty'), 0)).byteLength, 0);
  await assert.rejectsWith(readLimited(box.at('file'), 199_999), 'FILE_UNUSABLE', /larger than 199999 bytes/);
});

test('attack: a device that never ends is refused at the limit', async () => {
  await assert.rejectsWith(readLimited('/dev/zero', 1 << 20), 'FILE_UNUSABLE', /larger/);
});

test('a folder and a missing file are named', async () => {
  await using box = await tree();
  await assert.rejectsWith(readLimited(box.path, 10), 'FILE_UNUSABLE', /: it is a folder$/);
  await assert.rejectsWith(readLimited(box.at('none'), 10), 'NOT_FOUND', /none: no such file$/);
});

test('a pipe is read to its end, and one that nobody writes to blocks no thread', async () => {
  await using box = await tree();
  await execa('mkfifo', [box.at('pipe')]);
  const written = writeFile(box.at('pipe'), noise(200_000));
  assert.ok((await readLimited(box.at('pipe'), 200_000)).equals(noise(200_000)));
  await written;
  const stopped = new AbortController();
  const read = readLimited(box.at('pipe'), 10, stopped);
  setImmediate(() => stopped.abort(new CurlewError('CANCELLED', 'cancelled')));
  await assert.rejectsWith(read, 'CANCELLED');
});

test.run();
