/** Files of packages on a node that somebody has changed: what a run makes of them, and what verify tells. */
import { execa } from 'execa';
import {
  appendFile,
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { digestOf } from '../../src/core/digest.ts';
import type { VerifiedNode } from '../../src/runtime/history/verify-placed.ts';
import * as assert from '../support/assert.ts';
import { install, TRIAL } from '../support/install-command.ts';
import { boxWith } from '../support/node-bundles.ts';
import { trace, tracer } from '../support/node-install.ts';
import { noise } from '../support/packages.ts';
import { runCommand, runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import type { Tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('cli/installed-files', { timeoutMs: 120_000 });

const NODE = 'root/var/lib/curlew';
const AAA = `${NODE}/addons/aaa/1.0.0`;
const HOSTILE = 'aaa() { echo hostile >>"$TRACE"; }\n';
const SCRIPT = 'aaa() { echo right >>"$TRACE"; }\n# As long as the hostile one, at least.\n';
const LAYER = noise(2 << 20, 7);
const REAPPLY = [...TRIAL, '--reapply', '--key', 'our.pub', '--require-signed'];

/** An add-on is installed from a signed bundle. */
async function installed(): Promise<Tree> {
  const files = { 'install.sh': SCRIPT, 'data/x.yaml': 'x: 1\n', 'images/layer': LAYER };
  const box = await boxWith([{ name: 'aaa', version: '1.0.0', files }]);
  await runCommand(['keygen', 'our'], box.path);
  await runCommand(['sign', 'b.tar.gz', '--key', 'our.key'], box.path);
  const { exitCode, stderr } = await install(box, REAPPLY);
  assert.is(exitCode, 0, stderr);
  assert.equal(await trace(box), ['right']);
  return box;
}

type Change = (box: Tree, script: string) => Promise<unknown>;

/** Keeps size and times as they were. */
async function inSilence(path: string, change: (text: Buffer) => Buffer): Promise<void> {
  const { atime, mtime } = await stat(path);
  await writeFile(path, change(await readFile(path)));
  await utimes(path, atime, mtime);
}

const CHANGES: readonly (readonly [string, string, Change])[] = [
  [
    'a longer script, and another file shorter by as much',
    'install.sh',
    async (box, script) => {
      const { size } = await stat(script);
      await writeFile(script, HOSTILE);
      await appendFile(script, '#'.repeat(size - HOSTILE.length + 1));
      await writeFile(box.at(AAA, 'data/x.yaml'), 'x:1\n');
    },
  ],
  [
    'a script of the same size and time',
    'install.sh',
    async (_box, script) => inSilence(script, ({ length }) => Buffer.from(HOSTILE.padEnd(length, '#'))),
  ],
  [
    'a spec of the same size and time',
    'data/x.yaml',
    async (box) => inSilence(box.at(AAA, 'data/x.yaml'), () => Buffer.from('x: 2\n')),
  ],
  [
    'a large file of the same size and time',
    'images/layer',
    async (box) => inSilence(box.at(AAA, 'images/layer'), ({ length }) => noise(length, 8)),
  ],
  [
    'a link in place of a script',
    'install.sh',
    async (box, script) => {
      const { size } = await stat(script);
      await writeFile(box.at('hostile.sh'), HOSTILE.padEnd(size, '#'));
      await rm(script);
      await symlink(box.at('hostile.sh'), script);
    },
  ],
  [
    'a link to the right bytes, which can be exchanged',
    'install.sh',
    async (box, script) => {
      await rename(script, box.at('moved.sh'));
      await symlink(box.at('moved.sh'), script);
    },
  ],
  [
    'a hard link to another script',
    'install.sh',
    async (box, script) => {
      const { size } = await stat(script);
      await writeFile(box.at('hostile.sh'), HOSTILE.padEnd(size, '#'));
      await rm(script);
      await link(box.at('hostile.sh'), script);
    },
  ],
  [
    'a folder in place of a script',
    'install.sh',
    async (_box, script) => {
      await rm(script);
      await mkdir(script);
      await writeFile(`${script}/install.sh`, HOSTILE);
    },
  ],
  [
    'a pipe in place of a script',
    'install.sh',
    async (_box, script) => {
      await rm(script);
      await execa('mkfifo', [script]);
    },
  ],
  ['a script that everybody can write to', 'install.sh', async (_box, script) => chmod(script, 0o666)],
  ['a folder that everybody can write to', './', async (box) => chmod(box.at(AAA), 0o777)],
  [
    'a link in place of a folder',
    'data/',
    async (box) => {
      await rename(box.at(AAA, 'data'), box.at('moved'));
      await symlink(box.at('moved'), box.at(AAA, 'data'));
    },
  ],
  [
    'a link in place of the whole folder',
    './',
    async (box) => {
      await rename(box.at(AAA), box.at('moved'));
      await symlink(box.at('moved'), box.at(AAA));
    },
  ],
  [
    'another addon.json',
    'addon.json',
    async (box) =>
      inSilence(box.at(AAA, 'addon.json'), (text) => {
        return Buffer.from(text.toString().replace('"tool":"0.0.0"', '"tool":"0.0.1"'));
      }),
  ],
];

for (const [title, path, change] of CHANGES) {
  test(`${title}: none of it is used, and the next run puts it right`, async () => {
    await using box = await installed();
    await change(box, box.at(AAA, 'install.sh'));
    const told = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
    assert.is(told.exitCode, 15, told.stderr);
    assert.match(told.stdout, `addons/aaa/1.0.0/${path.replace('./', '')}`);
    const { exitCode, stderr } = await install(box, REAPPLY);
    assert.is(exitCode, 0, stderr);
    assert.equal(await trace(box), ['right']);
    assert.is(await readFile(box.at(AAA, 'data/x.yaml'), 'utf8'), 'x: 1\n');
    assert.ok((await readFile(box.at(AAA, 'images/layer'))).equals(LAYER));
    assert.is((await lstat(box.at(AAA, 'install.sh'))).mode & 0o777, 0o644);
    const after = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
    assert.equal([after.exitCode, after.stdout], [0, '1 package, 4 files, 2.1 MB'], after.stderr);
  });
}

const GIVEN = 'a script of another user is not run, though it holds the right bytes';
if (process.geteuid?.() === 0) {
  test(GIVEN, async () => {
    await using box = await installed();
    await chown(box.at(AAA, 'install.sh'), 65_534, 65_534);
    const told = await runCommand(['verify', '--installed', '--root', 'root', '--json'], box.path);
    const differences = (JSON.parse(told.stdout) as VerifiedNode).packages[0]?.differences;
    assert.equal([told.exitCode, differences], [15, [{ path: 'addons/aaa/1.0.0/install.sh', what: ['owner'] }]]);
    assert.is((await install(box, REAPPLY)).exitCode, 0);
    assert.is((await stat(box.at(AAA, 'install.sh'))).uid, 0);
  });
} else {
  test.skip(GIVEN, 'only root can give files away');
}

test('bits of the mode that a hook has set are told, and are no reason to extract anything', async () => {
  await using box = await installed();
  const { ino } = await stat(box.at(AAA, 'install.sh'));
  await chmod(box.at(AAA, 'install.sh'), 0o700);
  await writeFile(box.at(AAA, 'rendered'), 'by a hook');
  const told = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
  assert.match(told.stdout, /^mode {2}addons\/aaa\/1\.0\.0\/install\.sh\n1 package, .*; 1 difference$/);
  assert.is((await install(box, REAPPLY)).exitCode, 0);
  assert.is((await stat(box.at(AAA, 'install.sh'))).ino, ino);
});

test('an install folder that others can write to is refused before anything is run', async () => {
  await using box = await installed();
  await trace(box);
  for (const name of ['', 'addons', 'addons/aaa', 'runs', 'placed']) {
    const { mode } = await stat(box.at(NODE, name));
    await chmod(box.at(NODE, name), name === 'addons' ? 0o775 : 0o777);
    const { exitCode, stderr } = await install(box, REAPPLY);
    assert.is(exitCode, 25, stderr);
    assert.match(stderr, 'other users can write to it');
    const told = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
    assert.equal([told.exitCode, /other users can write to it/.test(told.stdout)], [15, true]);
    await chmod(box.at(NODE, name), mode & 0o7777);
  }
  assert.equal(await trace(box), []);
});

test('whatever the umask is, only its owner can write to what a run puts in place', async () => {
  const before = process.umask(0);
  try {
    await using box = await installed();
    for (const path of ['', 'addons', 'addons/aaa', 'addons/aaa/1.0.0', 'addons/aaa/1.0.0/data']) {
      assert.is((await stat(box.at(NODE, path))).mode & 0o777, 0o755, path);
    }
    const { ino } = await stat(box.at(AAA, 'install.sh'));
    assert.is((await install(box, REAPPLY)).exitCode, 0);
    assert.is((await stat(box.at(AAA, 'install.sh'))).ino, ino);
  } finally {
    process.umask(before);
  }
});

test('reset calls no uninstall hook out of a script that others can write to', async () => {
  const uninstall = 'aaa() { :; }\naaa_uninstall() { echo uninstalled >>"$TRACE"; }\n';
  await using box = await boxWith([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': uninstall } }]);
  assert.is((await install(box, TRIAL)).exitCode, 0);
  await chmod(box.at(AAA, 'install.sh'), 0o666);
  const { exitCode, stderr } = await runTraced(['reset', '--yes', '--unconfined', ...TRIAL], box);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, 'aaa-1.0.0 is no longer on this node or has changed; its hooks are not run');
  assert.equal(await trace(box), []);
});

test('a run after another whose files were changed since starts over', async () => {
  await using box = await boxWith([tracer('aaa', 'aaa_post_init() { [ -e "$TRACE-ok" ]; }')]);
  assert.is((await install(box, TRIAL)).exitCode, 20);
  await writeFile(box.at('trace-ok'), '');
  await writeFile(box.at(AAA, 'data/x.yaml'), 'x: 2\n');
  await trace(box);
  const plan = await install(box, [...TRIAL, '--dry-run']);
  const said = plan.stdout.replaceAll(/\s+/g, ' ');
  assert.match(said, 'its files on this node were changed: data/x.yaml (digest)', plan.stderr);
  assert.is((await install(box, TRIAL)).exitCode, 0);
  assert.equal((await trace(box)).slice(0, 2), ['aaa_pre_init 1', 'aaa 1']);
});

test('a node without a record of its files is proved once, and has one then', async () => {
  await using box = await installed();
  const record = box.at(NODE, 'placed/addons/aaa/1.0.0.json');
  assert.is((await stat(record)).mode & 0o777, 0o600);
  const { ino } = await stat(box.at(AAA, 'images/layer'));
  for (const spoil of [async () => rm(record), async () => writeFile(record, '{'), async () => chmod(record, 0o666)]) {
    await spoil();
    const told = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
    assert.equal([told.exitCode, /its files are not recorded/.test(told.stdout)], [15, true]);
    assert.is((await install(box, REAPPLY)).exitCode, 0);
    assert.is((await runCommand(['verify', '--installed', '--root', 'root'], box.path)).exitCode, 0);
  }
  assert.is((await stat(box.at(AAA, 'images/layer'))).ino, ino);
});

test('a record that says of files what is not so is no proof of them', async () => {
  await using box = await installed();
  const record = box.at(NODE, 'placed/addons/aaa/1.0.0.json');
  await writeFile(box.at(AAA, 'data/x.yaml'), 'x: 2\n');
  const text = await readFile(record, 'utf8');
  await writeFile(record, text.replace(/(\["data\/x\.yaml",420,5,")sha256:[0-9a-f]{64}/, `$1${digestOf('x: 2\n')}`));
  const told = await runCommand(['verify', '--installed', '--root', 'root'], box.path);
  assert.equal([told.exitCode, /the record of its files does not match its package/.test(told.stdout)], [15, true]);
  assert.is((await install(box, REAPPLY)).exitCode, 0);
  assert.is(await readFile(box.at(AAA, 'data/x.yaml'), 'utf8'), 'x: 1\n');
});

test('images that were changed in place are not loaded', async () => {
  await using box = await installed();
  await inSilence(box.at(AAA, 'images/layer'), ({ length }) => noise(length, 8));
  const env = { DOCKER_HOST: `unix://${box.at('none.sock')}` };
  const words = ['load-images', '--install-dir', NODE, '--runtime', 'docker'];
  const { exitCode, stderr } = await runTraced(words, box, env);
  assert.is(exitCode, 15, stderr);
  assert.match(stderr, 'addons/aaa/1.0.0/images/layer');
});

test.run();
