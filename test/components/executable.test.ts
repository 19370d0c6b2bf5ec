/** curlew for nodes, one file with Node inside: on this machine, in a bare system, and as another architecture's. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findEntry, openFileSource, readIndex } from '../../src/archive/read.ts';
import { digestOf } from '../../src/core/digest.ts';
import { executableFileName, packedExecutableName } from '../../src/core/layout.ts';
import { ARCHES, type Arch } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { cleanEnvironment, curlewOk, type Outcome } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import { cannotRun, ROOT, run, shell } from './support/programs.ts';
import { BUCKET, cannotServe, S3_KEYS, startS3 } from './support/s3-servers.ts';

const test = suite('the executable for nodes', { timeoutMs: 300_000 });

const BARE = join(ROOT, '.curlew/tools/bare.tar');
const OWN: Arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
/** A folder with the libraries of arm64, as Debian's cross compilers have them. */
const ARM64 = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'];
const MOST_BYTES = 60_000_000;

function built(name: string): string {
  return join(ROOT, 'dist/node', name);
}

const EXECUTABLE = built(executableFileName(OWN));
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };

const ADDON = {
  'addons/web/1.0.0/Manifest': 'asset words ./words\n',
  // Large enough to be deflated by a worker thread.
  'addons/web/1.0.0/words': 'many words '.repeat(400_000),
  'addons/web/1.0.0/install.sh': `web_pre_init() { WEB_SEEN="port \${WEB_PORT}"; }
web() { printf '%s\\n' "$WEB_SEEN" >"$DIR/kustomize/web/seen"; }
web_already_applied() { test -f "$DIR/kustomize/web/seen"; }
web_outro() { logSuccess "done: $WEB_SEEN"; }
`,
  'installer.yaml': `apiVersion: cluster.kurl.sh/v1beta1
kind: Installer
metadata:
  name: sample
spec:
  web:
    version: latest
    port: 8080
`,
};

let box: Tree;

/** The sample bundle of an architecture. */
function bundleOf(arch: Arch): string {
  return box.at(`${arch}.tar.gz`);
}

/** Runs a program with nothing but the system's own programs around it. */
async function outcome(words: readonly string[], cwd: string, env = {}): Promise<Outcome> {
  const [command = '', ...args] = words;
  const options = { cwd, env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: cwd, ...env }, extendEnv: false } as const;
  const { exitCode, stdout, stderr } = await execa(command, args, { ...options, reject: false, stdin: 'ignore' });
  return { status: exitCode ?? 255, stdout, stderr };
}

async function succeeds(words: readonly string[], cwd: string, env = {}): Promise<string> {
  const { status, stdout, stderr } = await outcome(words, cwd, env);
  if (status !== 0) throw new Error(`${words.join(' ')}: status ${status}\n${stdout}\n${stderr}`);
  return stdout;
}

/** Unpacks a bundle with tar into a folder of the box. */
async function unpacked(name: string, arch: Arch = OWN): Promise<string> {
  await mkdir(box.at(name));
  await run('tar', ['-xzf', bundleOf(arch), '-C', box.at(name)]);
  return box.at(name);
}

/**
 * Runs a line of bash as root of a bare system that has no Node and no network, with the sample bundle in /mnt; what it
 * changes is gone afterwards.
 */
async function inBareSystem(line: string): Promise<Outcome> {
  const steps = [
    'mount -t tmpfs -o size=1500m tmpfs "$1" && mkdir "$1"/{upper,work,root}',
    'mount -t overlay -o lowerdir="$2",upperdir="$1/upper",workdir="$1/work" overlay "$1/root"',
    'mount --bind -o ro "$3" "$1/root/mnt"',
    'mount -t proc proc "$1/root/proc"',
    'exec chroot "$1/root" /bin/bash -euo pipefail -c "$4"',
  ];
  const words = ['--net', '--mount', '--pid', '--fork', 'bash', '-euc', steps.join('\n'), 'bash'];
  return outcome(['unshare', ...words, box.at('work'), box.at('bare'), box.at('share'), line], box.path);
}

test.before(async () => {
  box = await tree(ADDON);
  for (const arch of ARCHES) {
    const words = ['web', '--arch', arch, '--out', 'out'];
    await curlewOk(['build', ...words], { cwd: box.path });
    await curlewOk(['publish', ...words, '--to', `store-${arch}`, '--release', 'v1'], { cwd: box.path });
    const spec = ['installer.yaml', '--from', `store-${arch}`, '--arch', arch, '-o', bundleOf(arch)];
    await curlewOk(['bundle', ...spec], { cwd: box.path });
  }
});
test.after(async () => box[Symbol.asyncDispose]());

for (const arch of ARCHES) {
  test(`of ${arch} packs into 60 MB, and a bundle holds it as it was built`, async ({ signal }) => {
    const packed = built(packedExecutableName(arch));
    assert.ok((await stat(packed)).size <= MOST_BYTES);
    await using source = await openFileSource(bundleOf(arch));
    const index = await readIndex(source, { signal });
    const digest = digestOf(await readFile(built(executableFileName(arch))));
    assert.is(findEntry(index, 'bin/curlew')?.digest, digest);
    assert.ok((await stat(bundleOf(arch))).size <= MOST_BYTES + 1_000_000);
    await curlewOk(['verify', packed, bundleOf(arch)], { cwd: box.path });
    const listed = await run('tar', ['-tvzf', packed]);
    assert.match(listed, /^-rwxr-xr-x .* bin\/curlew$/m);
    assert.match(listed, /^-rw-r--r-- .* bin\/curlew\.license$/m);
  });
}

test('says its version, whatever is in NODE_OPTIONS, and knows every command', async () => {
  assert.is(await succeeds([EXECUTABLE, '--version'], box.path, { NODE_OPTIONS: '--require=/missing.js' }), version);
  assert.is(await succeeds([EXECUTABLE, '--help'], box.path), await curlewOk(['--help'], { cwd: box.path }));
});

test('its worker threads make the package that a Node with files makes', async () => {
  await succeeds([EXECUTABLE, 'build', 'web', '--arch', OWN, '--out', 'again'], box.path);
  const [name = ''] = await readdir(box.at('again'));
  const [mine, other] = await Promise.all([readFile(box.at('again', name)), readFile(box.at('out', name))]);
  assert.is(digestOf(mine), digestOf(other));
});

test('what it cannot do is said: Docker engines and bundles are for those who build', async () => {
  const words = ['bundle', 'installer.yaml', '--from', `store-${OWN}`, '-o', 'b.tar.gz'];
  const { status, stderr } = await outcome([EXECUTABLE, ...words], box.path);
  assert.is(status, 22);
  assert.match(stderr, /make a bundle: the curlew for nodes cannot/);
});

test('installs by install.sh, leaves no scripts behind, and finds what is applied already', async () => {
  const folder = await unpacked('plain');
  const words = [join(folder, 'install.sh'), '--root', box.at('plain-root'), '--unconfined'];
  await mkdir(box.at('tmp'));
  const env = { TMPDIR: box.at('tmp') };
  assert.match(await succeeds(words, box.path, env), /web +1\.0\.0 +installed/);
  assert.is(await readFile(box.at('plain-root/var/lib/curlew/kustomize/web/seen'), 'utf8'), 'port 8080\n');
  assert.match(await succeeds(words, box.path, env), /web +1\.0\.0 +already applied/);
  assert.equal(await readdir(box.at('tmp')), []);
});

test('a flipped byte is found before it runs', async () => {
  const folder = await unpacked('flipped');
  await using file = await open(join(folder, 'bin/curlew'), 'r+');
  const at = Math.floor((await file.stat()).size / 2);
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, at);
  await file.write(Buffer.from([(buffer[0] ?? 0) ^ 1]), 0, 1, at);
  const { status, stderr } = await outcome([join(folder, 'install.sh'), '--root', box.at('never')], box.path);
  assert.is(status, 15);
  assert.match(stderr, /bin\/curlew is damaged/);
  assert.not.ok(existsSync(box.at('never')));
});

const s3 = cannotServe('versitygw');
const ONLINE = 'installs from a store in S3';
if (s3 === undefined) {
  test(ONLINE, async () => {
    await using server = await startS3('versitygw', box.at('s3'));
    const store = [`s3://${BUCKET}/dist`, '--s3-endpoint', server.url];
    const words = ['web', '--arch', OWN, '--out', 'out', '--release', 'v1', '--to', ...store];
    await curlewOk(['publish', ...words], { cwd: box.path, env: S3_KEYS });
    const install = [EXECUTABLE, 'install', '--from', ...store, '--installer', 'installer.yaml'];
    const trial = ['--root', box.at('s3-root'), '--unconfined', '--skip-images'];
    const { status, stdout, stderr } = await outcome([...install, ...trial], box.path, S3_KEYS);
    assert.is(status, 0, stderr);
    assert.match(stdout, /web +1\.0\.0 +installed/);
    assert.not.match(stderr, /warning|NodeDeprecation/i);
  });
} else {
  test.skip(ONLINE, s3);
}

test('is the same, byte for byte, from another folder, with another umask, time zone and language', async () => {
  await using other = await tree();
  await shell(
    `cd "$1"; git ls-files -z -co --exclude-standard src scripts package.json tsconfig.json |
       xargs -0 cp --parents -t "$2" --
     ln -s "$1/node_modules" "$2/node_modules"; mkdir "$2/.curlew"; cp -al .curlew/node "$2/.curlew/"
     rm -f "$2"/.curlew/node/*-${OWN}/*.deflate`,
    ROOT,
    other.path,
  );
  await execa('bash', ['-euc', 'umask 077; exec node --import tsx scripts/build-node-tool.ts'], {
    cwd: other.path,
    env: { ...cleanEnvironment({ cwd: other.path }), TZ: 'Asia/Tokyo', LC_ALL: 'C', NODE_OPTIONS: '--no-warnings' },
    extendEnv: false,
    stdin: 'ignore',
  });
  for (const name of ARCHES.flatMap((arch) => [executableFileName(arch), packedExecutableName(arch)])) {
    const [mine, theirs] = [built(name), other.at('dist/node', name)];
    assert.is(digestOf(await readFile(theirs)), digestOf(await readFile(mine)), name);
    assert.is((await stat(theirs)).mode, (await stat(mine)).mode, name);
  }
});

test('a Node that cannot be fetched is named, with what to do', async () => {
  await using other = await tree({ '.npmrc': 'registry=http://127.0.0.1:9/\nfetch-retries=0\n', 'package.json': '{}' });
  const script = join(ROOT, 'scripts/node-tool/prepare-node.ts');
  const { exitCode, stderr } = await execa('node', ['--import', 'tsx', script, other.at('nodes'), OWN], {
    cwd: ROOT,
    env: { ...cleanEnvironment({ cwd: other.path }), npm_config_registry: 'http://127.0.0.1:9/' },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  assert.is(exitCode, 1);
  assert.match(stderr, new RegExp(`npm could not fetch node-linux-\\w+@\\S+, .* ${OWN} nodes`));
  assert.match(stderr, /npm registry .* and run again: npm run build/);
  assert.equal(await readdir(other.at('nodes')), []);
});

const bare = cannotRun('unshare', 'chroot', 'mount') ?? (existsSync(BARE) ? undefined : 'missing: scripts/tools bare');
if (bare === undefined) {
  test.before(async () => {
    for (const name of ['bare', 'work', 'share']) await mkdir(box.at(name));
    await run('tar', ['-xf', BARE, '-C', box.at('bare')]);
    await shell('ln "$1" "$2/bundle.tar.gz"', bundleOf(OWN), box.at('share'));
    await writeTree(box.at('share'), { 'old/getconf': "#!/bin/bash\necho 'glibc 2.17'\n" });
  });

  test('a bare system without Node installs a bundle, really, and again', async () => {
    const { status, stdout, stderr } = await inBareSystem(
      `! command -v node; ! ls /usr/lib/*/libatomic.so.1 2>/dev/null
       mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; cd /
       /srv/bundle/install.sh; /srv/bundle/install.sh
       cat /var/lib/curlew/kustomize/web/seen; /srv/bundle/tasks.sh --version; find /tmp -mindepth 1`,
    );
    assert.is(status, 0, stderr);
    assert.match(stdout, /web +1\.0\.0 +installed/);
    assert.match(stdout, /web +1\.0\.0 +already applied/);
    assert.match(stdout, new RegExp(`\nport 8080\n${version.replaceAll('.', String.raw`\.`)}$`));
  });

  test('a system that is too old says so before anything else', async () => {
    const { status, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; : >/srv/bundle/bin/curlew
       PATH="/mnt/old:$PATH" /srv/bundle/install.sh`,
    );
    assert.is(status, 22);
    assert.match(stderr, /^install\.sh: this system has glibc 2\.17, and the curlew of this bundle needs glibc 2\.28/);
  });

  test('a system without libstdc++ is told what is missing', async () => {
    const { status, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; rm /usr/lib/*/libstdc++.so.6
       /srv/bundle/install.sh`,
    );
    assert.is(status, 22);
    assert.match(stderr, /does not run on this system .*libstdc\+\+\.so\.6: cannot open shared object file/);
  });

  test('a bundle that lies where nothing may run says so, and what to do', async () => {
    const { status, stderr } = await inBareSystem(
      `mount -t tmpfs -o noexec,size=300m tmpfs /srv; tar -xzf /mnt/bundle.tar.gz -C /srv
       bash /srv/install.sh`,
    );
    assert.is(status, 25);
    assert.match(stderr, /bin\/curlew must not be executed: its file system is mounted noexec.*remount,exec/);
  });
  test('an install folder from which nothing may run is refused before anything is written', async () => {
    const { status, stdout, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; mount -t tmpfs -o noexec tmpfs /var/lib
       /srv/bundle/install.sh || { code=$?; ls -A /var/lib; exit $code; }`,
    );
    assert.is(status, 25);
    assert.match(stderr, /install into \/var\/lib\/curlew: \/var\/lib is mounted noexec/);
    assert.match(stderr, /hint: name another folder with --install-dir, or run: mount -o remount,exec \/var\/lib/);
    assert.is(stdout, '');
  });
} else {
  test.skip('in a bare system', bare);
}

const emulated = cannotRun('qemu-aarch64-static', '/usr/aarch64-linux-gnu/lib/libstdc++.so.6');
if (emulated === undefined && OWN === 'amd64') {
  test('of arm64, made on amd64, runs under an emulator: version, verify, install', async () => {
    const folder = await unpacked('emulated', 'arm64');
    const curlew = [...ARM64, join(folder, 'bin/curlew')];
    assert.is(await succeeds([...curlew, '--version'], box.path), version);
    await succeeds([...curlew, 'verify', bundleOf('arm64')], box.path);
    const words = ['install', '--bundle', bundleOf('arm64'), '--root', box.at('arm64-root'), '--unconfined'];
    assert.match(await succeeds([...curlew, ...words], box.path), /web +1\.0\.0 +installed/);
    assert.is(await readFile(box.at('arm64-root/var/lib/curlew/kustomize/web/seen'), 'utf8'), 'port 8080\n');
    await run('sha256sum', ['--check', '--status', 'curlew.sha256'], { cwd: join(folder, 'bin') });
  });
} else {
  test.skip('of arm64 under an emulator', emulated ?? 'it is this machine’s own');
}

test.run();
