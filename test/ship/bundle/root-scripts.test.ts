import { execa } from 'execa';
import { copyFile, chmod, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import { BUNDLE_SCRIPTS } from '../../../src/core/layout.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { tree, type Tree } from '../../support/tree.ts';

const test = suite('ship/bundle/root-scripts');

/** Only says how it was called: no test here installs anything. */
const TOOL = `#!/usr/bin/bash
if [[ "$*" == --version ]]; then echo 1.2.3; else printf '[%s]' "$PWD" "$@"; fi
`;
/** All that the scripts may need of a system. */
const PROGRAMS = ['bash', 'dirname', 'head', 'sha256sum', 'sort', 'uname'];

async function unpacked(tool: string | Uint8Array = TOOL, sum: string = hexOf(digestOf(tool))): Promise<Tree> {
  const box = await tree({ 'a b/bin/curlew': tool, 'a b/bin/curlew.sha256': `${sum}  curlew\n`, 'here/.keep': '' });
  await chmod(box.at('a b/bin/curlew'), 0o755);
  for (const name of BUNDLE_SCRIPTS) {
    await copyFile('scripts/bundle/start.sh', box.at('a b', name));
    await chmod(box.at('a b', name), 0o755);
  }
  await mkdir(box.at('tools'));
  for (const name of PROGRAMS) await symlink(`/usr/bin/${name}`, box.at('tools', name));
  return box;
}

/** Puts a system's `getconf` into PATH. */
async function libcIs(box: Tree, answer: string): Promise<void> {
  await writeFile(box.at('tools/getconf'), `#!/usr/bin/bash\necho '${answer}'\n`, { mode: 0o755 });
}

interface Said {
  readonly code: number | undefined;
  readonly out: string;
  readonly err: string;
}

async function run(box: Tree, script: string, words: readonly string[] = [], env = {}): Promise<Said> {
  const { exitCode, stdout, stderr } = await execa('/usr/bin/bash', [box.at('a b', script), ...words], {
    cwd: box.at('here'),
    env: { PATH: box.at('tools'), ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  return { code: exitCode, out: stdout, err: stderr };
}

test('the tool gets to know how its tasks are called, in the words of whoever called', async () => {
  await using box = await unpacked(
    `#!/usr/bin/bash\nif [[ "$*" == --version ]]; then echo 1; else printf '%s' "$CURLEW_CALLED"; fi\n`,
  );
  await libcIs(box, 'glibc 2.28');
  assert.is((await run(box, 'install.sh')).out, box.at('a b/tasks.sh'));
  assert.is((await run(box, '../a b/tasks.sh')).out, `${box.at('a b')}/tasks.sh`);
});

for (const name of ['install', 'join', 'upgrade']) {
  test(`${name}.sh runs the tool over its own folder and leaves words and folder to the caller`, async () => {
    await using box = await unpacked();
    await libcIs(box, 'glibc 2.28');
    const { code, out, err } = await run(box, `${name}.sh`, ['--root', 'x y']);
    assert.is(code, 0, err);
    assert.is(out, `[${box.at('here')}][${name}][--dir][${box.at('a b')}][--require-statement][--root][x y]`);
  });
}

test('tasks.sh runs any command, and gives the bundle to those that look at packages', async () => {
  await using box = await unpacked();
  assert.is((await run(box, 'tasks.sh', ['status', '--json'])).out, `[${box.at('here')}][status][--json]`);
  const { out } = await run(box, 'tasks.sh', ['load-images', '-q']);
  assert.is(out, `[${box.at('here')}][load-images][--dir][${box.at('a b')}][-q]`);
  const checks = await run(box, 'tasks.sh', ['preflight', '--is-join']);
  assert.is(checks.out, `[${box.at('here')}][preflight][--dir][${box.at('a b')}][--is-join]`);
  const other = await run(box, 'tasks.sh', ['preflight', '--bundle=x']);
  assert.is(other.out, `[${box.at('here')}][preflight][--bundle=x]`);
  const kurl = await run(box, 'tasks.sh', ['load_images', 'airgap']);
  assert.is(kurl.out, `[${box.at('here')}][load-images][--dir][${box.at('a b')}][airgap]`);
});

for (const shell of ['bash', 'dash']) {
  test(`read from a pipe by ${shell}, a script says that it must be run by its path, and runs nothing`, async () => {
    const { exitCode, stdout, stderr } = await execa(`/usr/bin/${shell}`, ['-s', 'airgap'], {
      inputFile: 'scripts/bundle/start.sh',
      reject: false,
    });
    assert.is(exitCode, 64);
    assert.is(stdout, '');
    assert.match(stderr, /^this script was read from a pipe.*\.\/install\.sh airgap$/);
  });
}

test('a shell that is not bash says so', async () => {
  const { exitCode, stderr } = await execa('/usr/bin/dash', ['scripts/bundle/start.sh', 'airgap'], { reject: false });
  assert.is(exitCode, 64);
  assert.match(stderr, /start\.sh: this is a script for bash: run it with bash/);
});

test('the scripts find their own folder, whatever CDPATH and their own path say', async () => {
  await using box = await unpacked();
  await mkdir(box.at('other/a b'), { recursive: true });
  const { stdout } = await execa('/usr/bin/bash', ['a b/install.sh'], {
    cwd: box.path,
    env: { PATH: box.at('tools'), CDPATH: box.at('other') },
    extendEnv: false,
  });
  assert.is(stdout, `[${box.path}][install][--dir][${box.at('a b')}][--require-statement]`);
});

for (const [libc, passes] of [
  ['glibc 2.17', false],
  ['glibc 2.9', false],
  ['glibc 2.28', true],
  ['glibc 2.100', true],
] as const) {
  test(`on a system with ${libc} the tool is ${passes ? 'run' : 'not even looked at'}`, async () => {
    await using box = await unpacked(TOOL, passes ? undefined : 'damaged');
    await libcIs(box, libc);
    const { code, err } = await run(box, 'install.sh');
    assert.is(code, passes ? 0 : 22, err);
    if (!passes)
      assert.match(err, `install.sh: this system has ${libc}, and the curlew of this bundle needs glibc 2.28`);
  });
}

for (const [title, sum] of [
  ['is not the one that the bundle was made with', '0'.repeat(64)],
  ['has a sum that is no sum', 'none'],
] as const) {
  test(`a tool that ${title} is not run`, async () => {
    await using box = await unpacked('#!/usr/bin/bash\n: >ran\n', sum);
    const { code, err } = await run(box, 'upgrade.sh');
    assert.is(code, 15);
    assert.match(err, /^upgrade\.sh: .*a b\/bin\/curlew is damaged.*Unpack the bundle again/);
    assert.equal(await readdir(box.at('here')), ['.keep']);
  });
}

for (const [title, openssl, programs, code] of [
  ['is whole by OpenSSL is run without another sum', `echo "${hexOf(digestOf(TOOL))} *curlew"`, [], 0],
  ['OpenSSL has no sum for is run by its other sum', 'exit 1', ['sha256sum'], 0],
  ['OpenSSL says something else of is run by its other sum', 'echo "SHA2-256(curlew)= 00"', ['sha256sum'], 0],
  ['is damaged by both is not run', `echo "${'0'.repeat(64)} *curlew"`, [], 15],
] as const) {
  test(`a tool that ${title}`, async () => {
    await using box = await unpacked();
    await rm(box.at('tools/sha256sum'));
    for (const name of programs) await symlink(`/usr/bin/${name}`, box.at('tools', name));
    await writeFile(box.at('tools/openssl'), `#!/usr/bin/bash\n${openssl}\n`, { mode: 0o755 });
    const said = await run(box, 'tasks.sh', ['status']);
    assert.is(said.code, code, said.err);
  });
}

test('an unpacked delta that holds no tool says what to run in place of its scripts', async () => {
  await using box = await unpacked();
  await rm(box.at('a b/bin/curlew'));
  await writeFile(box.at('a b/contents.json'), '{}');
  const { code, err } = await run(box, 'install.sh');
  assert.is(code, 22);
  assert.match(err, /a b is an unpacked delta, without a curlew: .*curlew install --bundle/);
});

test('a tool that cannot be executed is distinguished from a damaged one', async () => {
  await using box = await unpacked();
  await chmod(box.at('a b/bin/curlew'), 0o644);
  const { code, err } = await run(box, 'join.sh');
  assert.is(code, 25);
  assert.match(err, /mounted noexec, or its mode was lost\. Unpack the bundle/);
});

test('a working folder that was removed is named, not the system', async () => {
  await using box = await unpacked();
  await mkdir(box.at('gone'));
  const line = 'rmdir "$PWD"; mkdir "$PWD"; exec bash "$0" versions';
  const ended = await execa('bash', ['-c', line, box.at('a b/tasks.sh')], { cwd: box.at('gone'), reject: false });
  assert.is(ended.exitCode, 25, ended.stderr);
  assert.match(ended.stderr, /^tasks\.sh: the working folder was removed: change to another one; cd "\$PWD"/m);
  assert.not.match(ended.stderr, /does not run on this system/);
});

test('a tool for another architecture, or without its libraries, is named with what the system says', async () => {
  // The head of an ELF executable for a machine that there is none of.
  await using box = await unpacked(Buffer.from(`7f454c46020101${'00'.repeat(9)}0200ffff${'00'.repeat(44)}`, 'hex'));
  const { code, err } = await run(box, 'install.sh');
  assert.is(code, 22);
  assert.match(err, /does not run on this system .*the architecture of the bundle, glibc 2\.28/);
  assert.match(err, /Exec format error/);
});

test.run();
