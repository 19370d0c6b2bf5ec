/** A support bundle on a disk that is full, or becomes full. */
import { execa } from 'execa';
import { readdir, statfs, writeFile } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { readBundle } from '../support/support-bundles.ts';
import { tree } from '../support/tree.ts';

const test = suite('components/support-space', { timeoutMs: 120_000 });
const NO_SPACE = 18;

if (process.getuid?.() === 0) {
  test('a full disk leaves a whole bundle that says what is missing, or none', async () => {
    await using box = await tree({ 'disk/.keep': '' });
    await execa('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', box.at('disk')]);
    try {
      const { bsize, bavail } = await statfs(box.at('disk'));
      // The reserved mebibyte fits, and a few small files.
      await writeFile(box.at('disk/filler'), Buffer.alloc(bsize * bavail - (1 << 20) - 3 * bsize));
      const words = ['support-bundle', '--install-dir', box.at('node'), '-o', box.at('disk/x.tar.gz')];
      const { exitCode, stdout } = await runCommand(words, box.path);
      assert.is(exitCode, NO_SPACE, stdout);
      assert.match(stdout, /^missing: .*: the disk is full$/m);
      const { files, index } = await readBundle(box.at('disk/x.tar.gz'));
      assert.ok(files.has('version.yaml'));
      assert.not(index.complete);
      const inspected = await runCommand(['inspect', box.at('disk/x.tar.gz')], box.path);
      assert.match(inspected.stdout, /a support bundle\n.*\nmissing: /);
      await writeFile(box.at('disk/more'), Buffer.alloc(4 << 20)).catch(() => undefined);
      const none = await runCommand([...words.slice(0, -1), box.at('disk/y.tar.gz')], box.path);
      assert.is(none.exitCode, NO_SPACE);
      assert.match(none.stderr, /no space left/);
      assert.equal((await readdir(box.at('disk'))).toSorted(), ['filler', 'more', 'x.tar.gz']);
    } finally {
      await execa('umount', [box.at('disk')]);
    }
  });
} else {
  test.skip('a full disk', 'mounting a small file system needs root');
}

test('a limit of file sizes is said as such, and not that the disk is full', async () => {
  await using box = await tree();
  const words = ['support-bundle', '--install-dir', box.at('node'), '-o', 'x.tar.gz'];
  // The limit is in KiB: the reserved mebibyte, and one more.
  const limited = ['-c', 'ulimit -f 1025; exec "$0" "$@"', process.execPath, MAIN, ...words];
  const { exitCode, stdout } = await execa('bash', limited, { cwd: box.path, reject: false });
  assert.is(exitCode, NO_SPACE, stdout);
  assert.match(stdout, /^missing: .*: the limit of file sizes is reached$/m);
  assert.not.match(stdout, /disk is full/);
  assert.not((await readBundle(box.at('x.tar.gz'))).index.complete);
});

test.run();
