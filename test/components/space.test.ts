/** A full disk, wherever it is met: one clear error, nothing half-written, and the same command succeeds with room. */
import { readdir, writeFile } from 'node:fs/promises';
import { lockFolder } from '../../src/runtime/node/lock.ts';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import { startRegistry } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { cannotRun, run } from './support/programs.ts';

const test = suite('no space left');

const ADDON = {
  'addons/big/1.0.0/Manifest': 'image big registry.example/big:1\nasset data ./data\n',
  'addons/big/1.0.0/install.sh': '# shellcheck shell=bash\nbig() { true; }\n',
  'addons/big/1.0.0/data': binaryLike(1_000_000, 'data', 1),
  'installer.yaml':
    'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: space}\nspec: {big: {version: latest}}\n',
};
const image = makeImage([makeLayer({ big: binaryLike(4_000_000, 'big', 1) })]);
const TOO_SMALL = '1500k';

/** A folder with so little room, until it is disposed of. */
async function smallDisk(box: Tree, name: string): Promise<AsyncDisposable> {
  const folder = box.at(name);
  await writeTree(folder, { '.keep': '' });
  await run('mount', ['-t', 'tmpfs', '-o', `size=${TOO_SMALL}`, 'tmpfs', folder]);
  return {
    [Symbol.asyncDispose]: async () => {
      await run('umount', [folder]);
    },
  };
}

const reason = cannotRun('mount', 'umount');
if (reason === undefined) {
  for (const [what, folder, option] of [
    ['the output', 'out', '--out'],
    ['the cache', 'cache', '--cache'],
  ] as const) {
    test(`in ${what}: the build says so, leaves no package, and succeeds elsewhere`, async () => {
      await using box = await tree(ADDON);
      await using registry = await startRegistry({ 'big:1': image });
      const words = ['build', 'big', '--registry-mirror', `registry.example=${registry.host}`];
      {
        await using _disk = await smallDisk(box, folder);
        const { exitCode, stdout, stderr } = await curlew([...words, option, folder], { cwd: box.path });
        // A build that needs no room in the cache is as good as one that says that there is none.
        if (folder === 'cache' && exitCode === 0) return;
        assert.is(exitCode, 18, stdout + stderr);
        assert.match(stderr, /^error NO_SPACE: /m);
        const left = await readdir(box.at(folder), { recursive: true });
        assert.equal(
          left.filter((name) => name.endsWith('.tar.gz')),
          [],
        );
      }
      await curlewOk(words, { cwd: box.path });
      await curlewOk(['verify', 'out/big-1.0.0.tar.gz'], { cwd: box.path });
    });
  }

  test('for a bundle: it says so, and there is no file under its name', async () => {
    await using box = await tree(ADDON);
    await using registry = await startRegistry({ 'big:1': image });
    const mirror = ['--registry-mirror', `registry.example=${registry.host}`];
    await curlewOk(['publish', 'big', '--to', 'store', '--release', 'v1', ...mirror], { cwd: box.path });
    await using _disk = await smallDisk(box, 'small');
    const words = ['bundle', 'installer.yaml', '--from', 'store', '-o', 'small/bundle.tar.gz'];
    const { exitCode, stderr } = await curlew(words, { cwd: box.path });
    assert.is(exitCode, 18, stderr);
    assert.equal(await readdir(box.at('small')), []);
  });

  test('on the node: install says so, and goes on when there is room', async () => {
    await using box = await tree(ADDON);
    await using registry = await startRegistry({ 'big:1': image });
    const mirror = ['--registry-mirror', `registry.example=${registry.host}`];
    await curlewOk(['publish', 'big', '--to', 'store', '--release', 'v1', ...mirror], { cwd: box.path });
    await curlewOk(['bundle', 'installer.yaml', '--from', 'store', '-o', 'bundle.tar.gz'], { cwd: box.path });
    const words = ['install', '--bundle', 'bundle.tar.gz', '--root', 'node', '--unconfined', '--skip-images'];
    {
      await using _disk = await smallDisk(box, 'node');
      const { exitCode, stderr } = await curlew(words, { cwd: box.path });
      assert.is(exitCode, 18, stderr);
    }
    assert.match(await curlewOk(words, { cwd: box.path }), /big +1\.0\.0 +installed/);
  });

  test('for a trial: the option that dev has is named', async () => {
    await using box = await tree({
      'addons/big/1.0.0/Manifest': '',
      'addons/big/1.0.0/install.sh': '# shellcheck shell=bash\nbig() { true; }\n',
      'addons/big/1.0.0/data': binaryLike(4_000_000, 'data', 1),
      'installer.yaml': ADDON['installer.yaml'],
    });
    await using _disk = await smallDisk(box, 'trial');
    for (const [command, option] of [
      [['dev', 'big', '--root', 'trial'], '--root'],
      [['install', '--from', 'out', '--installer', 'installer.yaml', '--root', 'trial', '--unconfined'], '--root'],
      [
        ['install', '--from', 'out', '--installer', 'installer.yaml', '--install-dir', 'trial/node', '--unconfined'],
        '--install-dir',
      ],
    ] as const) {
      const { exitCode, stderr } = await curlew(command, { cwd: box.path });
      assert.is(exitCode, 18, stderr);
      assert.match(stderr, `use another folder with ${option}`);
      assert.is(stderr.includes('--dry-run'), option !== '--root');
    }
  });

  test('on a node whose disk is full: no word of a lock, but of the disk', async () => {
    await using box = await tree();
    await using _disk = await smallDisk(box, 'node');
    await writeFile(box.at('node/all'), Buffer.alloc(4_000_000)).catch(() => undefined);
    const { message, hint } = await assert.rejectsWith(lockFolder(box.at('node')), 'NO_SPACE');
    assert.not.match(message, /lock/);
    assert.match(hint ?? '', `df -h ${box.at('node')}`);
    assert.equal(await readdir(box.at('node')), ['all']);
  });
} else {
  test.skip('all of them', reason);
}

test.run();
