import { lstat, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import type { Store } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { collect, collectItems } from '../../support/bytes.ts';
import { deadPartialName } from '../../support/partials.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/store/folder-inside');

const text = (value: string): Uint8Array => Buffer.from(value);

async function read(root: string, key: string, signal: AbortSignal): Promise<string> {
  const { body } = await createFolderStore(root).get(key, { signal });
  return (await collect(body)).toString();
}

/** What somebody with a hand in the folder may lead elsewhere, and how a call would follow. */
const LED_OUT: Readonly<Record<string, (store: Store, signal: AbortSignal) => Promise<unknown>>> = {
  'reads a file': async (store, signal) => store.get('file', { signal }),
  'reads a small file': async (store, signal) => store.read('file', { limit: 100, signal }),
  'looks at a file': async (store, signal) => store.head('file', { signal }),
  'copies a file': async (store, signal) => store.copy('file', 'v1/copy', { signal }),
  'reads in a folder': async (store, signal) => store.get('folder/secret', { signal }),
  'lists a folder': async (store, signal) => collectItems(store.list('folder/', { signal })),
  'writes into a folder': async (store, signal) => store.put('folder/new', text('x'), { signal }),
  'writes below a folder': async (store, signal) => store.put('folder/a/b', text('x'), { ifNoneMatch: '*', signal }),
  'copies into a folder': async (store, signal) => store.copy('v1/a', 'folder/secret', { signal }),
  'deletes in a folder': async (store, signal) => store.delete('folder/secret', { signal }),
};

for (const [what, call] of Object.entries(LED_OUT)) {
  test(`no symbolic link leads out of the store: ${what}`, async ({ signal }) => {
    await using outside = await tree({ secret: 'keep' });
    await using box = await tree({ 'v1/a': 'a' });
    await symlink(outside.at('secret'), box.at('file'));
    await symlink(outside.path, box.at('folder'));
    const store = createFolderStore(box.path);
    await assert.rejectsWith(
      call(store, signal),
      'PACKAGE_INVALID',
      /is a symbolic link to a place outside of the store/,
    );
    assert.equal(await readdir(outside.path), ['secret']);
    assert.is(await readFile(outside.at('secret'), 'utf8'), 'keep');
  });
}

for (const folder of ['partial', 'notes', 'generations']) {
  test(`the store’s own folder ${folder} leads nowhere else`, async ({ signal }) => {
    await using outside = await tree({ 'k/1': 'keep', 'k/2/x': 'keep', [deadPartialName()]: 'keep' });
    await using box = await tree({ k: 'a', '.curlew/x': '' });
    await symlink(outside.path, box.at('.curlew', folder));
    const store = createFolderStore(box.path);
    for (const call of [
      async () => store.put('k', text('new'), { signal }),
      async () => store.put('other', text('new'), { signal }),
      async () => (folder === 'partial' ? store.put('k', text('b'), { signal }) : store.delete('k', { signal })),
    ]) {
      await assert.rejectsWith(call(), 'PACKAGE_INVALID', /outside of the store/);
    }
    assert.is((await readdir(outside.path)).length, 2);
    assert.equal(await readdir(outside.at('k')), ['1', '2']);
  });
}

test('links that stay in the store are followed, and the folder of the store may be one', async ({ signal }) => {
  await using box = await tree({ 'store/v1/a': 'a' });
  await symlink('v1', box.at('store/latest'));
  await symlink('v1/a', box.at('store/one'));
  await symlink('store', box.at('link'));
  const store = createFolderStore(box.at('link'));
  assert.is(await read(box.at('link'), 'latest/a', signal), 'a');
  assert.is(await read(box.at('link'), 'one', signal), 'a');
  await store.put('latest/b', text('b'), { ifNoneMatch: '*', signal });
  assert.is(await read(box.at('link'), 'v1/b', signal), 'b');
  await store.copy('one', 'v1/c', { signal });
  assert.ok((await lstat(box.at('store/v1/c'))).isFile());
  await store.delete('one', { signal });
  assert.is(await read(box.at('link'), 'v1/a', signal), 'a');
  assert.is(await store.head('one', { signal }), undefined);
});

test('a file that becomes a link out of the store while it is read is not read through', async ({ signal }) => {
  await using outside = await tree({ secret: 'keep' });
  await using box = await tree({ k: 'open' });
  const { body } = await createFolderStore(box.path).get('k', { signal });
  await rm(box.at('k'));
  await symlink(outside.at('secret'), box.at('k'));
  await assert.rejectsWith(collect(body), 'PACKAGE_INVALID', /k is a symbolic link to a place outside of the store/);
});

test.run();
