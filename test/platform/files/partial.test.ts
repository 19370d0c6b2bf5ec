import { execa } from 'execa';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { ownOwner } from '../../../src/platform/files/owner.ts';
import { partialName, sweepPartials, writeAside } from '../../../src/platform/files/partial.ts';
import * as assert from '../../support/assert.ts';
import { compiledModule } from '../../support/compiled.ts';
import { deadPartialName, partialNameOf } from '../../support/partials.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('files/partial');

const PARTIAL = compiledModule('src/platform/files/partial.ts');
const DAY = 24 * 60 * 60 * 1000;

/** A process that makes a partial file in a folder, says so, and waits to be killed. */
async function writerIn(folder: string, command: readonly string[] = []) {
  const script = `
    import { writeFileSync } from 'node:fs';
    import { join } from 'node:path';
    const { partialName } = await import(${JSON.stringify(PARTIAL)});
    writeFileSync(join(${JSON.stringify(folder)}, partialName()), 'half');
    console.log('written');
    setInterval(() => undefined, 1000);`;
  const [program, ...words] = [...command, process.execPath];
  const child = execa(program, [...words, '--input-type=module', '-e', script], {
    reject: false,
    buffer: false,
    stdin: 'ignore',
  });
  await once(child.stdout, 'data');
  // Returned in an object: a promise for a child would wait for its end.
  return {
    pid: child.pid,
    kill: async (): Promise<void> => {
      child.kill('SIGKILL');
      await child;
    },
  };
}

test('names never meet, and are short enough for every file system', () => {
  const names = new Set(Array.from({ length: 1000 }, partialName));
  assert.is(names.size, 1000);
  assert.ok([...names].every((name) => name.length < 100));
});

test('a file appears complete under its name, and a failure before that leaves nothing', async () => {
  await using box = await tree();
  await writeFile(box.at(deadPartialName()), 'half');
  const named = await writeAside(
    box.path,
    0o600,
    async (file) => file.writeFile('whole'),
    async (partial) => {
      assert.is(await readFile(partial, 'utf8'), 'whole');
      await rename(partial, box.at('a'));
      return 'named';
    },
  );
  assert.is(named, 'named');
  const fails = async (): Promise<never> => {
    throw new Error('no');
  };
  const nothing = async (): Promise<void> => undefined;
  for (const [write, name] of [
    [fails, nothing],
    [nothing, fails],
  ] as const) {
    const said = await writeAside(box.path, 0o600, write, name).catch((error: unknown) => String(error));
    assert.is(said, 'Error: no');
  }
  assert.equal(await readdir(box.path), ['a']);
});

test('what a killed process left is removed; what a running one writes stays', async () => {
  await using box = await tree();
  const [killed, running] = [await writerIn(box.path), await writerIn(box.path)];
  await killed.kill();
  const mine = partialName();
  await writeFile(box.at(mine), 'half');
  await sweepPartials(box.path, { now: Date.now() + 9 * DAY });
  const left = await readdir(box.path);
  assert.is(left.length, 2);
  assert.ok(left.includes(mine));
  assert.ok(left.some((name) => name.includes(`-${running.pid}-`)));
  await running.kill();
  await sweepPartials(box.path);
  assert.equal(await readdir(box.path), [mine]);
});

test('a pid that another process has by now does not protect a file', async () => {
  await using box = await tree();
  await writeFile(box.at(deadPartialName()), 'half');
  await sweepPartials(box.path);
  assert.equal(await readdir(box.path), []);
});

test('a file of a machine or container that cannot be seen is removed after a day without a write', async () => {
  await using box = await tree();
  const foreign = partialNameOf({ place: '0123456789ab' });
  await writeFile(box.at(foreign), 'half');
  await sweepPartials(box.path, { now: Date.now() + DAY - 60_000 });
  assert.equal(await readdir(box.path), [foreign]);
  await sweepPartials(box.path, { now: Date.now() + DAY + 60_000 });
  assert.equal(await readdir(box.path), []);
});

test('other files, and folders and links of such a name, are left alone', async () => {
  await using box = await tree({ '.partial-x': '', '.curlew-partial-x': '', 'b.tar.gz': '', '.b.tar.gz.partial': '' });
  const [folder, link] = [partialNameOf({ place: '0123456789ab' }), partialNameOf({ place: 'ba9876543210' })];
  await mkdir(box.at(folder));
  await symlink(box.at('b.tar.gz'), box.at(link));
  const before = await readdir(box.path);
  await sweepPartials(box.path, { now: Date.now() + 9 * DAY });
  assert.equal(await readdir(box.path), before);
  await sweepPartials(box.at('none'));
});

test('folders of such a name are removed where whoever asks makes them', async () => {
  const [dead, running] = [deadPartialName(), partialName()];
  await using box = await tree({ [`${dead}/a/b`]: '', [`${running}/a`]: '', 'other/a': '' });
  await sweepPartials(box.path, { folders: true });
  assert.equal((await readdir(box.path)).toSorted(), [running, 'other'].toSorted());
});

if (process.getuid?.() !== 0) {
  test.skip('a process in another pid namespace', 'making a namespace needs root');
} else {
  test('a file that a process in another container writes is not taken for a dead one’s', async () => {
    await using box = await tree();
    const inside = await writerIn(box.path, ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']);
    const [name = ''] = await readdir(box.path);
    assert.not.match(name, ownOwner().place);
    await sweepPartials(box.path);
    assert.equal(await readdir(box.path), [name]);
    await inside.kill();
  });
}

test.run();
