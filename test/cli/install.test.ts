import { execa } from 'execa';
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { membersOf } from '../../src/platform/process/process-tree.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew, curlewOk, startCurlew, type Outcome } from '../support/curlew.ts';
import { boxWith, specOf } from '../support/node-bundles.ts';
import { traced, tracer, tracerPackage } from '../support/node-install.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import type { RunResult } from '../../src/runtime/run/run-result.ts';

// not fast: hundreds of hooks
const test = suite('cli/install', { timeoutMs: 120_000 });

function words(box: Tree, more: readonly string[]): readonly string[] {
  return ['install', '--root', box.at('root'), '--unconfined', ...more];
}

async function install(box: Tree, ...more: string[]): Promise<Outcome> {
  return curlew(words(box, more), traced(box));
}

const SETTINGS = `aaa() { [ "$AAA_GREETING" = '$(id) "x"' ]; [ "$AAA_VERSION" = 1.0.0 ]; [ "$AIRGAP$OFFLINE_DOCKER_INSTALL" = 11 ]; }`;

test('a bundle is installed with its settings; a second run says that it is already applied', async () => {
  const spec = `${specOf([{ name: 'aaa', version: '1.0.x' }])}    greeting: '$(id) "x"'\n`;
  await using box = await boxWith([tracer('aaa', SETTINGS)], spec);
  const first = await install(box, '--bundle', 'b.tar.gz');
  assert.is(first.exitCode, 0, first.stderr);
  assert.match(first.stdout, /^aaa {2}1\.0\.0 {2}installed \(it was not installed\), [\d.]+ s\nimages not loaded: /);
  assert.match(first.stderr, 'aaa 1.0.0: install: done');
  const second = await install(box, '--bundle', 'b.tar.gz', '--json', '--quiet');
  assert.is(second.stderr, '');
  const result = JSON.parse(second.stdout) as RunResult;
  assert.equal(
    result.addons.map(({ name, outcome }) => [name, outcome]),
    [['aaa', 'already applied']],
  );
  await stat(box.at('root/var/lib/curlew/addons/aaa/1.0.0/install.sh'));
});

test('a spec of the operator goes before that of the bundle', async () => {
  await using box = await boxWith([tracer('aaa'), tracer('bbb')]);
  await writeFile(box.at('mine.yaml'), specOf([{ name: 'bbb', version: 'latest' }]));
  const { stdout } = await install(box, '--bundle', 'b.tar.gz', '--installer', 'mine.yaml', '--install-dir', '/opt/c');
  assert.match(stdout, /^bbb {2}1\.0\.0 {2}installed/);
  await stat(box.at('root/opt/c/records.json'));
});

test('an unpacked bundle whose packages a node has taken is to be unpacked again', async ({ signal }) => {
  await using box = await tree({ 'i.yaml': specOf([{ name: 'aaa', version: '1.0.0' }]) });
  await publishTestPackages(box, [tracerPackage('aaa')], signal);
  const run = async (...more: readonly string[]): Promise<Outcome> => runTraced(more, box);
  assert.is((await run('bundle', 'i.yaml', '--from', 'store', '-o', 'real.tar.gz')).exitCode, 0);
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xzf', box.at('real.tar.gz'), '-C', box.at('unpacked')]);
  assert.is((await run(...words(box, ['--dir', 'unpacked']))).exitCode, 0);
  assert.is((await run('uninstall', 'aaa', '--yes', '--root', box.at('root'), '--unconfined')).exitCode, 0);
  await rm(box.at('unpacked/addons/aaa'), { recursive: true });
  const { exitCode, stderr } = await run(...words(box, ['--dir', 'unpacked']));
  assert.is(exitCode, 14);
  assert.match(stderr, /hint: an install from this folder has moved its files .* unpack the bundle again with tar$/);
});

test('an unpacked bundle is installed', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  assert.match((await install(box, '--dir', 'unpacked')).stdout, /^aaa {2}1\.0\.0 {2}installed/);
  assert.match((await install(box, '--dir', 'unpacked')).stdout, /^aaa {2}1\.0\.0 {2}already applied/);
  // A trial has not taken its files.
  assert.match(
    (await install(box, '--dir', 'unpacked', '--install-dir', '/opt/other')).stdout,
    /^aaa {2}1\.0\.0 {2}installed/,
  );
});

test('a store is installed from, and so is a bundle that was made of it', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
  await publishTestPackages(box, [tracerPackage('aaa')], signal);
  assert.match(
    (await install(box, '--from', 'store', '--installer', 'spec.yaml')).stdout,
    /^aaa {2}1\.0\.0 {2}installed/,
  );
  await curlewOk(['bundle', 'spec.yaml', '--from', 'store', '-o', 'made.tar.gz'], { cwd: box.path });
  assert.match((await install(box, '--bundle', 'made.tar.gz')).stdout, /^aaa {2}1\.0\.0 {2}already applied/);
  assert.match(
    (await install(box, '--bundle', 'made.tar.gz', '--install-dir', '/opt/other')).stdout,
    /^aaa {2}1\.0\.0 {2}installed/,
  );
});

for (const [title, more, exitCode, message] of [
  ['no source', [], 64, /one of --bundle, --dir and --from/],
  ['two sources', ['--bundle', 'b.tar.gz', '--dir', '.'], 64, /one of/],
  ['an unknown flag', ['--bundle', 'b.tar.gz', 'x'], 64, /unknown flag "x"/],
  ['a bundle that is not there', ['--bundle', 'none.tar.gz'], 14, /none\.tar\.gz: no such file/],
  ['a file that is no bundle', ['--bundle', 'text'], 16, /text/],
  ['a spec that is not there', ['--bundle', 'b.tar.gz', '--installer', 'none.yaml'], 14, /none\.yaml/],
  ['a spec that is no spec', ['--bundle', 'b.tar.gz', '--installer', 'text'], 11, /text:1:1/],
  [
    'an add-on that the bundle lacks',
    ['--bundle', 'b.tar.gz', '--installer', 'other.yaml'],
    14,
    /has no package of other/,
  ],
  [
    'a version that the bundle lacks',
    ['--bundle', 'b.tar.gz', '--installer', 'newer.yaml'],
    11,
    /aaa: no version 2\.0\.0/,
  ],
  ['a store that is not there', ['--from', 'none', '--installer', 'newer.yaml'], 14, /none/],
] as const) {
  test(`${title} is told, and nothing is changed`, async () => {
    await using box = await boxWith([tracer('aaa')]);
    await writeFile(box.at('text'), 'x'.repeat(100));
    await writeFile(box.at('other.yaml'), specOf([{ name: 'other', version: '1.0.0' }]));
    await writeFile(box.at('newer.yaml'), specOf([{ name: 'aaa', version: '2.0.0' }]));
    const outcome = await install(box, ...more);
    assert.equal([outcome.exitCode, outcome.stdout], [exitCode, ''], outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
  });
}

test('a failing hook ends with status 20, the place, the last lines, the log and what to run next', async () => {
  await using box = await boxWith([tracer('aaa', 'aaa() {\n  echo "disk \u001b[31mfull\u001b[0m"\n  return 3\n}')]);
  const { exitCode, stderr, stdout } = await install(box, '--bundle', 'b.tar.gz');
  assert.equal([exitCode, stdout], [20, '']);
  assert.match(stderr, /error HOOK_FAILED: aaa: aaa failed with status 3 at .*addons\/aaa\/1\.0\.0\/install\.sh:\d+/);
  assert.match(stderr, 'disk full');
  assert.match(stderr, /hint: the complete output is in .*aaa\.log/);
  assert.match(stderr, 'run the same command again');
});

// Root is nobody in a user namespace without a mapping, and may still read this checkout.
const asUser = process.geteuid?.() === 0 ? ['unshare', '--user'] : ['env'];
const [userCommand = '', ...userWords] = asUser;
const NOT_ROOT =
  'run it as root; for a trial in a sandbox, use --root DIR; --unconfined runs hooks as this user, and they change this machine';
const NOBODY = 'neither root nor a word that hooks may run unconfined: nothing is run';
if ((await execa(userCommand, [...userWords, 'true'], { reject: false })).exitCode === 0) {
  test(NOBODY, async () => {
    await using box = await boxWith([tracer('aaa')]);
    for (const more of [['--root', box.at('root')], []]) {
      const args = [MAIN, 'install', '--bundle', box.at('b.tar.gz'), ...more];
      const { exitCode, stderr } = await execa(userCommand, [...userWords, process.execPath, ...args], {
        reject: false,
      });
      assert.is(exitCode, 22, stderr);
      // A trial of nobody's has a hint of its own, about the sandbox.
      const hint = more.length > 0 ? '--unconfined' : `hint: ${NOT_ROOT}`;
      assert.match(stderr.replaceAll(/\s+/g, ' '), hint);
    }
    assert.equal(await readdir(box.path), ['b.tar.gz']);
  });
} else {
  test.skip(NOBODY, 'no user namespaces here');
}

test('an empty value, and folders that are no place to install to, are mistakes of usage', async () => {
  await using box = await boxWith([tracer('aaa')]);
  for (const [more, message] of [
    [['--root', ''], '--root has an empty value'],
    [['--install-dir='], '--install-dir has an empty value'],
    [['--install-dir', '/'], '--install-dir / is not allowed'],
    [['--root', '/'], '--root / is not allowed'],
  ] as const) {
    const { exitCode, stderr } = await install(box, '--bundle', 'b.tar.gz', ...more);
    assert.is(exitCode, 64);
    assert.match(stderr, message);
  }
  assert.equal(await readdir(box.path), ['b.tar.gz']);
});

test('a bundle that is not there is told before any folder is made', async () => {
  await using box = await tree();
  assert.is((await install(box, '--bundle', 'b.tar.gz')).exitCode, 14);
  assert.equal(await readdir(box.path), []);
});

test('a reader of standard error that has gone changes nothing', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const command = '{ "$@" 2>&1 >out && echo fine >status; } | true';
  const args = [process.execPath, MAIN, ...words(box, ['--bundle', 'b.tar.gz'])];
  await execa('bash', ['-c', command, 'bash', ...args], { cwd: box.path, env: { TRACE: box.at('trace') } });
  assert.is(await readFile(box.at('status'), 'utf8'), 'fine\n');
  assert.match(await readFile(box.at('out'), 'utf8'), /^aaa {2}1\.0\.0 {2}installed/);
  const failing = '{ "$@" --frobnicate 2>&1; echo $? >status; } | true';
  await execa('bash', ['-c', failing, 'bash', ...args], { cwd: box.path });
  assert.is(await readFile(box.at('status'), 'utf8'), '64\n');
});

const SLOW = tracer(
  'aaa',
  'aaa() { touch "$DIR/ready"; (sleep 1000) & until [ -e "$DIR/go" ]; do sleep 0.01; done; kill $!; }',
);

test('Ctrl-C ends what was started and exits with 130', async () => {
  await using box = await boxWith([SLOW]);
  const child = startCurlew(words(box, ['--bundle', 'b.tar.gz']), traced(box));
  const node = box.at('root/var/lib/curlew');
  await appears(join(node, 'ready'), child);
  child.kill('SIGINT');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 130, stderr);
  const { lastRun = '' } = await readRecords(node);
  assert.equal(membersOf({ session: -1, marker: `CURLEW_HOOK=${lastRun}/aaa` }), { inSession: [], outside: [] });
  assert.is(await stat(join(node, 'lock')).catch(() => 'absent'), 'absent');
});

test('a run that was killed leaves its hook at work; the next run ends it and goes on', async () => {
  await using box = await boxWith([SLOW]);
  const child = startCurlew(words(box, ['--bundle', 'b.tar.gz']), traced(box));
  const node = box.at('root/var/lib/curlew');
  await appears(join(node, 'ready'), child);
  child.kill('SIGKILL');
  await child;
  const { lastRun = '' } = await readRecords(node);
  const family = { session: -1, marker: `CURLEW_HOOK=${lastRun}/aaa` };
  assert.ok(membersOf(family).outside.length > 0);
  const next = install(box, '--bundle', 'b.tar.gz');
  while (membersOf(family).outside.length > 0) await wait(10);
  await writeFile(join(node, 'go'), '');
  const { exitCode, stdout, stderr } = await next;
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, /aaa +1\.0\.0 +installed \(it was not installed\)/);
  assert.match(stderr, /hook aaa of run .* was still running without its parent, and was terminated/);
});

test('a run goes on when its terminal hangs up', async () => {
  await using box = await boxWith([SLOW]);
  const child = startCurlew(words(box, ['--bundle', 'b.tar.gz']), traced(box));
  const node = box.at('root/var/lib/curlew');
  await appears(join(node, 'ready'), child);
  child.kill('SIGHUP');
  await writeFile(join(node, 'go'), '');
  const { exitCode, stdout, stderr } = await child;
  assert.is(exitCode, 0, stderr);
  assert.match(stdout, 'installed');
  assert.match(await readFile(box.at('trace'), 'utf8'), 'aaa_outro');
});

test.run();
