import { execa } from 'execa';
import { chmod, copyFile, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { verifyArchive } from '../../../../src/formats/archive/verify.ts';
import { checkParts, joinedBytes, type JoinOptions } from '../../../../src/ship/bundle/parts/join-parts.ts';
import { openParts } from '../../../../src/ship/bundle/parts/parts-source.ts';
import { digestOf } from '../../../../src/core/digest.ts';
import { CurlewError } from '../../../../src/core/errors.ts';
import { formatHead, parseHead } from '../../../../src/core/parts.ts';
import { formatBytes } from '../../../../src/core/units.ts';
import * as assert from '../../../support/assert.ts';
import { noise } from '../../../support/packages.ts';
import { BESIDE, join, joining, LIMIT, NAMES, split, WHOLE, wholeOf } from '../../../support/parts.ts';
import { suite } from '../../../support/suite.ts';
import { tree, type Tree } from '../../../support/tree.ts';

const test = suite('ship/bundle/join-parts');

/** Joining, checking by stream and opening all refuse, and nothing new is there afterwards. */
async function refused(box: Tree, signal: AbortSignal, code: CurlewError['code'], message: RegExp): Promise<void> {
  const before = (await readdir(box.path)).toSorted();
  await assert.rejectsWith(join(box, signal), code, message);
  const bytes = joinedBytes(box.at('b.tar.gz.parts.json'), joining(box, signal));
  await assert.rejectsWith(bytes.next(), code, message);
  assert.equal((await readdir(box.path)).toSorted(), before);
}

test('joined they are the file again', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
  const chunks: Uint8Array[] = [];
  for await (const chunk of joinedBytes(box.at('b.tar.gz.parts.json'), joining(box, signal))) {
    chunks.push(Uint8Array.from(chunk));
  }
  assert.ok(Buffer.concat(chunks).equals(WHOLE.bytes));
});

test('joined only their owner may read them, unless everybody may read each', async ({ signal }) => {
  for (const [mode, expected] of [
    [0o644, 0o644],
    [0o640, 0o600],
    [0o600, 0o600],
  ] as const) {
    await using box = await tree();
    await split(box, signal);
    await chmod(box.at(NAMES[1] ?? ''), mode);
    await join(box, signal);
    assert.is((await stat(box.at('joined'))).mode & 0o777, expected);
  }
});

test('they are read as one archive without being joined', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal, { limit: 7001 });
  await using parts = await openParts(box.at('b.tar.gz.parts.json'), { folders: [box.path], signal });
  assert.equal((await verifyArchive(parts, { signal })).tocDigest, WHOLE.index.tocDigest);
  for (const [offset, length] of [
    [0, 1],
    [7000, 2],
    [7001, 7001],
    [6999, 30_000],
    [WHOLE.bytes.byteLength - 1, 1],
  ] as const) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of parts.read(offset, length, { signal })) chunks.push(chunk);
    assert.ok(Buffer.concat(chunks).equals(WHOLE.bytes.subarray(offset, offset + length)), `${offset}+${length}`);
  }
});

test('parts may lie in several folders, and a good one is taken before a bad one', async ({ signal }) => {
  await using box = await tree({ 'two/.keep': '', 'three/.keep': '' });
  await split(box, signal);
  await copyFile(box.at(NAMES[0] ?? ''), box.at('three', NAMES[0] ?? ''));
  await writeFile(box.at(NAMES[0] ?? ''), noise(LIMIT, 99));
  await rename(box.at(NAMES[2] ?? ''), box.at('two', NAMES[2] ?? ''));
  await refused(box, signal, 'NOT_FOUND', /part-003 is missing$/);
  const folders = [box.path, box.at('two'), box.at('three')];
  assert.ok((await join(box, signal, { folders })).equals(WHOLE.bytes));
});

test('a missing part is named before anything is written', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await rm(box.at(NAMES[1] ?? ''));
  await rm(box.at(NAMES[3] ?? ''));
  await refused(box, signal, 'NOT_FOUND', /part-002 is missing; b\.tar\.gz\.part-004 is missing$/);
  await assert.rejectsWith(
    openParts(box.at('b.tar.gz.parts.json'), { folders: [box.path], signal }),
    'NOT_FOUND',
    /part-002 is missing/,
  );
});

test('swapped parts are named', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  const [, second = '', , fourth = ''] = NAMES;
  await rename(box.at(second), box.at('x'));
  await rename(box.at(fourth), box.at(second));
  await rename(box.at('x'), box.at(fourth));
  await refused(
    box,
    signal,
    'DIGEST_MISMATCH',
    /part-002 is swapped: it is b\.tar\.gz\.part-004; b\.tar\.gz\.part-004 is swapped: it is b\.tar\.gz\.part-002$/,
  );
});

test('a copy of another part is named', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await copyFile(box.at(NAMES[0] ?? ''), box.at(NAMES[1] ?? ''));
  await refused(box, signal, 'DIGEST_MISMATCH', /: b\.tar\.gz\.part-002 is a copy of b\.tar\.gz\.part-001$/);
});

test('a flipped byte anywhere is named by its part', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  for (const [name, at] of [
    [NAMES[0], 0],
    [NAMES[1], 50_000],
    [NAMES[3], 40],
  ] as const) {
    const good = await readFile(box.at(name ?? ''));
    const bad = Buffer.from(good);
    bad[at] = (bad[at] ?? 0) ^ 1;
    await writeFile(box.at(name ?? ''), bad);
    await refused(box, signal, 'DIGEST_MISMATCH', new RegExp(`: ${name} is damaged, or of another bundle`));
    await writeFile(box.at(name ?? ''), good);
  }
  assert.ok((await join(box, signal)).equals(WHOLE.bytes));
});

test('parts that are cut off or too long are named with their sizes', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await truncate(box.at(NAMES[0] ?? ''), 99_999);
  await writeFile(box.at(NAMES[3] ?? ''), 'more', { flag: 'a' });
  await refused(
    box,
    signal,
    'DIGEST_MISMATCH',
    /part-001 is truncated: 99999 bytes instead of 100000; .*part-004 is too long: /,
  );
  await truncate(box.at(NAMES[0] ?? ''), 0);
  await refused(box, signal, 'DIGEST_MISMATCH', /part-001 is truncated: 0 bytes/);
});

test('a part of another bundle is named, with its bundle where that is known', async ({ signal }) => {
  await using box = await tree({ 'other/.keep': '' });
  await split(box, signal);
  await split(box, signal, { whole: wholeOf(2), folders: [box.at('other')] });
  await copyFile(box.at('other', NAMES[1] ?? ''), box.at(NAMES[1] ?? ''));
  await refused(box, signal, 'DIGEST_MISMATCH', /part-002 is damaged, or of another bundle/);
  await copyFile(box.at('other/b.tar.gz.parts.json'), box.at('c.tar.gz.parts.json'));
  await refused(
    box,
    signal,
    'DIGEST_MISMATCH',
    /part-002 belongs to another bundle: it is b\.tar\.gz\.part-002 of c\.tar\.gz\.parts\.json/,
  );
});

test('a pipe among the head files is not waited for', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await execa('mkfifo', [box.at('c.tar.gz.parts.json')]);
  await writeFile(box.at(NAMES[1] ?? ''), noise(LIMIT, 99));
  await refused(box, signal, 'DIGEST_MISMATCH', /part-002 is damaged, or of another bundle/);
  const head = joinedBytes(box.at('c.tar.gz.parts.json'), joining(box, signal));
  await assert.rejectsWith(head.next(), 'FILE_UNUSABLE', /not a regular file/);
});

test('a head file that promises other contents is refused, and nothing gets the name', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  const path = box.at('b.tar.gz.parts.json');
  const head = parseHead(await readFile(path, 'utf8'), 'head');
  await writeFile(path, JSON.stringify({ ...head, tocDigest: wholeOf(2).index.tocDigest }));
  await assert.rejectsWith(
    join(box, signal),
    'DIGEST_MISMATCH',
    /form a different bundle than the head file describes/,
  );
  await assert.rejectsWith(openParts(path, { folders: [box.path], signal }), 'DIGEST_MISMATCH', /a different bundle/);
  await assert.rejectsWith(joinedBytes(path, joining(box, signal)).next(), 'DIGEST_MISMATCH', /a different bundle/);
  assert.equal((await readdir(box.path)).toSorted(), [...NAMES, ...BESIDE]);
});

test('media come one by one: parts are written as they come, in any order', async ({ signal }) => {
  await using box = await tree({ 'later/.keep': '' });
  await split(box, signal);
  const away = [1, 2, 3].map((index) => NAMES[index] ?? '');
  for (const name of away) await rename(box.at(name), box.at('later', name));
  const asked: (readonly [number, string | undefined])[] = [];
  const next: JoinOptions['next'] = async (missing, problem) => {
    asked.push([missing.length, problem]);
    if (asked.length === 1) return writeFile(box.at(away[0] ?? ''), noise(LIMIT, 5));
    if (asked.length === 2) return rename(box.at('later', away[2] ?? ''), box.at(away[2] ?? ''));
    await rename(box.at('later', away[0] ?? ''), box.at(away[0] ?? ''));
    await rename(box.at('later', away[1] ?? ''), box.at(away[1] ?? ''));
  };
  assert.ok((await join(box, signal, { next })).equals(WHOLE.bytes));
  assert.equal(
    asked.map(([count]) => count),
    [3, 3, 2],
  );
  assert.match(asked[1]?.[1] ?? '', 'b.tar.gz.part-002 is damaged, or of another bundle');
});

test('nobody who brings the next medium: nothing is left', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await rm(box.at(NAMES[1] ?? ''));
  const next = async (): Promise<void> => {
    throw new CurlewError('CANCELLED', 'nothing was joined');
  };
  await assert.rejectsWith(join(box, signal, { next }), 'CANCELLED');
  assert.equal(
    (await readdir(box.path)).toSorted(),
    [...NAMES, ...BESIDE].filter((name) => name !== NAMES[1]),
  );
});

test('whether there is room is asked before any part is looked at', async ({ signal }) => {
  const size = 2 ** 50;
  const part = { name: 'b.tar.gz.part-001', size, digest: digestOf('1') };
  const head = formatHead({ format: 1, name: 'b.tar.gz', size, tocDigest: digestOf('toc'), parts: [part] });
  await using box = await tree({ 'b.tar.gz.parts.json': head });
  await assert.rejectsWith(
    join(box, signal),
    'NO_SPACE',
    new RegExp(`write .*joined: ${formatBytes(size)} are needed`),
  );
  assert.equal(await readdir(box.path), ['b.tar.gz.parts.json']);
});

test('a file that is there is replaced only when asked', async ({ signal }) => {
  await using box = await tree({ joined: 'mine' });
  await split(box, signal);
  await assert.rejectsWith(join(box, signal), 'FILE_EXISTS');
  assert.is(await readFile(box.at('joined'), 'utf8'), 'mine');
  assert.ok((await join(box, signal, { force: true })).equals(WHOLE.bytes));
});

test('every part is looked at when all are to be checked', async ({ signal }) => {
  await using box = await tree();
  await split(box, signal);
  await rm(box.at(NAMES[0] ?? ''));
  await writeFile(box.at(NAMES[2] ?? ''), noise(LIMIT, 4));
  const found = await checkParts(box.at('b.tar.gz.parts.json'), joining(box, signal));
  assert.equal(
    found.map(({ problem }) => problem?.slice(0, 10)),
    ['is missing', undefined, 'is damaged', undefined],
  );
});

test.run();
