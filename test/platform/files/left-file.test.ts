import { execa } from 'execa';
import { chmod, link, lchown, lstat, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { claim } from '../../../src/platform/files/claim.ts';
import { openLeft, openOrMake, readLeft } from '../../../src/platform/files/left-file.ts';
import { readOwnFile, writeStateFile } from '../../../src/platform/files/state-file.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('files/left-file');
const NOBODY = 65_534;

/** A folder that everybody writes to, without the sticky bit: the kernel protects nobody there. */
async function sharedBox(): Promise<Tree> {
  const box = await tree({ 'own/secret': 'keep' });
  await chmod(box.path, 0o777);
  return box;
}

/** What somebody may have put in the place of a file that is resumed. */
const PLANTED: Readonly<Record<string, (box: Tree) => Promise<unknown>>> = {
  'a symbolic link': async (box) => symlink(box.at('own/secret'), box.at('x.partial')),
  'has another hard link': async (box) => link(box.at('own/secret'), box.at('x.partial')),
  'other users can write to it': async (box) => {
    await writeFile(box.at('x.partial'), 'theirs');
    await chmod(box.at('x.partial'), 0o666);
  },
  'not a regular file': async (box) => execa('mkfifo', [box.at('x.partial')]),
};

async function isRefused(box: Tree, why: RegExp): Promise<void> {
  const path = box.at('x.partial');
  const before = await lstat(path);
  const ways = [
    async () => openLeft(path, 'write'),
    async () => openLeft(path, 'read'),
    async () => openOrMake(path),
    async () => readLeft(path, 10),
  ];
  for (const open of ways) {
    const { hint } = await assert.rejectsWith(open(), 'FILE_UNUSABLE', why);
    assert.match(hint ?? '', /remove it/);
  }
  assert.is((await lstat(path)).ino, before.ino);
  assert.is(await readFile(box.at('own/secret'), 'utf8'), 'keep');
}

for (const [why, plant] of Object.entries(PLANTED)) {
  test(`a file that is resumed is refused untouched: ${why}`, async () => {
    await using box = await sharedBox();
    await plant(box);
    await isRefused(box, new RegExp(why));
  });
}

test('a file of this user is resumed, and one that is missing is made', async () => {
  await using box = await sharedBox();
  assert.is(await openLeft(box.at('x.partial'), 'write'), undefined);
  const made = await openOrMake(box.at('x.partial'), 0o644);
  await made.writeFile('half');
  await made.close();
  assert.is(await readLeft(box.at('x.partial'), 10), 'half');
  const again = await openOrMake(box.at('x.partial'));
  assert.is((await again.stat()).size, 4);
  await again.close();
  assert.equal(await readdir(box.path), ['own', 'x.partial']);
});

test('a state file is written under a name that nobody can have planted', async () => {
  await using box = await sharedBox();
  await symlink(box.at('own/secret'), box.at('x.part'));
  await symlink(box.at('own/secret'), box.at('x'));
  await writeStateFile(box.at('x'), 'new');
  assert.is(await readOwnFile(box.at('x'), 10), 'new');
  assert.is(await readFile(box.at('own/secret'), 'utf8'), 'keep');
  assert.equal((await readdir(box.path)).toSorted(), ['own', 'x', 'x.part']);
});

test('a pipe and a link in the place of a claim are replaced, and not waited for', async () => {
  await using box = await sharedBox();
  await execa('mkfifo', [box.at('.x.claim')]);
  {
    await using _held = await claim(box.at('x'));
    assert.ok((await lstat(box.at('.x.claim'))).isFile());
  }
  await symlink(box.at('own/secret'), box.at('.x.claim'));
  await using _held = await claim(box.at('x'));
  assert.ok((await lstat(box.at('.x.claim'))).isFile());
});

if (process.getuid?.() === 0) {
  test('root neither takes over nor writes to what another user has left', async () => {
    await using box = await sharedBox();
    await writeFile(box.at('x.partial'), 'theirs');
    await lchown(box.at('x.partial'), NOBODY, NOBODY);
    await isRefused(box, /it belongs to user 65534/);
    assert.is(await readFile(box.at('x.partial'), 'utf8'), 'theirs');
  });
} else {
  test.skip('root neither takes over nor writes to what another user has left', 'giving files away needs root');
}

test.run();
