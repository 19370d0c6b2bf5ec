/** The bats files of test/bash once more with bash 5.1, in a bare system of Debian 11 without a network. */
import { execa } from 'execa';
import { mkdir, readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { cannotRun, ROOT, run } from '../components/support/programs.ts';

const test = suite('scripts/lib with bash 5.1', { timeoutMs: 300_000 });

const SYSTEM = join(ROOT, '.curlew/tools/bullseye.tar');
const isDebian = /^ID=debian$/m.test(await readFile('/etc/os-release', 'utf8'));
const reason = cannotRun('unshare', 'chroot', 'mount', SYSTEM) ?? (isDebian ? undefined : 'not a Debian machine');

/** Files of the checkout and of bats, read-only; a folder for temporary files. */
const SCRIPT = `set -eu
root="$1" bats="$2" checkout="$3"
mkdir -p "$root/mnt/bats" "$root/mnt/checkout"
mount --bind -o ro "$bats" "$root/mnt/bats"
mount --bind -o ro "$checkout" "$root/mnt/checkout"
mount -t tmpfs tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" /bin/bash -c 'echo "# bash \${BASH_VERSION}"; exec /bin/bash /mnt/bats/bin/bats --formatter tap /mnt/checkout/test/bash'`;

if (reason !== undefined) {
  test.skip('all of it', reason);
} else {
  await using box = await tree();
  const root = box.at('root');
  await mkdir(root);
  await run('tar', ['-C', root, '-xf', SYSTEM]);
  const words = ['--net', '--mount', '--pid', '--fork', 'bash', '-c', SCRIPT, 'bash'];
  const bats = await realpath(join(ROOT, 'node_modules/bats'));
  const { stdout, stderr } = await execa('unshare', [...words, root, bats, ROOT], {
    reject: false,
    extendEnv: false,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8', HOME: '/root' },
  });
  const results = stdout.split(/^(?=(?:not )?ok \d+ )/m).slice(1);

  test('every bats test was run, by bash 5.1', () => {
    const planned = Number(/^1\.\.(\d+)$/m.exec(stdout)?.[1] ?? 0);
    if (!/^# bash 5\.1/m.test(stdout) || planned === 0 || planned !== results.length)
      throw new Error(`planned ${planned}, ran ${results.length}: ${stdout.slice(0, 500)}${stderr}`);
  });

  test('and none failed', () => {
    const failed = results.filter((text) => text.startsWith('not ok'));
    if (failed.length > 0) throw new Error(failed.join('\n'));
  });
}

test.run();
