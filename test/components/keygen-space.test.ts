import { execa } from 'execa';
import { readdir, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/keygen-space', { timeoutMs: 60_000 });

if (process.getuid?.() === 0) {
  test('keys that find no room leave nothing behind that could be taken for a key', async () => {
    await using box = await tree({ 'disk/.keep': '' });
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', box.at('disk')]);
    try {
      // Writes as much as fits.
      await writeFile(box.at('disk/filler'), Buffer.alloc(1 << 20)).catch(() => undefined);
      const { exitCode, stderr } = await curlew(['keygen'], { cwd: box.at('disk') });
      assert.is(exitCode, 18, stderr);
      assert.equal(await readdir(box.at('disk')), ['filler']);
      // Room for one file, and not for the other.
      await writeFile(box.at('disk/filler'), Buffer.alloc(60 << 10));
      assert.is((await curlew(['keygen'], { cwd: box.at('disk') })).exitCode, 18);
      assert.equal(await readdir(box.at('disk')), ['filler']);
    } finally {
      await execa('umount', [box.at('disk')]);
    }
  });
} else {
  test.skip('keys that find no room', 'mounting a small file system needs root');
}

test.run();
