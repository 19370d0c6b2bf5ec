/** `--root`: hooks run in a private mount namespace with an overlay of `/`. Needs root and a kernel that lets it. */
import { execa } from 'execa';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { confinedPlace } from '../../src/runtime/hooks/confine.ts';
import type { NodePlace } from '../../src/runtime/node/node-place.ts';
import { membersOf } from '../../src/platform/process/process-tree.ts';
import { readRecords } from '../../src/runtime/node/records.ts';
import { appears } from '../support/appears.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { curlew, startCurlew, type Outcome } from '../support/curlew.ts';
import { binaryLike } from '../support/images.ts';
import { bundleOf, specOf } from '../support/node-bundles.ts';
import { packagesOf, run } from '../support/node-install.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { cannotRun, run as runProgram } from './support/programs.ts';

const test = suite('confined hooks', { timeoutMs: 120_000 });

const SCRIPTS = join(import.meta.dirname, '../../scripts');
const uid = process.geteuid?.() ?? -1;

async function placeIn(box: Tree): Promise<NodePlace> {
  return confinedPlace({ root: box.path, seen: '/var/lib/curlew', scripts: SCRIPTS, uid, signal: never });
}

async function isPossible(): Promise<boolean> {
  await using mine = await tree();
  try {
    await placeIn(mine);
    return true;
  } catch {
    return false;
  }
}

const possible = await isPossible();

/** Mounts of the machine, without those that other tests make in their folders. */
async function mounts(box: Tree): Promise<string> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return lines.filter((line) => !line.includes('/curlew-test-') || line.includes(box.path)).join('\n');
}

const when = unless(possible ? undefined : 'needs root and a kernel that lets it mount overlays', test);

const ADDON = {
  name: 'aaa',
  version: '1.0.0',
  files: {
    'install.sh': `aaa_pre_init() { SEEN=$PWD; }
aaa() {
  [ "$PWD" = /var/lib/curlew ]; [ "$SEEN" = "$PWD" ]; [ "$KURL_INSTALL_DIRECTORY" = "$PWD" ]
  echo new >/etc/curlew-test.conf
  rm /etc/hostname
  echo kept >"$DIR/kept"
  cp "$DIR/addons/aaa/1.0.0/data" "$DIR/kustomize/aaa/data"
  [ -e /proc/self/stat ]; : >/dev/null
  [ "\${PRIVATE_ADDRESS?}" = "" ]
}
aaa_already_applied() { [ "$(cat /etc/curlew-test.conf)" = new ]; [ ! -e /etc/hostname ]; }
`,
    data: 'x',
  },
};

when('writes of hooks land below the root; the next hook sees them; the machine does not', async () => {
  await using mine = await tree();
  await using hostname = await tree();
  const before = await mounts(mine);
  const name = await readFile('/etc/hostname', 'utf8').catch(() => undefined);
  if (name === undefined) return;
  const place = await placeIn(mine);
  const packages = await packagesOf(bundleOf([ADDON]));
  assert.is((await run(hostname, packages, { place })).addons[0]?.outcome, 'installed');
  assert.is((await run(hostname, packages, { place })).addons[0]?.outcome, 'already applied');
  assert.is(await readFile(mine.at('host/etc/curlew-test.conf'), 'utf8'), 'new\n');
  assert.is(await readFile(mine.at('var/lib/curlew/kept'), 'utf8'), 'kept\n');
  assert.is(await readFile(mine.at('var/lib/curlew/kustomize/aaa/data'), 'utf8'), 'x');
  assert.is(await stat('/etc/curlew-test.conf').catch(() => 'absent'), 'absent');
  assert.is(await readFile('/etc/hostname', 'utf8'), name);
  assert.is(await mounts(mine), before, 'no mount stays behind');
});

when('a failing hook is told with the path that hooks see, and its log with the real one', async () => {
  await using mine = await tree();
  const packages = await packagesOf(
    bundleOf([{ name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa() {\n  false\n}\n' } }]),
  );
  const place = await placeIn(mine);
  const error = await assert.rejectsWith(
    run(mine, packages, { place }),
    'HOOK_FAILED',
    /addons\/aaa\/1\.0\.0\/install\.sh:2 in aaa/,
  );
  assert.match(error.hint ?? '', mine.at('var/lib/curlew/runs'));
});

when('a root with special characters in its name, and one on another file system', async () => {
  await using mine = await tree({ 'a, b:c\\d/x': '' });
  const root = mine.at('a, b:c\\d');
  const place = await confinedPlace({ root, seen: '/opt/in stall', scripts: SCRIPTS, uid, signal: never });
  const [command, ...args] = place.wrap(['bash', '-c', 'echo here >here; echo there >/etc/there']);
  await execa(command, args, { cwd: root });
  assert.is(await readFile(join(root, 'opt/in stall/here'), 'utf8'), 'here\n');
  assert.is(await readFile(join(root, 'host/etc/there'), 'utf8'), 'there\n');
});

when('what hooks write to another file system of the machine lands below the root too', async () => {
  await using mine = await tree();
  const place = await placeIn(mine);
  const words = place.wrap([
    'bash',
    '-c',
    'mkdir -p /mnt/x && echo y >/dev/shm/../../mnt/x/y; findmnt -no FSTYPE / || true',
  ]);
  const script = 'mount -t tmpfs t /mnt && "$@" && [ ! -e /mnt/x ]';
  const { stdout } = await execa('unshare', ['-m', '--propagation', 'private', 'bash', '-ec', script, '_', ...words]);
  assert.is(stdout, 'overlay');
  assert.is(await readFile(mine.at('mounts/mnt/x/y'), 'utf8'), 'y\n');
});

when('without a way to confine them, hooks are not run', async () => {
  await using mine = await tree({ file: '' });
  const root = mine.at('new');
  const refused = confinedPlace({ root, seen: '/x', scripts: mine.path, uid: 1000, signal: never });
  const error = await assert.rejectsWith(refused, 'UNSUPPORTED', /cannot create a sandbox in .*confine\.sh/);
  assert.match(error.hint ?? '', '--unconfined runs hooks without a sandbox');
  assert.equal(await readdir(mine.path), ['file']);
  const broken = confinedPlace({ root: mine.at('file/root'), seen: '/x', scripts: SCRIPTS, uid, signal: never });
  await assert.rejectsWith(broken, 'FILE_UNUSABLE', /create .*file\/root/);
});

when('a sandbox that a chroot does not support is refused with the reason', async () => {
  await using mine = await tree({ 'jail/proc/x': '', 'jail/usr/x': '', 'jail/scripts/x': '', 'jail/dev/null': '' });
  const script = `cd ${mine.at('jail')}
for name in bin sbin lib lib64; do [ ! -e /$name ] || ln -s usr/$name $name; done
mount --rbind /usr usr; mount --bind /proc proc; mount --bind "$SCRIPTS" scripts; mount --bind /dev/null dev/null
exec chroot . bash /scripts/confine.sh --check`;
  const ran = await execa('unshare', ['-m', '--propagation', 'private', 'bash', '-ec', script], {
    reject: false,
    env: { SCRIPTS },
  });
  assert.match(ran.stderr, /^sandbox: the root folder is no mount point, as in a chroot: run it outside /);
});

for (const [what, words, reason] of [
  [
    'a process that gets no privileges',
    ['setpriv', '--no-new-privs'],
    /^sandbox: this process has no_new_privs, .*: run it outside of a service with NoNewPrivileges=yes/,
  ],
  [
    'a setting that allows no user namespaces',
    [
      'unshare',
      '--user',
      '--map-root-user',
      'bash',
      '-c',
      'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"',
      '_',
    ],
    /^sandbox: cannot create a user namespace, since the setting user\.max_user_namespaces is 0: .*sysctl -w user\.max_user_namespaces=10000/,
  ],
] as const) {
  when(`a sandbox is refused with the reason, and what to do, by ${what}`, async () => {
    const [program, ...rest] = words;
    const ran = await execa(program, [...rest, 'bash', join(SCRIPTS, 'confine.sh'), '--check'], { reject: false });
    assert.is(ran.exitCode, 1);
    assert.match(ran.stderr, reason);
  });
}

when('a program that the sandbox needs is named if it is missing', async () => {
  await using mine = await tree({ 'bin/x': '' });
  for (const name of ['bash', 'unshare', 'setpriv', 'pivot_root', 'mount', 'umount', 'chroot', 'ip', 'stat', 'xargs']) {
    await symlink((await execa('bash', ['-c', `command -v ${name}`])).stdout, mine.at('bin', name));
  }
  const env = { PATH: mine.at('bin') };
  const refused = confinedPlace({ root: mine.at('new'), seen: '/x', scripts: SCRIPTS, uid, env, signal: never });
  await assert.rejectsWith(refused, 'UNSUPPORTED', /: missing program: find \(packages util-linux, iproute2/);
});

when('a trial that is refused before it began leaves no folder, but those that were there', async () => {
  await using mine = await tree();
  const big = { ...ADDON, files: { ...ADDON.files, big: binaryLike(1_000_000, 'big', 1) } };
  await writeFile(mine.at('bundle.tar.gz'), bundleOf([big], specOf([big])));
  await mkdir(mine.at('disk'));
  await execa('mount', ['-t', 'tmpfs', '-o', 'size=500k', 'tmpfs', mine.at('disk')]);
  try {
    await mkdir(mine.at('disk/empty'), { mode: 0o700 });
    for (const root of ['disk/new/trial', 'disk/empty']) {
      const { exitCode, stderr } = await curlew(['install', '--bundle', 'bundle.tar.gz', '--root', root], {
        cwd: mine.path,
      });
      assert.is(exitCode, 18, stderr);
      assert.equal(await readdir(mine.at('disk'), { recursive: true }), ['empty']);
    }
  } finally {
    await execa('umount', [mine.at('disk')]);
  }
});

when('an interrupted command leaves neither processes nor mounts', async () => {
  await using mine = await tree();
  const before = await mounts(mine);
  const slow = { name: 'aaa', version: '1.0.0', files: { 'install.sh': 'aaa() { touch "$DIR/ready"; sleep 1000; }' } };
  await writeFile(mine.at('bundle.tar.gz'), bundleOf([slow], specOf([slow])));
  const child = startCurlew(['install', '--bundle', 'bundle.tar.gz', '--root', 'root'], { cwd: mine.path });
  await appears(mine.at('root/var/lib/curlew/ready'), child);
  child.kill('SIGINT');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 130, stderr);
  assert.is(await mounts(mine), before);
  const { lastRun = '' } = await readRecords(mine.at('root/var/lib/curlew'));
  assert.equal(membersOf({ session: -1, marker: `CURLEW_HOOK=${lastRun}/aaa` }), { inSession: [], outside: [] });
});

when('a command that is refused while a hook is running leaves the files of that hook alone', async () => {
  await using mine = await tree();
  const body = `aaa() { mkfifo "$DIR/go"; touch "$DIR/ready"; read -r _ <"$DIR/go"; mkdir -p /opt/curlew-test/x; }`;
  const waiting = { name: 'aaa', version: '1.0.0', files: { 'install.sh': body } };
  await writeFile(mine.at('bundle.tar.gz'), bundleOf([waiting], specOf([waiting])));
  const words = ['install', '--bundle', 'bundle.tar.gz', '--root', 'root'];
  const child = startCurlew(words, { cwd: mine.path });
  await appears(mine.at('root/var/lib/curlew/ready'), child);
  assert.is((await curlew(words, { cwd: mine.path })).exitCode, 19);
  assert.is((await curlew([...words, '--dry-run'], { cwd: mine.path })).exitCode, 0);
  await writeFile(mine.at('root/var/lib/curlew/go'), 'go\n');
  const { exitCode, stderr } = await child;
  assert.is(exitCode, 0, stderr);
  assert.equal(await readdir(mine.at('root/host/opt/curlew-test')), ['x']);
  assert.not((await readdir(mine.at('root/.overlay'))).some((name) => name.startsWith('try-')));
});

/** Its hooks keep a file of the machine; its second version fails when it has changed that. */
function keeper(version: string): typeof ADDON {
  const script = `aaa() { mkdir -p /opt/curlew-test; echo "$AAA_VERSION" >/opt/curlew-test/app; [ "$AAA_VERSION" = 1.0.0 ]; }
aaa_uninstall() { rm -r /opt/curlew-test; }
`;
  return { name: 'aaa', version, files: { 'install.sh': script, data: version } };
}

when('a trial is rolled back and reset below its root, and the machine is as before', async () => {
  await using mine = await tree();
  const before = await mounts(mine);
  const given = async (...words: readonly string[]): Promise<Outcome> =>
    curlew([...words, '--root', 'root'], { cwd: mine.path });
  const app = async (): Promise<string> =>
    readFile(mine.at('root/host/opt/curlew-test/app'), 'utf8').catch(() => 'none');
  for (const [version, status] of [
    ['1.0.0', 0],
    ['2.0.0', 20],
  ] as const) {
    await writeFile(mine.at('b.tar.gz'), bundleOf([keeper(version)]));
    const { exitCode, stderr } = await given('install', '--bundle', 'b.tar.gz');
    assert.is(exitCode, status, stderr);
    assert.is(await app(), `${version}\n`);
  }
  const back = await given('rollback', 'aaa');
  assert.is(back.exitCode, 0, back.stderr);
  assert.is(await app(), '1.0.0\n');
  assert.equal(await readdir(mine.at('root/var/lib/curlew/addons/aaa')), ['1.0.0']);
  const off = await given('reset', '--yes');
  assert.is(off.exitCode, 0, off.stderr);
  assert.is(await app(), 'none');
  assert.is(await stat(mine.at('root/var/lib/curlew')).catch(() => 'absent'), 'absent');
  // What hooks have written stays for whoever tried them.
  assert.ok((await readdir(mine.at('root'))).includes('host'));
  assert.is(await stat('/opt/curlew-test').catch(() => 'absent'), 'absent');
  assert.is(await mounts(mine), before);
  const nothing = await given('reset', '--yes');
  assert.equal([nothing.exitCode, /nothing was installed/.test(nothing.stdout)], [0, true]);
});

/** Processes that a sandbox may start before its command; each takes two milliseconds of processor time. A mount below another one adds one. */
const STARTS = 14;

/** Takes away the mounts of other tests, each of which may cost a program: $1 is the folder of this one. */
const ALONE = `others=()
while read -r _ _ _ _ point _; do
  case "$point" in *curlew-test*) case "$1/" in "$point"/*) ;; *) others=("$point" "\${others[@]}") ;; esac ;; esac
done </proc/self/mountinfo
for point in "\${others[@]}"; do umount -l "$(printf '%b' "$point")"; done
shift
exec "$@"`;

/** A command that sees no mounts of other tests, where this process may take them away for itself. */
function alone(box: Tree, command: readonly string[]): readonly [string, ...string[]] {
  const [program = '', ...args] = command;
  if (uid !== 0) return [program, ...args];
  return ['unshare', '--mount', '--propagation', 'private', 'bash', '-c', ALONE, 'bash', box.path, program, ...args];
}

when('few processes are started for a command, however many runs there are records of', async () => {
  await using fresh = await tree();
  const runs = ['r1', 'r2', 'r3'].map((name) => [`var/lib/curlew/runs/${name}/hook/x`, ''] as const);
  await using used = await tree({ 'var/lib/curlew/records.json': '{}', ...Object.fromEntries(runs) });
  const counts: number[] = [];
  for (const box of [fresh, used]) {
    const [command, ...args] = alone(box, (await placeIn(box)).wrap(['bash', '-c', ': & echo $!']));
    // The first command below a root makes folders.
    await execa(command, args);
    // The kernel counts up the numbers of processes in their namespace.
    counts.push(Number((await execa(command, args)).stdout));
  }
  assert.ok(
    counts.every((count) => count > 1 && count <= STARTS),
    counts.join(),
  );
  assert.is(counts[1], counts[0]);
});

/** Programs that a sandbox may start, and how often it may start bash, which takes longest to start of them. */
const PROGRAMS = 17;
const SHELLS = 3;

unless(possible ? cannotRun('strace') : 'needs sandboxes', test)(
  'few programs are started for a command, and of these only three are bash',
  async () => {
    await using box = await tree();
    await using log = await tree();
    const command = (await placeIn(box)).wrap(['true']);
    const traced = ['-f', '-qq', '-z', '-e', 'trace=execve', '-o', log.at('trace'), ...command];
    // The first command below a root makes folders.
    const [first, ...words] = alone(box, ['strace', ...traced]);
    for (let turn = 0; turn < 2; turn += 1) await runProgram(first, words);
    const trace = await readFile(log.at('trace'), 'utf8');
    const started = [...trace.matchAll(/execve\("(?:[^"]*\/)?([^"/]+)"/g)].map(([, name]) => name);
    assert.ok(started.length > 1 && started.length <= PROGRAMS + 1, started.join());
    assert.ok(started.filter((name) => name === 'bash').length <= SHELLS, started.join());
  },
);

const COMING_AND_GOING = `trap 'for i in 1 2 3 4 5 6; do umount "$1/$i" 2>/dev/null; done; exit 0' TERM
while :; do
  for i in 1 2 3 4 5 6; do mkdir -p "$1/$i"; mount -t tmpfs none "$1/$i"; done
  for i in 1 2 3 4 5 6; do umount "$1/$i"; rmdir "$1/$i"; done
done`;

when('mounts that others take away meanwhile do not matter', async () => {
  await using elsewhere = await tree();
  await using box = await tree();
  const others = execa('bash', ['-c', COMING_AND_GOING, 'bash', elsewhere.path], { reject: false });
  try {
    const { wrap } = await placeIn(box);
    const [command, ...args] = wrap(['true']);
    for (let round = 0; round < 15; round += 1) await execa(command, args);
  } finally {
    others.kill('SIGTERM');
    await others;
  }
});

test.run();
