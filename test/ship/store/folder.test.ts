import { readdir, readFile, rm, rmdir, stat, utimes, writeFile } from 'node:fs/promises';
import { digestOf } from '../../../src/core/digest.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import { openStoreSource } from '../../../src/ship/store/source.ts';
import type { Upload } from '../../../src/ship/store/store.ts';
import { join, relative } from 'node:path';
import * as assert from '../../support/assert.ts';
import { collect, collectItems } from '../../support/bytes.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/store/folder');

const text = (value: string): Uint8Array => Buffer.from(value);

async function read(root: string, key: string, signal: AbortSignal): Promise<string> {
  const { body } = await createFolderStore(root).get(key, { signal });
  return (await collect(body)).toString();
}

test('an object is a plain file at its key, with metadata beside it', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);

  await store.put('v1/a-1.tar.gz', text('hello'), { metadata: { digest: 'x' }, signal });

  assert.is(await readFile(box.at('v1/a-1.tar.gz'), 'utf8'), 'hello');
  const found = await store.head('v1/a-1.tar.gz', { signal });
  assert.equal(found?.metadata, { digest: 'x' });
  assert.is(found?.size, 5);
  assert.equal((await readdir(box.path)).toSorted(), ['.curlew', 'v1']);
});

test('a missing object is undefined from head and NOT_FOUND from get and copy', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  assert.is(await store.head('none', { signal }), undefined);
  await assert.rejectsWith(store.get('none', { signal }), 'NOT_FOUND');
  await assert.rejectsWith(store.copy('none', 'other', { signal }), 'NOT_FOUND');
  await store.delete('none', { signal });
});

test('a file that something else put there can be read and has an etag', async ({ signal }) => {
  await using box = await tree({ 'v1/big': Buffer.alloc(200_000, 1), 'v1/small': 'x' });
  const store = createFolderStore(box.path);
  for (const key of ['v1/big', 'v1/small']) {
    const before = await store.head(key, { signal });
    await writeFile(box.at(key), Buffer.alloc(before?.size ?? 0, 2));
    await utimes(box.at(key), 1, 1);
    const after = await store.head(key, { signal });
    assert.equal(after?.metadata, {});
    assert.not.equal(after?.etag, before?.etag);
  }
});

test('an object that was replaced by other means loses its note', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const before = await store.put('k', text('one'), { metadata: { digest: 'x' }, signal });
  await rm(box.at('k'));
  await writeFile(box.at('k'), 'two');
  const after = await store.head('k', { signal });
  assert.equal(after?.metadata, {});
  assert.not.equal(after?.etag, before.etag);
});

test('ranges are read; a range beyond the end is refused', async ({ signal }) => {
  await using box = await tree({ k: '0123456789' });
  const store = createFolderStore(box.path);
  const { body } = await store.get('k', { range: { offset: 3, length: 4 }, signal });
  assert.is((await collect(body)).toString(), '3456');
  await assert.rejectsWith(store.get('k', { range: { offset: 8, length: 3 }, signal }), 'STORE_CONFLICT');
});

test('a source is pinned: a read after the object has changed is refused', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  await store.put('k', text('one!'), { signal });
  const source = await openStoreSource(store, 'k', { signal });
  assert.is((await collect(source.read(0, 3, { signal }))).toString(), 'one');
  await store.put('k', text('two!'), { signal });
  await assert.rejectsWith(collect(source.read(0, 3, { signal })), 'STORE_CONFLICT', /has changed/);
});

test('ifNoneMatch lets exactly one of many writers in', async ({ signal }) => {
  await using box = await tree();
  const writers = Array.from({ length: 20 }, (_, index) =>
    createFolderStore(box.path).put('k', text(`writer ${index}`), {
      ifNoneMatch: '*',
      metadata: { by: String(index) },
      signal,
    }),
  );
  const results = await Promise.allSettled(writers);
  const won = results.flatMap((result, index) => (result.status === 'fulfilled' ? [index] : []));
  assert.is(won.length, 1);
  const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []));
  assert.ok(lost.every((error) => error instanceof CurlewError && error.code === 'STORE_CONFLICT'));
  assert.is(await read(box.path, 'k', signal), `writer ${won[0]}`);
  assert.equal((await createFolderStore(box.path).head('k', { signal }))?.metadata, { by: String(won[0]) });
});

test('a copy keeps metadata, shares bytes and is independent of a later change of its source', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const from = await store.put('r1/p', text('bytes'), { metadata: { digest: 'd' }, signal });
  const copy = await store.copy('r1/p', 'r2/p', { ifNoneMatch: '*', sourceIfMatch: from.etag, signal });
  assert.equal(copy.metadata, { digest: 'd' });
  assert.is((await stat(box.at('r1/p'))).ino, (await stat(box.at('r2/p'))).ino);

  await store.put('r1/p', text('other'), { signal });
  assert.is(await read(box.path, 'r2/p', signal), 'bytes');
  await assert.rejectsWith(store.copy('r1/p', 'r2/p', { ifNoneMatch: '*', signal }), 'STORE_CONFLICT');
  await assert.rejectsWith(store.copy('r1/p', 'r3/p', { sourceIfMatch: from.etag, signal }), 'STORE_CONFLICT');
  assert.is(await store.head('r3/p', { signal }), undefined);
});

test('a copy from another folder keeps metadata and pins its source; other kinds of store are refused', async ({
  signal,
}) => {
  await using box = await tree({ 'staging/.keep': '', 'dist/.keep': '' });
  const [staging, dist] = [createFolderStore(box.at('staging')), createFolderStore(box.at('dist'))];
  const { etag } = await staging.put('r/a', Buffer.from('content'), { metadata: { sha256: 'x' }, signal });
  const from = staging.place;
  const copied = await dist.copy('r/a', 'r2/a', { from, sourceIfMatch: etag, ifNoneMatch: '*', signal });
  assert.equal(copied.metadata, { sha256: 'x' });
  assert.is((await stat(box.at('dist/r2/a'))).ino, (await stat(box.at('staging/r/a'))).ino);
  await assert.rejectsWith(dist.copy('r/a', 'b', { from, sourceIfMatch: '"other"', signal }), 'STORE_CONFLICT');
  await assert.rejectsWith(dist.copy('r/b', 'b', { from, signal }), 'NOT_FOUND', /staging/);
  const elsewhere = { server: 'https://s3.example', base: 'bucket' };
  await assert.rejectsWith(dist.copy('r/a', 'b', { from: elsewhere, signal }), 'UNSUPPORTED');
});

test('a copy onto itself and a copy with other metadata work', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  await store.put('a', text('bytes'), { metadata: { n: '1' }, signal });
  await store.copy('a', 'b', { signal });
  await store.copy('a', 'b', { metadata: { n: '2' }, signal });
  assert.equal((await store.head('b', { signal }))?.metadata, { n: '2' });
  await store.copy('a', 'b', { signal });
  assert.equal((await store.head('b', { signal }))?.metadata, { n: '1' });
  await store.copy('a', 'a', { signal });
  assert.is(await read(box.path, 'a', signal), 'bytes');
  assert.equal((await readdir(box.path)).toSorted(), ['.curlew', 'a', 'b']);
});

test('bytes with another digest, a source that fails and a cancelled write leave nothing', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  await assert.rejectsWith(store.put('k', text('x'), { digest: digestOf('y'), signal }), 'DIGEST_MISMATCH');

  const failing: Upload = {
    size: 10,
    async *read() {
      yield text('1234');
      throw new CurlewError('FETCH_FAILED', 'reset');
    },
  };
  await assert.rejectsWith(store.put('k', failing, { signal }), 'FETCH_FAILED');
  const short: Upload = {
    size: 10,
    async *read() {
      yield text('1234');
    },
  };
  await assert.rejectsWith(store.put('k', short, { signal }), 'FETCH_FAILED', /4 bytes instead of 10/);
  const stop = new AbortController();
  const endless: Upload = {
    size: 1e9,
    async *read() {
      for (;;) {
        yield text('1234');
        stop.abort(new CurlewError('CANCELLED', 'cancelled'));
      }
    },
  };
  await assert.rejectsWith(store.put('k', endless, { signal: stop.signal }), 'CANCELLED');
  assert.equal(await readdir(box.path), ['.curlew']);
  assert.equal(await readdir(box.at('.curlew')), ['partial']);
  assert.equal(await readdir(box.at('.curlew/partial')), []);
});

test('a listing has the keys with a prefix in order, and none of the store’s own files', async ({ signal }) => {
  await using box = await tree({ 'v1/b': '', 'v1/a': 'x', 'v1-2/c': '', 'w/d': '', 'v1/.partial-x': 'half' });
  const store = createFolderStore(box.path);
  const keys = async (prefix: string): Promise<string[]> =>
    (await collectItems(store.list(prefix, { signal }))).map(({ key }) => key);
  assert.equal(await keys('v1/'), ['v1/a', 'v1/b']);
  assert.equal(await keys('v1'), ['v1-2/c', 'v1/a', 'v1/b']);
  assert.equal(await keys(''), ['v1-2/c', 'v1/a', 'v1/b', 'w/d']);
  assert.equal(await keys('none/'), []);
});

test('a deleted object is gone with its metadata', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const { etag } = await store.put('k', text('1'), { metadata: { a: 'b' }, ifNoneMatch: '*', signal });
  await store.put('k', text('2'), { ifMatch: etag, signal });
  await store.delete('k', { signal });
  assert.is(await store.head('k', { signal }), undefined);
  assert.equal((await store.put('k', text('1'), { ifNoneMatch: '*', signal })).metadata, {});
});

test('a folder whose last object is deleted is gone, also among metadata and generations', async ({ signal }) => {
  await using box = await tree({ 'kept/by-others/.keep': '' });
  const store = createFolderStore(box.path);
  const folders = async (): Promise<readonly string[]> => {
    const entries = await readdir(box.path, { recursive: true, withFileTypes: true });
    const found = entries.filter((entry) => entry.isDirectory());
    return found.map((entry) => relative(box.path, join(entry.parentPath, entry.name))).toSorted();
  };
  const before = await store.put('v1/a/k', text('1'), { metadata: { a: 'b' }, ifNoneMatch: '*', signal });
  await store.put('v1/a/k', text('2'), { metadata: { a: 'b' }, ifMatch: before.etag, signal });
  await store.put('v1/b', text('1'), { ifNoneMatch: '*', signal });
  await store.delete('v1/a/k', { signal });
  assert.equal(
    (await folders()).filter((folder) => folder.includes('v1')),
    ['.curlew/notes/v1', '.curlew/notes/v1/b', 'v1'],
  );
  await store.delete('v1/b', { signal });
  const own = ['.curlew', '.curlew/generations', '.curlew/notes', '.curlew/partial'];
  assert.equal(await folders(), [...own, 'kept', 'kept/by-others']);
});

test('a folder that others remove while it is empty is made again until the object has its name', async ({
  signal,
}) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const removedWhile = async (work: Promise<unknown>): Promise<void> => {
    const over = new AbortController();
    const removing = ['v1', '.curlew/notes/v1/k', '.curlew/generations/v1/k'].map(async (folder) => {
      for (let left = 20; left > 0 && !over.signal.aborted;) {
        left -= await rmdir(box.at(folder)).then(
          () => 1,
          () => 0,
        );
      }
    });
    await work.finally(() => over.abort());
    await Promise.all(removing);
  };
  for (let round = 0; round < 10; round += 1) {
    await removedWhile(store.put('v1/k', text('1'), { ifNoneMatch: '*', signal }));
    const { etag } = (await store.head('v1/k', { signal })) ?? { etag: '' };
    await removedWhile(store.put('v1/k', text('2'), { ifMatch: etag, signal }));
    await store.delete('v1/k', { signal });
    await removedWhile(store.put('v1/k', text('3'), { signal }));
    await store.delete('v1/k', { signal });
  }
});

test('deleting what is a folder of objects leaves them, their metadata and their generations', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const { etag } = await store.put('v1/k', text('1'), { ifNoneMatch: '*', signal });
  const before = await store.put('v1/k', text('2'), { metadata: { a: 'b' }, ifMatch: etag, signal });
  await store.delete('v1', { signal });
  assert.equal(await store.head('v1/k', { signal }), before);
});

for (const key of [
  '../x',
  '/etc/x',
  'a/../b',
  '',
  'a//b',
  'a\\b',
  '.curlew/notes/x',
  'a/.hidden',
  'a\u0000b',
  'a\nb',
]) {
  test(`the key ${JSON.stringify(key)} is refused by every call`, async ({ signal }) => {
    await using box = await tree({ a: 'x' });
    const store = createFolderStore(box.path);
    await assert.rejectsWith(store.head(key, { signal }), 'PACKAGE_INVALID');
    await assert.rejectsWith(store.get(key, { signal }), 'PACKAGE_INVALID');
    await assert.rejectsWith(store.put(key, text(''), { signal }), 'PACKAGE_INVALID');
    await assert.rejectsWith(store.copy('a', key, { signal }), 'PACKAGE_INVALID');
    await assert.rejectsWith(store.copy(key, 'b', { signal }), 'PACKAGE_INVALID');
    await assert.rejectsWith(store.delete(key, { signal }), 'PACKAGE_INVALID');
    assert.equal(await readdir(box.path), ['a']);
  });
}

test.run();
