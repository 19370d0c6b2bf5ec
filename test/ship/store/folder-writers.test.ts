/** What a folder store does when writers are killed, meet, or belong to different users. */
import { execa } from 'execa';
import { once } from 'node:events';
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createFolderStore } from '../../../src/ship/store/folder.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { collect } from '../../support/bytes.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('ship/store/folder-writers');

const FOLDER = compiledModule('src/ship/store/folder.ts');
const text = (value: string): Uint8Array => Buffer.from(value);

async function read(root: string, key: string, signal: AbortSignal): Promise<string> {
  const { body } = await createFolderStore(root).get(key, { signal });
  return (await collect(body)).toString();
}

test('ifMatch is a compare-and-swap: of many writers with one etag one wins, round after round', async ({ signal }) => {
  await using box = await tree();
  let { etag } = await createFolderStore(box.path).put('VERSION', text('v0'), { ifNoneMatch: '*', signal });
  for (let round = 1; round <= 5; round += 1) {
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) =>
        createFolderStore(box.path).put('VERSION', text(`v${round}-${index}`), { ifMatch: etag, signal }),
      ),
    );
    const won = results.flatMap((result, index) => (result.status === 'fulfilled' ? [{ index, ...result.value }] : []));
    assert.is(won.length, 1);
    assert.is(await read(box.path, 'VERSION', signal), `v${round}-${won[0]?.index}`);
    assert.is(await readFile(box.at('VERSION'), 'utf8'), `v${round}-${won[0]?.index}`);
    etag = won[0]?.etag ?? '';
  }
});

test('going back to an earlier value does not bring its etag back', async ({ signal }) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const first = await store.put('VERSION', text('v1'), { ifNoneMatch: '*', signal });
  const second = await store.put('VERSION', text('v2'), { ifMatch: first.etag, signal });
  const third = await store.put('VERSION', text('v1'), { ifMatch: second.etag, signal });
  assert.not.equal(third.etag, first.etag);
  await assert.rejectsWith(store.put('VERSION', text('v3'), { ifMatch: first.etag, signal }), 'STORE_CONFLICT');
});

test('a swap that was cut off before the file was brought forward counts, and is finished by the next call', async ({
  signal,
}) => {
  await using box = await tree();
  const store = createFolderStore(box.path);
  const first = await store.put('VERSION', text('v1'), { ifNoneMatch: '*', signal });
  await store.put('VERSION', text('v2'), { ifMatch: first.etag, signal });
  await rm(box.at('VERSION'));
  await writeFile(box.at('VERSION'), 'v1');

  assert.is(await read(box.path, 'VERSION', signal), 'v2');
  assert.is(await readFile(box.at('VERSION'), 'utf8'), 'v2');
});

if (process.getuid?.() !== 0) {
  test.skip('a swap that another user finishes', 'becoming another user needs root');
} else {
  test('a swap that was cut off is finished by a user who may not link to the file of the other', async ({
    signal,
  }) => {
    await using box = await tree();
    const store = createFolderStore(box.path);
    const first = await store.put('VERSION', text('v1'), { ifNoneMatch: '*', signal });
    await store.put('VERSION', text('v2'), { ifMatch: first.etag, signal });
    await rm(box.at('VERSION'));
    await writeFile(box.at('VERSION'), 'v1');
    for (const folder of [box.path, box.at('.curlew'), box.at('.curlew/partial')]) await chmod(folder, 0o777);
    process.seteuid?.(65_534);
    try {
      assert.is(await read(box.path, 'VERSION', signal), 'v2');
      assert.is(await readFile(box.at('VERSION'), 'utf8'), 'v2');
    } finally {
      process.seteuid?.(0);
    }
  });
}

test('the next writer removes what a killed one left, and nothing that a running one writes', async ({ signal }) => {
  await using box = await tree();
  const script = `
    const { createFolderStore } = await import(${JSON.stringify(FOLDER)});
    const read = async function* () {
      for (;;) {
        yield Buffer.alloc(1000);
        console.log('written');
      }
    };
    const signal = new AbortController().signal;
    await createFolderStore(${JSON.stringify(box.path)}).put('v1/k', { size: 1e12, read }, { signal });`;
  const child = execa(process.execPath, ['--input-type=module', '-e', script], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
  });
  await once(child.stdout, 'data');
  await createFolderStore(box.path).put('v1/other', text('x'), { signal });
  assert.is((await readdir(box.at('.curlew/partial'))).length, 1);
  child.kill('SIGKILL');
  await child;
  await createFolderStore(box.path).put('v1/another', text('x'), { signal });
  assert.equal(await readdir(box.at('.curlew/partial')), []);
  assert.equal((await readdir(box.at('v1'))).toSorted(), ['another', 'other']);
});

test.run();
