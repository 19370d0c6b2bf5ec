import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { promisify } from 'node:util';
import { createFolderStore } from '../../src/ship/store/folder.ts';
import * as assert from '../support/assert.ts';
import { collect, collectItems } from '../support/bytes.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/store-space');
const run = promisify(execFile);

if (process.getuid?.() !== 0) {
  test.skip('a full disk', 'mounting a small file system needs root');
} else {
  test('a full disk is NO_SPACE, leaves nothing under a final name and nothing behind', async ({ signal }) => {
    await using box = await tree({ 'disk/.keep': '' });
    await run('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', box.at('disk')]);
    try {
      const store = createFolderStore(box.at('disk'));
      await store.put('v1/small', Buffer.alloc(1 << 19, 1), { ifNoneMatch: '*', metadata: { n: '1' }, signal });
      await assert.rejectsWith(
        store.put('v1/large', Buffer.alloc(4 << 20, 2), { ifNoneMatch: '*', signal }),
        'NO_SPACE',
      );
      await assert.rejectsWith(store.put('v1/small', Buffer.alloc(4 << 20, 2), { signal }), 'NO_SPACE');

      assert.equal(
        (await collectItems(store.list('', { signal }))).map(({ key }) => key),
        ['v1/small'],
      );
      assert.equal(await readdir(box.at('disk/v1')), ['small']);
      assert.equal((await store.head('v1/small', { signal }))?.metadata, { n: '1' });
      const { body } = await store.get('v1/small', { signal });
      assert.ok((await collect(body)).equals(Buffer.alloc(1 << 19, 1)));
    } finally {
      await run('umount', [box.at('disk')]);
    }
  });
}

test.run();
