/** Machines that are not well: a full disk at any write, one that cannot be written to, a user who may not. */
import { cp, mkdir, rm } from 'node:fs/promises';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { nodeState, openScene, type Scene } from './support/kill-scene.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('a node in trouble', { timeoutMs: 1_200_000 });
const FOLDER = 'var/lib/curlew';
const [NO_SPACE, HOOK_FAILED] = [18, 20];

/** A disk of its own for a node, laid out as that which others begin with. */
async function ownDisk(scene: Scene, node: string): Promise<AsyncDisposable> {
  await mkdir(scene.at('nodes', node), { recursive: true });
  await run('mount', ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', scene.at('nodes', node)]);
  await cp(scene.at('nodes/before'), scene.at('nodes', node), { recursive: true });
  return {
    [Symbol.asyncDispose]: async () => {
      await run('umount', [scene.at('nodes', node)]);
    },
  };
}

/** Pages left free when the disk fills up: each hook, journal entry and record takes a few. */
const LEFT_FREE = [0, 1, 2, 3, 4, 5, 7];
const PAGE = 4096;

const reason = cannotRun('mount', 'umount', 'setpriv');
if (reason === undefined) {
  test('a disk that fills up at any moment is told, and with room the same command comes to the same end', async () => {
    await using scene = await openScene();
    assert.is((await scene.run('whole')).exitCode, 0);
    const expected = await nodeState(scene.at('nodes/whole', FOLDER));
    let failed = 0;
    for (const [index, pages] of LEFT_FREE.entries()) {
      await using _disk = await ownDisk(scene, 'full');
      const at = index % 2 === 0 ? 'aaa_pre_init middle' : 'bbb end';
      const ended = await scene.run('full', { FILL_AT: at, FILL_LEAVE: String(pages * PAGE) });
      const what = `${pages} pages: ${ended.stderr}`;
      if (ended.exitCode !== 0) {
        failed += 1;
        assert.ok(ended.exitCode === NO_SPACE || ended.exitCode === HOOK_FAILED, what);
        assert.ok(/no space.*hint: .*the same command again/is.test(ended.stderr), what);
      }
      await rm(scene.at('nodes/full/filler'));
      const again = ended.exitCode === 0 ? ended : await scene.run('full');
      assert.is(again.exitCode, 0, `${what} ${again.stderr}`);
      assert.equal(await nodeState(scene.at('nodes/full', FOLDER)), expected, what);
    }
    assert.ok(failed > LEFT_FREE.length / 2, `only ${failed} runs met a full disk`);
  });

  test('a disk that cannot be written to is told, and nothing was changed', async () => {
    await using scene = await openScene();
    await using _disk = await ownDisk(scene, 'fixed');
    await run('mount', ['-o', 'remount,ro', scene.at('nodes/fixed')]);
    const ended = await scene.run('fixed');
    assert.is(ended.exitCode, 25, ended.stderr);
    assert.match(
      ended.stderr,
      /read-only file system.*\n.*hint: the disk cannot be written to: .*run the same command again/is,
    );
  });

  test('somebody who is not root is told so before anything', async () => {
    await using scene = await openScene();
    const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    await run('chmod', ['-R', 'a+rX', scene.at()]);
    const ended = await scene.run('theirs', {}, { more: ['--root', '/'], under: nobody });
    assert.is(ended.exitCode, 64, ended.stderr);
    const confined = await scene.run('theirs', {}, { more: [], under: nobody });
    assert.is(confined.exitCode, 22, confined.stderr);
    assert.match(confined.stderr, /only root may do that.*\n.*hint: /s);
  });
} else test.skip('a node in trouble', reason);

test.run();
