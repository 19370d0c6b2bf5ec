import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import {
  inspectPartial,
  openPartial,
  pathsBeside,
  type FileIdentity,
} from '../../../src/ship/transfer/partial-file.ts';
import * as assert from '../../support/assert.ts';
import { collect } from '../../support/bytes.ts';
import { never } from '../../support/context.ts';
import { noise } from '../../support/packages.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('pull: what an earlier run has left');
const NAME = 'web.tar.gz';
const MIB = 1 << 20;

test('what is put aside gives no room to what comes, and what is used again does', async () => {
  await using box = await tree();
  const paths = pathsBeside(box.at(NAME));
  const { partial, note, older } = paths;
  await writeFile(partial, noise(MIB, 1));
  const identity = { size: 2 * MIB, contents: digestOf('one'), from: 'x', etag: '"1"' };
  const left = async (wanted: Partial<FileIdentity>): Promise<unknown> => {
    const { otherFrom, aside, bytes } = await inspectPartial(paths, { ...identity, ...wanted });
    return [otherFrom, aside, bytes];
  };
  assert.equal(await left({}), [undefined, false, MIB]);
  const noted = async (contents: string | undefined): Promise<void> =>
    writeFile(note, `${JSON.stringify({ format: 1, ...identity, contents, have: [[0, MIB]] })}\n`);
  await noted(identity.contents);
  assert.equal(await left({}), [undefined, false, MIB]);
  assert.equal(await left({ contents: digestOf('two') }), ['x', true, 0]);
  await writeFile(older, noise(MIB / 2, 2));
  assert.equal(await left({ contents: digestOf('two') }), ['x', true, MIB / 2]);
  await noted(undefined);
  assert.equal(await left({ etag: '"2"' }), ['x', false, MIB]);
});

const NEW: FileIdentity = { size: undefined, contents: undefined, from: 'x', etag: '"1"' };

test('bytes of one run are resumed by the next, and a restart forgets them on disk before others are written', async () => {
  await using box = await tree();
  const paths = pathsBeside(box.at(NAME));
  {
    await using file = await openPartial(paths, NEW, 'noted');
    await file.write(0, Buffer.from('hello '));
  }
  {
    await using file = await openPartial(paths, { ...NEW, etag: undefined }, 'noted');
    assert.equal([file.have.bytes(), file.identity().etag], [6, '"1"']);
    await file.write(6, Buffer.from('world'));
    file.identify({ ...file.identity(), size: 11 });
    assert.is(await readFile(paths.partial, 'utf8'), 'hello world');
    await file.restart();
    assert.match(await readFile(paths.note, 'utf8'), /"have":\[\]\}\n$/);
    await file.write(0, Buffer.from('new'));
    file.identify({ ...file.identity(), size: 3 });
    await file.finish({ force: true });
  }
  assert.is(await readFile(box.at(NAME), 'utf8'), 'new');
  assert.equal(await readdir(box.path), [NAME]);
});

test('only the owner can read a file until it is complete, and then also everybody unless it is private', async () => {
  await using box = await tree({ 'begun/web.tar.gz.partial': 'hello' });
  const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
  for (const [folder, isPrivate, mode] of [
    ['new', undefined, 0o644],
    ['begun', async () => false, 0o644],
    ['private', async () => true, 0o600],
  ] as const) {
    await mkdir(box.at(folder), { recursive: true });
    const paths = pathsBeside(box.at(folder, NAME));
    await using file = await openPartial(paths, { ...NEW, size: 5 }, 'all');
    assert.is(await modeOf(paths.partial), 0o600, folder);
    await file.write(0, Buffer.from('hello'));
    const judged: string[] = [];
    await file.finish({
      force: false,
      isPrivate:
        isPrivate &&
        (async (source) => {
          judged.push(
            (await collect(source.read(0, 5, { signal: never }))).toString(),
            ...(await readdir(box.at(folder))),
          );
          return isPrivate();
        }),
    });
    assert.equal(
      judged.filter((one) => !one.endsWith('.json')),
      isPrivate === undefined ? [] : ['hello', `${NAME}.partial`],
    );
    assert.is(await modeOf(paths.file), mode, folder);
  }
});

test('bytes of another version, or without a note, do not count unless the caller verifies them', async () => {
  await using box = await tree();
  const paths = pathsBeside(box.at(NAME));
  const [one, two] = [digestOf('one'), digestOf('two')];
  const counted = async (noted: object | undefined, requested: object, keep: 'all' | 'noted'): Promise<number> => {
    await writeFile(paths.partial, 'bytes');
    await writeFile(paths.note, `${JSON.stringify({ format: 1, ...NEW, ...noted, have: [[0, 5]] })}\n`);
    if (noted === undefined) await rm(paths.note);
    await using file = await openPartial(paths, { ...NEW, ...requested }, keep);
    return file.have.bytes();
  };
  assert.equal([await counted(undefined, {}, 'noted'), await counted(undefined, {}, 'all')], [0, 5]);
  assert.equal([await counted({}, {}, 'noted'), await counted({}, { etag: '"2"' }, 'noted')], [5, 0]);
  assert.is(await counted({ contents: one }, { contents: one }, 'all'), 5);
  assert.is(await counted({ contents: one }, { contents: two }, 'all'), 0);
  // Whatever was to be verified by a digest need not be of one version.
  assert.is(await counted({ contents: one }, {}, 'noted'), 0);
});

test('a link is not followed, and a folder is not a file', async () => {
  await using box = await tree({ 'folder.partial/x': '', target: 'keep' });
  await symlink(box.at('target'), box.at('link.partial'));
  for (const name of ['link', 'folder']) {
    await assert.rejectsWith(openPartial(pathsBeside(box.at(name)), NEW, 'all'), 'FILE_UNUSABLE');
  }
  assert.is(await readFile(box.at('target'), 'utf8'), 'keep');
});

test('a checkpoint that is still running when the file gets its name leaves no note', async () => {
  await using box = await tree();
  const chunk = noise(2 * MIB, 3);
  for (let round = 1; round <= 5; round += 1) {
    await using file = await openPartial(pathsBeside(box.at(NAME)), NEW, 'noted');
    const write = file.writer();
    await write(0, chunk);
    await write(chunk.byteLength, chunk);
    await file.finish({ force: true });
  }
  assert.equal(await readdir(box.path), [NAME]);
});

test.run();
