import { execa } from 'execa';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { DryRun } from '../../src/runtime/run/dry-run.ts';
import * as assert from '../support/assert.ts';
import { publishTestPackages } from '../support/bundles.ts';
import { MAIN } from '../support/compiled.ts';
import { curlew, curlewOk } from '../support/curlew.ts';
import { writeLayout } from '../support/image-packages.ts';
import { binaryLike, makeImage, makeLayer } from '../support/images.ts';
import { boxWith, bundleOf, specOf } from '../support/node-bundles.ts';
import { traced, tracer, tracerPackage } from '../support/node-install.ts';
import { snapshot } from '../support/snapshot.ts';
import { runTraced } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

// not fast: hundreds of hooks
const test = suite('cli/dry-run', { timeoutMs: 120_000 });

const PLACE = ['--root', 'root', '--unconfined'];

async function filesBelow(folder: string): Promise<Readonly<Record<string, Buffer>>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const rows = entries
    .filter((entry) => entry.isFile())
    .map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return [relative(folder, path), await readFile(path)] as const;
    });
  return Object.fromEntries(await Promise.all(rows));
}

const HOOKS = { extra: { hooks: ['aaa', 'aaa_outro', 'aaa_pre_init'] } };

test('a dry run tells what would be done and why, in eighty columns', async () => {
  await using box = await boxWith([{ ...tracer('aaa'), ...HOOKS }, tracer('bbb')]);
  const { exitCode, stdout, stderr } = await curlew(
    ['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run'],
    traced(box),
  );
  assert.equal([exitCode, stderr], [0, '']);
  assert.match(stdout, /^Plan: install of 2 add-ons in .*\/root\/var\/lib\/curlew$/m);
  assert.match(
    stdout,
    /^aaa 1\.0\.0\n {2}extract {2}not on this node: .* kB\n {2}images {3}none\n {2}install {2}it was not installed\n {2}hooks {4}aaa_pre_init aaa aaa_outro$/m,
  );
  assert.match(stdout, /^Disk usage at the peak of the run$/m);
  assert.match(stdout, /^Nothing has changed\.$/m);
  const long = stdout.split('\n').filter((line) => line.length > 80 && !line.includes(box.path));
  assert.equal(long, []);
});

test('a dry run changes nothing: no lock, no folder, no file, before an install and after one', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const before = await snapshot(box.path);
  await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run'], box);
  assert.equal(await snapshot(box.path), before);
  await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE], box);
  const installed = await snapshot(box.path);
  const { stdout } = await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run'], box);
  assert.match(stdout, /extract {2}its files are in place/);
  assert.match(stdout, /skip {5}same version, package and settings/);
  assert.equal(await snapshot(box.path), installed);
});

test('an unpacked bundle and a store stay as they are, too', async ({ signal }) => {
  await using box = await tree({ 'spec.yaml': specOf([{ name: 'aaa', version: 'latest' }]) });
  await writeFile(box.at('b.tar.gz'), bundleOf([tracer('aaa')]));
  await mkdir(box.at('unpacked'));
  await execa('tar', ['xzf', box.at('b.tar.gz'), '-C', box.at('unpacked')]);
  await publishTestPackages(box, [tracerPackage('aaa')], signal);
  const before = await snapshot(box.path);
  for (const source of [
    ['--dir', 'unpacked'],
    ['--from', 'store', '--installer', 'spec.yaml'],
  ]) {
    const { exitCode, stderr } = await runTraced(['install', ...source, ...PLACE, '--dry-run'], box);
    assert.is(exitCode, 0, stderr);
  }
  assert.equal(await snapshot(box.path), before);
});

test('a saved plan is run without saying anything again, once', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const dry = await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run', '--out', 'plan.json'], box);
  assert.match(dry.stdout, /Nothing has changed; the plan is in .*plan\.json/);
  assert.is((await stat(box.at('plan.json'))).mode & 0o777, 0o600);
  const held = await runTraced(['install', '--plan', 'plan.json', '--dry-run'], box);
  assert.is(held.exitCode, 0, held.stderr);
  const done = await curlew(['install', '--plan', 'plan.json'], traced(box));
  assert.match(done.stdout, /^aaa {2}1\.0\.0 {2}installed/);
  const again = await runTraced(['install', '--plan', 'plan.json'], box);
  assert.is(again.exitCode, 32);
  assert.match(again.stderr, /error PLAN_CHANGED: .*\n {2}the records of this node: run \S+ ran since\n {2}hint: /);
});

test('a file that is there does not become a plan, unless it may be replaced', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await writeFile(box.at('plan.json'), 'mine');
  const words = ['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run', '--out', 'plan.json'];
  const refused = await runTraced(words, box);
  assert.equal([refused.exitCode, refused.stdout], [24, '']);
  assert.match(refused.stderr, /plan\.json: the file already exists\n {2}hint: .*--force$/m);
  assert.is(await readFile(box.at('plan.json'), 'utf8'), 'mine');
  assert.is((await runTraced([...words, '--force'], box)).exitCode, 0);
  assert.is((await runTraced(['install', '--plan', 'plan.json', '--dry-run'], box)).exitCode, 0);
});

test('a plan holds the run to the packages and settings that it was made from', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run', '--out', 'plan.json'], box);
  await writeFile(box.at('other.tar.gz'), bundleOf([tracer('aaa', ': changed')]));
  const other = await runTraced(['install', '--plan', 'plan.json', '--bundle', 'other.tar.gz'], box);
  assert.is(other.exitCode, 32);
  assert.match(other.stderr, 'the package of aaa-1.0.0');
  const settings = await runTraced(['install', '--plan', 'plan.json', '--set', 'aaa.colour=blue'], box);
  assert.is(settings.exitCode, 32);
  assert.match(settings.stderr, 'the settings of aaa');
  assert.is(await stat(box.at('root/var/lib/curlew/records.json')).catch(() => 'absent'), 'absent');
});

test('settings of --set are not in the plan', async () => {
  await using box = await boxWith([tracer('aaa')]);
  const set = ['--set', 'aaa.password=hunter2'];
  const dry = await runTraced(
    ['install', '--bundle', 'b.tar.gz', ...PLACE, ...set, '--dry-run', '--out', 'p', '--json'],
    box,
  );
  assert.is(dry.exitCode, 0, dry.stderr);
  assert.not((dry.stdout + (await readFile(box.at('p'), 'utf8'))).includes('hunter2'));
  const done = await runTraced(['install', '--plan', 'p', ...set], box);
  assert.is(done.exitCode, 0, done.stderr);
});

const MISTAKES = [
  ['--out without --dry-run', ['--bundle', 'b.tar.gz', '--out', 'x'], /--out requires --dry-run/],
  ['--force without --out', ['--bundle', 'b.tar.gz', '--dry-run', '--force'], /--force requires --out/],
  ['--out with --plan', ['--plan', 'plan.json', '--dry-run', '--out', 'x'], /--plan and --out cannot be used together/],
  [
    'another root than the plan’s',
    ['--plan', 'plan.json', '--root', 'elsewhere'],
    /--root is determined by the saved plan/,
  ],
  ['--reapply beside a plan', ['--plan', 'plan.json', '--reapply'], /--reapply is determined/],
  ['the plan of a join', ['--plan', 'join.json'], /another kind of run/],
  ['a plan that takes packages from the network', ['--plan', 'remote.json'], /packages from s3:\/\/evil\/dist/],
] as const;

test('options that do not go together are mistakes of usage, and nothing is run', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await runTraced(['install', '--bundle', 'b.tar.gz', ...PLACE, '--dry-run', '--out', 'plan.json'], box);
  const text = await readFile(box.at('plan.json'), 'utf8');
  await writeFile(box.at('join.json'), text.replace('"kind": "install"', '"kind": "join"'));
  await writeFile(box.at('remote.json'), text.replace(/"bundle": "[^"]*"/, '"from": ["s3://evil/dist"]'));
  for (const [title, words, message] of MISTAKES) {
    const { exitCode, stderr, stdout } = await runTraced(['install', ...words], box);
    assert.equal([exitCode, stdout], [64, ''], `${title}: ${stderr}`);
    assert.match(stderr, message);
  }
  assert.is(await stat(box.at('root')).catch(() => 'absent'), 'absent');
});

test('a plan that is no plan is refused before anything else', async () => {
  await using box = await boxWith([tracer('aaa')]);
  await writeFile(box.at('plan.json'), '{"format":1,"words":{"bundle":"\u001b[31m"}}');
  const { exitCode, stderr } = await runTraced(['install', '--plan', 'plan.json'], box);
  assert.is(exitCode, 25);
  assert.match(stderr, /error FILE_UNUSABLE: cannot read .*plan\.json: not a saved plan: /);
  assert.not(stderr.includes('\u001b'));
});

test('join and upgrade plan, too', async () => {
  await using box = await boxWith([{ ...tracer('aaa'), extra: { hooks: ['aaa_join'] } }]);
  for (const kind of ['join', 'upgrade']) {
    if (kind === 'upgrade') await curlewOk(['join', '--bundle', 'b.tar.gz', ...PLACE], traced(box));
    const { exitCode, stdout } = await runTraced([kind, '--bundle', 'b.tar.gz', ...PLACE, '--dry-run', '--json'], box);
    assert.is(exitCode, 0);
    const told = JSON.parse(stdout) as DryRun;
    assert.equal([told.plan.kind, told.addons[0]?.hooks], [kind, ['aaa_join']]);
  }
});

const user = process.geteuid?.() === 0 ? ['unshare', '--user'] : ['env'];
const [command = '', ...userWords] = user;
const NOBODY = 'whoever is not root may look at what would be done';
if ((await execa(command, [...userWords, 'true'], { reject: false })).exitCode === 0) {
  test(NOBODY, async () => {
    await using box = await boxWith([tracer('aaa')]);
    await chmod(box.path, 0o755);
    const args = [MAIN, 'install', '--bundle', box.at('b.tar.gz'), '--install-dir', box.at('node')];
    const { exitCode, stdout, stderr } = await execa(command, [...userWords, process.execPath, ...args, '--dry-run'], {
      reject: false,
    });
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, 'it was not installed');
  });
} else {
  test.skip(NOBODY, 'no user namespaces here');
}

// A machine's own disk may be fuller than images may make it.
const ROOMY = ['--map-root-user', '--mount', 'sh', '-c', 'mount -t tmpfs -o size=64m none /var/lib && exec "$@"', 'sh'];
const BOUND = 'a package that comes from another mount of the same disk is copied, and the plan has room for that';
const BINDS = [
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  'cd "$1" && mount --bind a a && mount --bind b b && shift && exec "$@"',
  'sh',
];
if ((await execa('unshare', [...ROOMY, 'true'], { reject: false })).exitCode === 0) {
  test(BOUND, async () => {
    await using box = await boxWith([tracer('aaa')]);
    for (const name of ['a/bundle', 'b']) await mkdir(box.at(name), { recursive: true });
    await execa('tar', ['-xzf', box.at('b.tar.gz'), '-C', box.at('a/bundle')]);
    const install = [process.execPath, MAIN, 'install', '--dir', box.at('a/bundle'), '--install-dir'];
    const shown = async (folder: string): Promise<string> => {
      const words = [...BINDS, box.path, ...install, box.at(folder), '--unconfined', '--dry-run'];
      const { exitCode, stdout, stderr } = await execa('unshare', words, { cwd: box.path, reject: false });
      assert.is(exitCode, 0, `${stdout}\n${stderr}`);
      return stdout;
    };
    assert.match(await shown('a/node'), / 4\.1 kB: package of aaa/);
    assert.match(await shown('b/node'), / 20\.5 kB: package of aaa/);
  });
} else {
  test.skip(BOUND, 'no user namespace with a mount of its own here');
}
const TOLD = 'images that are to be loaded are told with their names and bytes, and what they take on disk';
if ((await execa('unshare', [...ROOMY, 'true'], { reject: false })).exitCode === 0) {
  test(TOLD, async () => {
    const layer = makeLayer({ big: binaryLike(300_000, 'big', 1) });
    await using made = await tree();
    const { images } = await writeLayout(made.path, { 'docker.io/library/x:1': makeImage([layer]) });
    const { name, version, files } = tracer('containerd');
    const addon = { name, version, files: { ...files, ...(await filesBelow(made.path)) }, extra: { images } };
    await using box = await boxWith([addon]);
    const args = ['install', '--bundle', 'b.tar.gz', '--install-dir', box.at('node'), '--unconfined', '--dry-run'];
    const env = ['env', `PATH=${box.at('none')}`, `CONTAINERD_ADDRESS=${box.at('none')}`];
    const words = [...ROOMY, ...env, process.execPath, MAIN, ...args];
    const { exitCode, stdout, stderr } = await execa('unshare', words, { cwd: box.path, reject: false });
    assert.is(exitCode, 0, `${stdout}\n${stderr}`);
    assert.match(stdout, /images {3}1 of 1 to load, 30\d kB: docker\.io\/library\/x:1/);
    assert.match(stdout, /1\.0\d MB: images of containerd, an estimate: 3\.5 times/);
  });
} else {
  test.skip(TOLD, 'no user namespace with a mount of its own here');
}

test.run();
