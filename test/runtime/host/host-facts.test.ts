import { mkdir, stat, writeFile } from 'node:fs/promises';
import { memoryFacts, mountsOf } from '../../../src/runtime/host/host-facts.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('runtime/host-facts');

test('paths of one file system are told together, whether they exist or not', async ({ signal }) => {
  await using box = await tree({ 'a/file': 'x' });
  const wanted = [box.at('a'), box.at('a/not/there'), box.at('a/file/below')];
  const { mounts, points } = await mountsOf(wanted, { signal });
  const [mount, ...more] = mounts;
  assert.is(new Set(points.values()).size, 1);
  assert.equal(more, []);
  assert.equal(mount?.paths, wanted);
  assert.ok(box.path.startsWith(mount?.mountPoint === '/' ? '/' : `${mount?.mountPoint}/`));
  assert.ok((mount?.free ?? -1) >= 0 && (mount?.total ?? 0) >= (mount?.free ?? 0));
});

test('two mounts of one file system share their room, and nothing is linked from one to the other', async ({
  signal,
}) => {
  await using box = await tree({});
  await mkdir(box.at('one'));
  await mkdir(box.at('two'));
  await mkdir(box.at('proc/self'), { recursive: true });
  const lines = ['one', 'two'].map((name) => `1 1 9:9 / ${box.at(name)} rw - ext4 /dev/x rw`);
  await writeFile(box.at('proc/self/mountinfo'), lines.join('\n'));
  const wanted = ['one/x', 'one/y', 'two/z'].map((name) => box.at(name));
  const { mounts, points } = await mountsOf(wanted, { proc: box.at('proc'), signal });
  assert.equal(
    mounts.map(({ mountPoint, paths }) => [mountPoint, paths]),
    [[box.at('one'), wanted]],
  );
  assert.equal([...points.values()], [box.at('one'), box.at('one'), box.at('two')]);
});

test('without a table of mounts file systems are told apart by their number', async ({ signal }) => {
  await using box = await tree({});
  const wanted = [box.at('x'), box.at('y')];
  const { mounts, points } = await mountsOf(wanted, { proc: box.at('none'), signal });
  const [mount] = mounts;
  assert.is(mount?.device, String((await stat(box.path)).dev));
  assert.is(mount?.mountPoint, box.path);
  assert.equal(
    [...points],
    wanted.map((path) => [path, mount?.device]),
  );
});

test('memory is told in bytes, and not at all where the kernel does not say', async ({ signal }) => {
  await using box = await tree({ meminfo: 'MemTotal:  2048 kB\nMemFree: 1 kB\nMemAvailable:    1024 kB\n' });
  assert.equal(await memoryFacts({ proc: box.path, signal }), { total: 2 << 20, available: 1 << 20 });
  assert.is(await memoryFacts({ proc: box.at('none'), signal }), undefined);
});

test.run();
