/** Packages that are not well: each ends in one error that says who, which hook, where, what it printed, and what to do. */
import { execa } from 'execa';
import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { memorySource, readIndex } from '../../src/formats/archive/read.ts';
import { formatAddonJson } from '../../src/core/package.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew, startCurlew, type Outcome } from '../support/curlew.ts';
import { bundleOf, specOf } from '../support/node-bundles.ts';
import { traced, tracer } from '../support/node-install.ts';
import { archiveOf, packageOf } from '../support/packages.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

// not fast: starts the command again and again
const test = suite('cli: bad input to a run', { timeoutMs: 240_000 });
const NODE = 'root/var/lib/curlew';
const SCRIPT = /addons\/bad\/1\.0\.0\/install\.sh/.source;

function words(box: Tree, ...more: readonly string[]): readonly string[] {
  return ['install', '--bundle', 'b.tar.gz', '--root', box.at('root'), '--unconfined', ...more];
}

async function install(box: Tree, ...more: readonly string[]): Promise<Outcome> {
  return curlew(words(box, ...more), traced(box));
}

/** One error, with this status; nothing that could drive a terminal. */
function oneError({ exitCode, stdout, stderr }: Outcome, status: number): void {
  assert.equal([exitCode, stdout], [status, ''], stderr);
  assert.is(stderr.split('\n').filter((line) => /^error [A-Z_]+: /.test(line)).length, 1, stderr);
  assert.not.match(stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
}

const AGAIN = /hint: the complete output is in \S+\.log; fix the cause, then run the same command again/;

/** Scripts of an add-on `bad`; `where` follows on `error HOOK_FAILED: bad: `. */
const SCRIPTS: readonly (readonly [title: string, script: string, where: string, printed: string])[] = [
  [
    'a syntax error',
    'bad() {\n  if true; then\n}\n',
    `look-up failed: \\S*${SCRIPT}:3: syntax error near unexpected token`,
    String.raw`install\.sh: line 3: syntax error`,
  ],
  [
    'set +e at its end',
    'bad() {\n  echo about to fail\n  false\n  echo never\n}\nset +e\ntrap - ERR',
    `bad failed with status 1 at \\S*${SCRIPT}:3 in bad: false`,
    'about to fail',
  ],
  [
    'exit 0 in a hook',
    'bad() {\n  echo leaving\n  deep\n}\ndeep() {\n  exit 0\n}\n',
    `bad called exit before its end at \\S*${SCRIPT}:6 in deep: exit 0: a hook must return`,
    'leaving',
  ],
  [
    'exit 0 at its top',
    'bad() { :; }\necho leaving\nexit\n',
    `look-up called exit before its end while \\S*${SCRIPT} was read at \\S*${SCRIPT}:3: exit 0: a hook must return`,
    'leaving',
  ],
  [
    'exit 7 after a failure that was handled',
    'bad() {\n  (exit 3) || echo handled\n  exit 7\n}\n',
    `bad failed with status 7 at \\S*${SCRIPT}:3 in bad: exit 7`,
    'handled',
  ],
  [
    'control sequences',
    String.raw`bad() {
  printf '\033[2J\033]0;title\007\033[31mred\033[0m\b\r\n\302\233x\n'
  return 3
}`,
    `bad failed with status 3 at \\S*${SCRIPT}:3 in bad: return 3`,
    'red',
  ],
  [
    'a failure at its top, on the second reading only',
    'bad() { :; }\necho reading; [ "${SEEN-}" != yes ]\nbad_pre_init() { SEEN=yes; }\n',
    `bad failed while \\S*${SCRIPT} was read with status 1 at \\S*${SCRIPT}:2: \\[ "\\$\\{SEEN-\\}" != yes`,
    'reading',
  ],
];

for (const [title, script, where, printed] of SCRIPTS) {
  test(`an install.sh with ${title}`, async () => {
    await using box = await tree();
    const bad = { name: 'bad', version: '1.0.0', files: { 'install.sh': script } };
    await writeFile(box.at('b.tar.gz'), bundleOf([tracer('aaa'), bad]));
    const ended = await install(box);
    oneError(ended, 20);
    assert.match(ended.stderr, new RegExp(`^error HOOK_FAILED: bad: ${where}`, 'm'));
    const output = /last lines of its output:\n((?: {4}.*\n)+)/.exec(ended.stderr)?.[1] ?? '';
    assert.match(output, new RegExp(`^ {4}.*${printed}`, 'm'), ended.stderr);
    assert.match(ended.stderr, AGAIN);
  });
}

test('a hook that never ends: the time it may take is told, with what it was doing', async () => {
  await using box = await tree();
  const script = 'bad() {\n  echo begun\n  endless\n}\nendless() {\n  while :; do sleep 1000; done\n}\n';
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'bad', version: '1.0.0', files: { 'install.sh': script } }]));
  const ended = await install(box, '--hook-timeout', '10s');
  oneError(ended, 20);
  const where = `bad took longer than its limit of 10 s and was terminated in endless, which begins at \\S*${SCRIPT}:5: sleep 1000`;
  assert.match(ended.stderr, new RegExp(`^error HOOK_FAILED: bad: ${where}`, 'm'));
  assert.match(ended.stderr, /last lines of its output:\n {4}begun\n/);
  assert.match(ended.stderr, /run the same command again, with a longer --hook-timeout if it needs one/);
});

test('a hook that never ends: Ctrl-C tells what it was doing, and how to go on', async () => {
  await using box = await tree();
  const script = 'bad() {\n  echo begun; touch "$DIR/ready"\n  sleep 1000\n}\n';
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'bad', version: '1.0.0', files: { 'install.sh': script } }]));
  const child = startCurlew(words(box, '--quiet'), traced(box));
  await appears(box.at(NODE, 'ready'), child);
  child.kill('SIGINT');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 130, stderr);
  assert.match(
    stderr,
    new RegExp(`^bad: bad was canceled in bad, which begins at \\S*${SCRIPT}:1: (?:sleep|touch) .*\n`),
    stderr,
  );
  assert.match(
    stderr,
    /last lines of its output:\n {4}begun\n(?: {4}.*\n)* {2}hint: run the same command again, or curlew resume --root \S+(?: --unconfined)?, to continue/,
  );
});

test('a process left in the background is ended, named, and no failure', async () => {
  await using box = await tree();
  // Until it is sleep, it has the name of the shell that it came from.
  const script = 'bad() { sleep 1000 & until [ "$(</proc/$!/comm)" = sleep ]; do :; done; }';
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'bad', version: '1.0.0', files: { 'install.sh': script } }]));
  const { exitCode, stderr } = await install(box);
  assert.is(exitCode, 0, stderr);
  assert.match(stderr, /bad: bad left processes running, which were terminated: sleep/);
});

test('a byte flipped anywhere in a bundle is told with the file that it is in, and nothing is put in place', async () => {
  await using box = await tree();
  const good = bundleOf([tracer('aaa', `# ${'x'.repeat(300)}`)]);
  const index = await readIndex(memorySource('b', good), { signal: never });
  const payload = index.entries.find(({ path }) => path.endsWith('install.sh'))?.offset ?? 0;
  for (const [what, at, said] of [
    ['payload', payload + 30, /b\.tar\.gz: .*addons\/aaa\/1\.0\.0\/install\.sh/],
    ['table of contents', good.byteLength - 51 - 60, /b\.tar\.gz/],
    ['footer', good.byteLength - 30, /b\.tar\.gz/],
  ] as const) {
    const bytes = Buffer.from(good);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await writeFile(box.at('b.tar.gz'), bytes);
    const ended = await install(box, '--quiet');
    assert.ok(ended.exitCode === 15 || ended.exitCode === 16, `${what}: ${ended.stderr}`);
    oneError(ended, ended.exitCode);
    assert.match(ended.stderr, said, what);
    assert.match(ended.stderr, /hint: .*(?:again|fetch)/, what);
    assert.equal(await readdir(box.at(NODE, 'addons')).catch(() => []), [], what);
  }
  await writeFile(box.at('b.tar.gz'), good);
  assert.is((await install(box, '--quiet')).exitCode, 0);
});

test('a package whose addon.json names another version is told, and no folder is made', async () => {
  await using box = await tree();
  const { addon } = packageOf('aaa', '1.0.0', [{ path: 'install.sh', data: 'aaa() { :; }' }]);
  const spec = { path: 'installer.yaml', data: specOf([{ name: 'aaa', version: '2.0.0' }]) };
  const moved = { path: 'addons/aaa/2.0.0/addon.json', data: formatAddonJson(addon) };
  await writeFile(box.at('b.tar.gz'), archiveOf([spec, moved]).bytes);
  const ended = await install(box);
  oneError(ended, 16);
  assert.match(ended.stderr, /b\.tar\.gz: addons\/aaa\/2\.0\.0\/addon\.json describes aaa-1\.0\.0/);
  assert.match(ended.stderr, /hint: build or fetch the package again/);
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
});

test('a working folder that was removed is said as such where one is needed, and nothing is a bug', async () => {
  await using box = await tree({ 'gone/x': '' });
  const script = 'rm x; rmdir "$PWD"; exec "$0" "$@"';
  for (const word of ['lint', 'status', '__complete', '--version', '--help']) {
    const words = ['-c', script, process.execPath, MAIN, word];
    const { stderr, exitCode } = await execa('bash', words, { cwd: box.at('gone'), reject: false });
    if (word.startsWith('--')) assert.is(exitCode, 0, stderr);
    else {
      assert.is(exitCode, 25, stderr);
      assert.match(stderr, 'error FILE_UNUSABLE: cannot read the working folder: it was removed');
      assert.match(stderr, 'hint: change to another folder');
    }
    await mkdir(box.at('gone'));
    await writeFile(box.at('gone/x'), '');
  }
});

test('a second installer at once is told which process is at work, and what to do', async () => {
  await using box = await tree();
  const slow = 'bad() { touch "$DIR/ready"; until [ -e "$DIR/go" ]; do sleep 0.01; done; }';
  await writeFile(box.at('b.tar.gz'), bundleOf([{ name: 'bad', version: '1.0.0', files: { 'install.sh': slow } }]));
  const first = startCurlew(words(box, '--quiet'), traced(box));
  await appears(box.at(NODE, 'ready'), first);
  const second = await install(box, '--quiet');
  oneError(second, 19);
  assert.match(second.stderr, `another run is in progress (process ${first.pid ?? 0})`);
  assert.match(second.stderr, 'hint: wait until it ends, or terminate it');
  await writeFile(box.at(NODE, 'go'), '');
  assert.is((await first).exitCode, 0);
  assert.is((await readRecords(join(box.path, NODE))).applied['bad']?.finished, true);
});

test.run();
