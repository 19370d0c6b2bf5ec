/** curlew for nodes where nodes are not as this machine: a bare system without Node, another architecture. */
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import type { Outcome } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { writeTree } from '../support/tree.ts';
import { makeSample, outcome, OWN, succeeds, type Sample } from '../components/support/executables.ts';
import { cannotRun, ROOT, run, shell } from '../components/support/programs.ts';

const test = suite('the executable on nodes', { timeoutMs: 300_000 });

const BARE = join(ROOT, '.curlew/tools/bare.tar');
/** With a folder of libraries of arm64, as Debian's cross compilers have them. */
const ARM64 = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu'];
const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };

let box: Sample;

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
    'exec env -u TMPDIR chroot "$1/root" /bin/bash -euo pipefail -c "$4"',
  ];
  const words = ['--net', '--mount', '--pid', '--fork', 'bash', '-euc', steps.join('\n'), 'bash'];
  return outcome(['unshare', ...words, box.at('work'), box.at('bare'), box.at('share'), line], box.path);
}

test.before(async () => {
  box = await makeSample();
});
test.after(async () => box[Symbol.asyncDispose]());

const bare = cannotRun('unshare', 'chroot', 'mount') ?? (existsSync(BARE) ? undefined : 'missing: scripts/tools bare');
if (bare === undefined) {
  test.before(async () => {
    for (const name of ['bare', 'work', 'share']) await mkdir(box.at(name));
    await run('tar', ['-xf', BARE, '-C', box.at('bare')]);
    await shell('ln "$1" "$2/bundle.tar.gz"', box.bundle(OWN), box.at('share'));
    await writeTree(box.at('share'), { 'old/getconf': "#!/bin/bash\necho 'glibc 2.17'\n" });
  });

  test('a bare system without Node installs a bundle, really, and again', async () => {
    const { exitCode, stdout, stderr } = await inBareSystem(
      `! command -v node; ! ls /usr/lib/*/libatomic.so.1 2>/dev/null
       mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; cd /
       /srv/bundle/install.sh; /srv/bundle/install.sh
       cat /var/lib/curlew/kustomize/web/seen; /srv/bundle/tasks.sh --version; find /tmp -mindepth 1`,
    );
    assert.is(exitCode, 0, stderr);
    assert.match(stdout, /web +1\.0\.0 +installed/);
    assert.match(stdout, /web +1\.0\.0 +already applied/);
    assert.match(stdout, new RegExp(`\nport 8080\n${version.replaceAll('.', String.raw`\.`)}$`));
  });

  test('a system that is too old says so before anything else', async () => {
    const { exitCode, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; : >/srv/bundle/bin/curlew
       PATH="/mnt/old:$PATH" /srv/bundle/install.sh`,
    );
    assert.is(exitCode, 22);
    assert.match(stderr, /^install\.sh: this system has glibc 2\.17, and the curlew of this bundle needs glibc 2\.28/);
  });

  test('a system without libstdc++ is told what is missing', async () => {
    const { exitCode, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; rm /usr/lib/*/libstdc++.so.6
       /srv/bundle/install.sh`,
    );
    assert.is(exitCode, 22);
    assert.match(stderr, /does not run on this system .*libstdc\+\+\.so\.6: cannot open shared object file/);
  });

  test('a bundle that lies where nothing may run says so, and what to do', async () => {
    const { exitCode, stderr } = await inBareSystem(
      `mount -t tmpfs -o noexec,size=300m tmpfs /srv; tar -xzf /mnt/bundle.tar.gz -C /srv
       bash /srv/install.sh`,
    );
    assert.is(exitCode, 25);
    assert.match(stderr, /bin\/curlew cannot be executed: its file system is mounted noexec.*remount,exec/);
  });
  test('an install folder from which nothing may run is refused before anything is written', async () => {
    const { exitCode, stdout, stderr } = await inBareSystem(
      `mkdir /srv/bundle; tar -xzf /mnt/bundle.tar.gz -C /srv/bundle; mount -t tmpfs -o noexec tmpfs /var/lib
       /srv/bundle/install.sh || { code=$?; ls -A /var/lib; exit $code; }`,
    );
    assert.is(exitCode, 25);
    assert.match(stderr, /install into \/var\/lib\/curlew: \/var\/lib is mounted noexec/);
    assert.match(stderr, /hint: use another folder with --install-dir, or run: mount -o remount,exec \/var\/lib/);
    assert.is(stdout, '');
  });
} else {
  test.skip('in a bare system', bare);
}

const emulated = cannotRun('qemu-aarch64-static', '/usr/aarch64-linux-gnu/lib/libstdc++.so.6');
if (emulated === undefined && OWN === 'amd64') {
  test('of arm64, made on amd64, runs under an emulator: version, verify, install', async () => {
    const folder = await box.unpack('emulated', 'arm64');
    const program = [...ARM64, join(folder, 'bin/curlew')];
    assert.is(await succeeds([...program, '--version'], box.path), version);
    await succeeds([...program, 'verify', box.bundle('arm64')], box.path);
    const words = ['install', '--bundle', box.bundle('arm64'), '--root', box.at('arm64-root'), '--unconfined'];
    assert.match(await succeeds([...program, ...words], box.path), /web +1\.0\.0 +installed/);
    assert.is(await readFile(box.at('arm64-root/var/lib/curlew/kustomize/web/seen'), 'utf8'), 'port 8080\n');
    await run('sha256sum', ['--check', '--status', 'curlew.sha256'], { cwd: join(folder, 'bin') });
  });
} else {
  test.skip('of arm64 under an emulator', emulated ?? 'it is this machine’s own');
}

test.run();
