import { execa } from 'execa';
import { spawn } from 'node:child_process';
import { chmod, copyFile, symlink } from 'node:fs/promises';
import { collect } from '../support/bytes.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('bundle/root-scripts');

/** Only says how it was called: no test here installs anything. */
const TOOL = 'console.log(JSON.stringify([process.cwd(), ...process.argv.slice(2)]));\n';

async function unpacked(files: Readonly<Record<string, string>> = {}): Promise<Tree> {
  const box = await tree({ 'a b/bin/curlew': TOOL, 'tools/.keep': '', 'here/.keep': '', ...files });
  for (const name of ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh']) {
    await copyFile(`scripts/bundle/${name}`, box.at('a b', name));
    await chmod(box.at('a b', name), 0o755);
  }
  for (const name of ['bash', 'dirname']) await symlink(`/usr/bin/${name}`, box.at('tools', name));
  return box;
}

async function run(
  box: Tree,
  script: string,
  words: readonly string[] = [],
): Promise<{ code: number; out: string; err: string }> {
  const child = spawn('/usr/bin/bash', [box.at('a b', script), ...words], {
    cwd: box.at('here'),
    env: { PATH: box.at('tools') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exit = new Promise<number>((resolve) => {
    child.on('close', (code) => {
      resolve(code ?? -1);
    });
  });
  const [out, err, code] = await Promise.all([collect(child.stdout), collect(child.stderr), exit]);
  return { code, out: out.toString(), err: err.toString() };
}

test('install.sh runs the tool over its own folder and leaves words and folder to the caller', async () => {
  await using box = await unpacked();
  await symlink(process.execPath, box.at('tools/node'));
  const { code, out } = await run(box, 'install.sh', ['--root', 'x y']);
  assert.is(code, 0);
  assert.equal(JSON.parse(out), [box.at('here'), 'install', '--dir', box.at('a b'), '--root', 'x y']);
});

test('install.sh finds its own folder, whatever CDPATH and its own path say', async () => {
  await using box = await unpacked({ 'other/a b/.keep': '' });
  await symlink(process.execPath, box.at('tools/node'));
  const { stdout } = await execa('/usr/bin/bash', ['a b/install.sh'], {
    cwd: box.path,
    env: { PATH: box.at('tools'), CDPATH: box.at('other') },
    extendEnv: false,
  });
  assert.equal(JSON.parse(stdout), [box.path, 'install', '--dir', box.at('a b')]);
});

test('install.sh says which Node.js is needed when there is none, or an old one', async () => {
  await using none = await unpacked();
  const missing = await run(none, 'install.sh');
  assert.is(missing.code, 22);
  assert.match(missing.err, 'Node.js 20.20 or newer is needed');

  await using old = await unpacked({ 'tools/node': '#!/usr/bin/bash\nexit 1\n' });
  assert.is((await run(old, 'install.sh')).code, 22);
});

for (const name of ['join.sh', 'upgrade.sh', 'tasks.sh']) {
  test(`${name} says what it cannot do`, async () => {
    await using box = await unpacked();
    const { code, err } = await run(box, name);
    assert.is(code, 64);
    assert.match(err, `${name}: `);
    assert.match(err, 'not supported');
  });
}

test.run();
