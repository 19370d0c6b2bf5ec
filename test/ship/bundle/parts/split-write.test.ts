import * as assert from '../../../support/assert.ts';
import { chmod, copyFile, link, mkdir, open, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { memorySource, openFileSource, readIndex } from '../../../../src/formats/archive/read.ts';
import { saveProgress } from '../../../../src/ship/bundle/parts/parts-known.ts';
import { inspectMedia, type Whole } from '../../../../src/ship/bundle/parts/split-write.ts';
import { hexOf } from '../../../../src/core/digest.ts';
import { CurlewError } from '../../../../src/core/errors.ts';
import { parseHead } from '../../../../src/core/parts.ts';
import { noise } from '../../../support/packages.ts';
import { BESIDE, join, LIMIT, NAMES, split, WHOLE, wholeOf } from '../../../support/parts.ts';
import { suite } from '../../../support/suite.ts';
import { tree, type Tree } from '../../../support/tree.ts';

const test = suite('ship/bundle/split-write');

test('parts are written with a head file and sums, and are the whole one behind the other', async ({ signal }) => {
  await using box = await tree();
  const { head, kept } = await split(box, signal, { verify: true });
  assert.is(kept, 0);
  assert.equal((await readdir(box.path)).toSorted(), [...NAMES, ...BESIDE]);
  const parts = await Promise.all(NAMES.map(async (name) => readFile(box.at(name))));
  assert.equal(
    parts.map(({ byteLength }) => byteLength),
    [LIMIT, LIMIT, LIMIT, WHOLE.bytes.byteLength - 3 * LIMIT],
  );
  assert.ok(Buffer.concat(parts).equals(WHOLE.bytes));
  assert.equal(parseHead(await readFile(box.at('b.tar.gz.parts.json'), 'utf8'), 'head'), head);
  const sums = head.parts.map(({ name, digest }) => `${hexOf(digest)}  ${name}\n`).join('');
  assert.is(await readFile(box.at('b.tar.gz.parts.sha256'), 'utf8'), sums);
});

/** A source that stops for good before this byte of the whole. */
function stopping(whole: Whole, before: number, stop: AbortController): Whole & { readonly reads: number[] } {
  const reads: number[] = [];
  const source = {
    ...whole.source,
    async *read(...[offset, length, options]: Parameters<Whole['source']['read']>) {
      reads.push(offset);
      if (offset + length > before) stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      options.signal.throwIfAborted();
      yield* whole.source.read(offset, length, options);
    },
  };
  return { ...whole, source, reads };
}

test('stopped in its first part, it says that nothing was written', async () => {
  await using box = await tree();
  const stop = new AbortController();
  const cut = stopping(WHOLE, 1, stop);
  await assert.rejectsWith(split(box, stop.signal, { whole: cut }), 'CANCELLED', /^canceled; nothing was written$/);
  assert.equal(await readdir(box.path), []);
});

for (const verify of [false, true]) {
  test(`cut off, it is gone on with: what is there is not written again (verify ${verify})`, async ({ signal }) => {
    await using box = await tree();
    const stop = new AbortController();
    const cut = stopping(WHOLE, 250_000, stop);
    const { hint } = await assert.rejectsWith(split(box, stop.signal, { whole: cut, verify }), 'CANCELLED');
    assert.match(hint ?? '', /^parts that are complete stay: the same command continues/);
    assert.equal((await readdir(box.path)).toSorted(), [...NAMES.slice(0, 2), 'b.tar.gz.parts.begun']);
    const before = await stat(box.at(NAMES[0] ?? ''));
    const rest = stopping(WHOLE, Infinity, new AbortController());
    const { kept } = await split(box, signal, { whole: rest, verify });
    assert.is(kept, 2);
    assert.equal(rest.reads, [2 * LIMIT, 3 * LIMIT]);
    assert.is((await stat(box.at(NAMES[0] ?? ''))).ino, before.ino);
    assert.equal((await readdir(box.path)).toSorted(), [...NAMES, ...BESIDE]);
    assert.ok((await join(box, signal)).equals(WHOLE.bytes));
  });
}

test('a part that was damaged meanwhile is written again', async ({ signal }) => {
  await using box = await tree();
  const stop = new AbortController();
  await assert.rejectsWith(split(box, stop.signal, { whole: stopping(WHOLE, 250_000, stop) }), 'CANCELLED');
  const file = await open(box.at(NAMES[0] ?? ''), 'r+');
  await file.write('damage', 7);
  await file.close();
  assert.is((await split(box, signal)).kept, 1);
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

test('what another user may have put in the place of a part is written anew', async ({ signal }) => {
  await using box = await tree();
  const stop = new AbortController();
  await assert.rejectsWith(split(box, stop.signal, { whole: stopping(WHOLE, 250_000, stop) }), 'CANCELLED');
  const [first = '', second = ''] = NAMES;
  await link(box.at(first), box.at('theirs'));
  await chmod(box.at(second), 0o666);
  assert.is((await split(box, signal)).kept, 0);
  assert.is((await stat(box.at('theirs'))).nlink, 1);
  assert.is((await stat(box.at(second))).mode & 0o022, 0);
});

test('a note of a begun set that leads elsewhere is refused', async ({ signal }) => {
  await using box = await tree();
  await using other = await tree();
  const stop = new AbortController();
  await assert.rejectsWith(split(other, stop.signal, { whole: stopping(WHOLE, 250_000, stop) }), 'CANCELLED');
  await symlink(other.at('b.tar.gz.parts.begun'), box.at('b.tar.gz.parts.begun'));
  await assert.rejectsWith(split(box, signal), 'FILE_UNUSABLE', /parts\.begun: not a file of an earlier run/);
});

test('parts of something else are not taken for the rest of this', async ({ signal }) => {
  await using box = await tree();
  const stop = new AbortController();
  await assert.rejectsWith(split(box, stop.signal, { whole: stopping(wholeOf(2), 250_000, stop) }), 'CANCELLED');
  await assert.rejectsWith(split(box, signal), 'FILE_EXISTS', /part-001: the file already exists/);
  assert.is((await split(box, signal, { force: true })).kept, 0);
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

test('a finished set is replaced only when asked; of the same file only damaged parts are written', async ({
  signal,
}) => {
  await using box = await tree();
  await split(box, signal);
  await assert.rejectsWith(split(box, signal), 'FILE_EXISTS', /parts\.json: the file already exists/);
  await writeFile(box.at(NAMES[1] ?? ''), noise(LIMIT, 4));
  assert.is((await split(box, signal, { force: true })).kept, 3);
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
  await split(box, signal, { force: true, limit: 3 * LIMIT });
  assert.equal(
    (await readdir(box.path)).filter((name) => name.includes('.part-')),
    NAMES.slice(0, 2),
  );
});

test('a damaged source is found while it is split, when asked', async ({ signal }) => {
  await using box = await tree();
  const bytes = Buffer.from(WHOLE.bytes);
  bytes[150_000] = (bytes[150_000] ?? 0) ^ 1;
  const whole = { ...WHOLE, source: memorySource('b.tar.gz', bytes) };
  await assert.rejectsWith(split(box, signal, { whole, verify: true }), 'DIGEST_MISMATCH', /blob-2/);
  assert.not.ok((await readdir(box.path)).includes('b.tar.gz.parts.json'));
});

test('parts of a damaged source are no parts to go on from', async ({ signal }) => {
  await using box = await tree();
  const bytes = Buffer.from(WHOLE.bytes);
  bytes[150_000] = (bytes[150_000] ?? 0) ^ 1;
  const whole = { ...WHOLE, source: memorySource('b.tar.gz', bytes) };
  await assert.rejectsWith(split(box, signal, { whole, verify: true, limit: 40_000 }), 'DIGEST_MISMATCH');
  assert.is((await split(box, signal, { verify: true, limit: 40_000, force: true })).kept, 0);
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

test('cut off between the head files of two media, it is finished by the same call', async ({ signal }) => {
  await using box = await tree({ 'one/.keep': '', 'two/b.tar.gz.parts.sha256/in-the-way': '' });
  const folders = [box.at('one'), box.at('two')];
  const layout = NAMES.map((name, at) => {
    const offset = at * LIMIT;
    return { name, folder: folders[at % 2] ?? '', offset, size: Math.min(LIMIT, WHOLE.bytes.byteLength - offset) };
  });
  const { size, tocDigest } = WHOLE.index;
  await saveProgress({ name: 'b.tar.gz', size, tocDigest, limit: LIMIT, folders }, { layout, digests: new Map() });
  await assert.rejectsWith(split(box, signal, { folders }), 'FILE_UNUSABLE', /parts\.sha256/);
  assert.ok((await readdir(box.at('one'))).includes('b.tar.gz.parts.json'));
  await rm(box.at('two/b.tar.gz.parts.sha256'), { recursive: true });
  assert.is((await split(box, signal, { folders })).kept, 4);
  assert.equal((await readdir(box.at('two'))).toSorted(), [NAMES[1], NAMES[3], ...BESIDE]);
});

test('parts of another name are left alone, whatever a head file of this name says', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await copyFile(box.at('b.tar.gz.parts.json'), box.at('c.tar.gz.parts.json'));
  await split(box, signal, { whole: { ...WHOLE, name: 'c.tar.gz' }, force: true });
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

/** A table of mounts in which these folders are of these types, each a file system of its own. */
async function mounted(box: Tree, types: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(box.at('proc/self'), { recursive: true });
  const lines = Object.entries(types).map(([name, type], n) => `1 1 7:${n} / ${box.at(name)} rw - ${type} /dev/x rw\n`);
  await writeFile(box.at('proc/self/mountinfo'), lines.join(''));
  return box.at('proc');
}

test('the head file lies on every medium, the sums and a signature beside it', async ({ signal }) => {
  await using box = await tree({ 'one/.keep': '', 'two/.keep': '' });
  const proc = await mounted(box, { one: 'ext4', two: 'ext4' });
  const folders = [box.at('one'), box.at('two')];
  const extraFiles = new Map([['b.tar.gz.sigstore.json', Buffer.from('signed')]]);
  const { media } = await split(box, signal, { folders, proc, extraFiles });
  assert.equal(
    media.map(({ medium, parts }) => [medium.folder, parts.length]),
    [[box.at('one'), 4]],
  );
  assert.equal((await readdir(box.at('two'))).toSorted(), ['.keep']);
  assert.is(await readFile(box.at('one/b.tar.gz.sigstore.json'), 'utf8'), 'signed');
});

test('on FAT a file stays below 4 GiB', async ({ signal }) => {
  await using box = await tree({ 'one/.keep': '', 'two/.keep': '' });
  const proc = await mounted(box, { one: 'vfat', two: 'exfat' });
  const [one, two] = await inspectMedia([box.at('one'), box.at('two')], { proc, signal });
  assert.equal([one?.type, one?.fileLimit], ['vfat', 2 ** 32 - 2 ** 20]);
  assert.equal([two?.type, two?.fileLimit], ['exfat', undefined]);
  assert.ok((one?.free ?? 0) > 0 && one?.device !== two?.device);
});

test('a folder that is not there is no medium', async ({ signal }) => {
  await using box = await tree();
  await assert.rejectsWith(split(box, signal, { folders: [box.at('none')] }), 'NOT_FOUND', /no such folder/);
});

test('parts come out the same from a file on disk', async ({ signal }) => {
  await using box = await tree({ 'b.tar.gz': WHOLE.bytes });
  await using source = await openFileSource(box.at('b.tar.gz'));
  const whole = { name: 'b.tar.gz', source, index: await readIndex(source, { signal }) };
  await split(box, signal, { whole, verify: true });
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

test.run();
