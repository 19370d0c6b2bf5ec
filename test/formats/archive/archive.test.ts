import { execa } from 'execa';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { extractEntries } from '../../../src/formats/archive/extract.ts';
import { storedPacking } from '../../../src/formats/archive/pack.ts';
import { placeArchive } from '../../../src/formats/archive/place.ts';
import { memorySource, openFileSource, readFile as readEntry, readIndex } from '../../../src/formats/archive/read.ts';
import { verifyArchive } from '../../../src/formats/archive/verify.ts';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import * as assert from '../../support/assert.ts';
import { never } from '../../support/context.ts';
import { archiveOf, noise, type TestFile } from '../../support/packages.ts';
import { BAD_PATHS, BAD_SETS } from '../../support/bad-archives.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('archive');

const FILES: readonly TestFile[] = [
  { path: 'addons/a/1/addon.json', data: '{}\n' },
  { path: 'addons/a/1/install.sh', data: '#!/bin/bash\nfunction a() { :; }\n'.repeat(50), mode: 0o755 },
  { path: 'addons/a/1/empty', data: '' },
  { path: `addons/a/1/${'long-name-'.repeat(12)}.yaml`, data: 'a: 1\n' },
  { path: `addons/a/1/${'deep-folder/'.repeat(30)}file`, data: 'x' },
  { path: 'addons/a/1/ümlaut', data: 'ä' },
  { path: 'addons/a/1/assets/block', data: noise(65_535) },
  { path: 'addons/a/1/assets/block-and-one', data: noise(65_536, 2) },
  { path: 'addons/a/1/assets/several.tar.gz', data: noise(700_000, 3) },
  {
    path: 'addons/a/1/assets/text',
    data: Buffer.concat([Buffer.from('compress me '.repeat(300_000)), noise(50_000, 9)]),
  },
  { path: 'addons/a/1/images/last', data: 'z'.repeat(511) },
];

test('GNU tar reads every file, mode and byte without our tool', async () => {
  await using box = await tree();
  const { bytes } = archiveOf(FILES);
  await writeFile(box.at('p.tar.gz'), bytes);
  await execa('tar', ['-xzf', box.at('p.tar.gz'), '-C', box.path]);
  for (const { path, data, mode = 0o644 } of FILES) {
    assert.ok((await readFile(box.at(path))).equals(Buffer.from(data)), path);
    assert.is((await stat(box.at(path))).mode & 0o777, mode, path);
  }
});

test('the archive is one gzip stream of a well-formed tar', () => {
  const tar = gunzipSync(archiveOf(FILES).bytes);
  assert.is(tar.byteLength % 512, 0);
  assert.ok(tar.subarray(-1024).every((byte) => byte === 0));
});

test('an index comes from the last bytes and leads to every file', async () => {
  const { bytes, plan } = archiveOf(FILES);
  const source = memorySource('memory', bytes);
  const index = await readIndex(source, { signal: never });
  assert.equal(index, plan.index);
  for (const [at, entry] of index.entries.entries()) {
    const data = await readEntry(source, entry, { limit: 1 << 24, signal: never });
    assert.ok(Buffer.from(data).equals(Buffer.from(FILES[at]?.data ?? '')), entry.path);
  }
});

test('a whole archive is proved by verify', async () => {
  const { bytes, plan } = archiveOf(FILES);
  assert.equal(await verifyArchive(memorySource('m', bytes), { signal: never }), plan.index);
});

test('payload that is compressed already is stored, text is deflated', () => {
  const { plan } = archiveOf(FILES);
  const stored = new Map(plan.index.entries.map(({ path, stored: is }) => [path.split('/').at(-1), is]));
  assert.is(stored.get('several.tar.gz'), true);
  assert.is(stored.get('block'), true);
  assert.is(stored.get('text'), false);
});

test('one flipped byte anywhere is found', async () => {
  const { bytes } = archiveOf(FILES.slice(0, 8));
  const step = Math.max(1, Math.floor(bytes.byteLength / 700));
  for (let at = 0; at < bytes.byteLength; at += step) await findsFlip(bytes, at);
  for (let at = bytes.byteLength - 700; at < bytes.byteLength; at += 1) await findsFlip(bytes, at);
  for (let at = 0; at < 300; at += 1) await findsFlip(bytes, at);
});

async function findsFlip(bytes: Buffer, at: number): Promise<void> {
  const damaged = Buffer.from(bytes);
  damaged[at] = (damaged[at] ?? 0) ^ 0x10;
  try {
    await verifyArchive(memorySource('m', damaged), { signal: never });
  } catch (error) {
    if (error instanceof CurlewError && ['PACKAGE_INVALID', 'DIGEST_MISMATCH'].includes(error.code)) return;
    throw error;
  }
  throw new Error(`a flipped bit at byte ${at} of ${bytes.byteLength} was not found`);
}

test('an archive cut off anywhere is refused', async () => {
  const { bytes } = archiveOf(FILES);
  for (const length of [0, 1, 50, 51, 52, 1000, bytes.byteLength - 52, bytes.byteLength - 1]) {
    const cut = verifyArchive(memorySource('m', bytes.subarray(0, length)), { signal: never });
    await assert.rejectsWith(cut, 'PACKAGE_INVALID');
  }
});

test('bytes before, between or after the members are refused', async () => {
  const { bytes, plan } = archiveOf(FILES);
  const extra = Buffer.from('hidden');
  const at = plan.index.entries[1]?.offset ?? 0;
  for (const [first, second] of [
    [Buffer.alloc(0), bytes],
    [bytes, Buffer.alloc(0)],
    [bytes.subarray(0, at), bytes.subarray(at)],
  ] as const) {
    const altered = Buffer.concat([first, extra, second]);
    await assert.rejectsWith(verifyArchive(memorySource('m', altered), { signal: never }), 'PACKAGE_INVALID');
  }
});

test('extraction writes the same tree whatever the umask is', async () => {
  await using box = await tree();
  const { bytes } = archiveOf(FILES);
  await writeFile(box.at('p.tar.gz'), bytes);
  await using source = await openFileSource(box.at('p.tar.gz'));
  const index = await readIndex(source, { signal: never });
  const before = process.umask(0o077);
  try {
    await extractEntries(source, index, { into: box.at('out'), signal: never, sync: true });
  } finally {
    process.umask(before);
  }
  for (const { path, data, mode = 0o644 } of FILES) {
    assert.ok((await readFile(box.at('out', path))).equals(Buffer.from(data)), path);
    assert.is((await stat(box.at('out', path))).mode & 0o777, mode, path);
    assert.is((await stat(dirname(box.at('out', path)))).mode & 0o777, 0o755, dirname(path));
  }
});

test('extraction replaces nothing', async () => {
  await using box = await tree({ 'out/addons/a/1/empty': 'mine' });
  const { bytes, plan } = archiveOf(FILES);
  const done = extractEntries(memorySource('m', bytes), plan.index, { into: box.at('out'), signal: never });
  await assert.rejectsWith(done, 'FILE_EXISTS');
  assert.is(await readFile(box.at('out/addons/a/1/empty'), 'utf8'), 'mine');
});

test('a gzip bomb is refused before anything is written', async () => {
  await using box = await tree();
  const { bytes, plan } = archiveOf([{ path: 'bomb', data: Buffer.alloc(64 << 20), deflated: true }]);
  const done = extractEntries(memorySource('m', bytes), plan.index, { into: box.at('out'), signal: never });
  await assert.rejectsWith(done, 'PACKAGE_INVALID', /500 times/);
  await assert.rejectsWith(
    extractEntries(memorySource('m', bytes), plan.index, {
      into: box.at('out'),
      limits: { bytes: 1000, files: 10, ratio: 1e9 },
      signal: never,
    }),
    'PACKAGE_INVALID',
    /more than 1000 bytes/,
  );
});

for (const path of BAD_PATHS) {
  test(`an entry named ${JSON.stringify(path.slice(0, 20))} is refused`, async () => {
    const { bytes } = archiveOf([{ path, data: 'x' }]);
    await assert.rejectsWith(readIndex(memorySource('m', bytes), { signal: never }), 'PACKAGE_INVALID');
  });
}

test('an empty file with the digest of another content is refused', async () => {
  const { index, pieces } = placeArchive([
    { path: 'a', mode: 0o644, size: 0, digest: digestOf('x'), ...storedPacking(0) },
  ]);
  const bytes = Buffer.alloc(index.size);
  for (const { offset, data } of pieces) bytes.set(data, offset);
  await assert.rejectsWith(verifyArchive(memorySource('m', bytes), { signal: never }), 'PACKAGE_INVALID', /empty file/);
});

for (const [title, files] of BAD_SETS) {
  test(`${title} are refused`, async () => {
    const { bytes } = archiveOf(files.map((path) => ({ path, data: 'x' })));
    await assert.rejectsWith(readIndex(memorySource('m', bytes), { signal: never }), 'PACKAGE_INVALID');
  });
}

test.run();
