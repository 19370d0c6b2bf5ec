import { requirePrograms } from '../../../src/runtime/host/host-facts.ts';
import { plainPlace } from '../../../src/runtime/node/node-place.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, writeTree, type Tree } from '../../support/tree.ts';

const test = suite('runtime/exec-folder');

/** A box whose table of mounts says how its folder `disk` is mounted; no program may run from anywhere else. */
async function mounted(options: string): Promise<Tree> {
  const box = await tree({ 'disk/there/.keep': '' });
  const lines = ['1 0 8:1 / / rw,noexec - ext4 /dev/a rw', `2 1 8:2 / ${box.at('disk')} ${options} - ext4 /dev/b rw`];
  await writeTree(box.path, { 'proc/self/mountinfo': `${lines.join('\n')}\n` });
  return box;
}

for (const [folder, option] of [
  ['disk', '--install-dir'],
  ['disk/there', '--root'],
  ['disk/not/there', '--install-dir'],
] as const) {
  test(`${folder} is refused when it is mounted noexec, with both ways out`, async ({ signal }) => {
    await using box = await mounted('rw,nosuid,noexec,relatime');
    const refused = requirePrograms(plainPlace(box.at(folder), option), { proc: box.at('proc'), signal });
    const error = await assert.rejectsWith(refused, 'FILE_UNUSABLE', /mounted noexec/);
    assert.match(error.hint ?? '', `with ${option}, or run: mount -o remount,exec ${box.at('disk')}`);
  });

  test(`${folder} is taken when only its neighbours are mounted noexec`, async ({ signal }) => {
    await using box = await mounted('rw,relatime');
    await requirePrograms(plainPlace(box.at(folder)), { proc: box.at('proc'), signal });
  });
}

test('where the kernel does not say how anything is mounted, nothing is refused', async ({ signal }) => {
  await using box = await mounted('rw,noexec');
  await requirePrograms(plainPlace(box.at('disk')), { proc: box.at('none'), signal });
});

test.run();
