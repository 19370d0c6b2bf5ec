/** What was collected is installed by real apt and dpkg, in a real bare system without any network. */
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createHostCollector } from '../../src/build/host-packages/host-collector.ts';
import type { Arch } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { isNightly } from '../support/sweep.ts';
import { servePool } from './support/apt-repository.ts';
import { machineMirror } from './support/machine-mirror.ts';
import { cannotRun, ROOT, run, shell } from './support/programs.ts';
import { MANY_FILES } from './support/tiny-packages.ts';
import { openTinyRepository, TINY_PROGRAMS, type Got, type TinyRepository } from './support/tiny-repository.ts';

const test = suite('apt packages without a network', { timeoutMs: 400_000 });
const reason = cannotRun(...TINY_PROGRAMS, 'unshare', 'chroot', 'mount');
let tiny: TinyRepository;
let got: Got;

function machineArch(): Arch {
  return process.arch === 'arm64' ? 'arm64' : 'amd64';
}

/**
 * Runs a line of bash as root of the bare system, with no network and `folders` mounted there; what it changes is gone
 * afterwards.
 */
async function inBareSystem(release: string, folders: Readonly<Record<string, string>>, line: string): Promise<string> {
  const work = tiny.at('work');
  await rm(work, { recursive: true, force: true });
  await mkdir(work);
  const binds = Object.entries(folders).map(
    ([target, source]) => `mkdir -p "$1/root${target}" && mount --bind -o ro "${source}" "$1/root${target}"`,
  );
  const steps = [
    'mount -t tmpfs -o size=512m tmpfs "$1" && mkdir "$1"/{upper,work,root}',
    `mount -t overlay -o lowerdir="$2",upperdir="$1/upper",workdir="$1/work" overlay "$1/root"`,
    ...binds,
    'mount -t proc proc "$1/root/proc"',
    'exec env -u TMPDIR chroot "$1/root" /bin/bash -euo pipefail -c "$3"',
  ];
  const words = ['--net', '--mount', '--pid', '--fork', 'bash', '-euc', steps.join('\n'), 'bash', work];
  return run('unshare', [...words, tiny.at(release), line], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  });
}

const INSTALLED = `dpkg-query -W -f '\${Package} \${Version} \${db:Status-Status}\\n' 'zebra*' | grep ' installed$' | LC_ALL=C sort`;

/** The library as hooks have it, on a system whose packages are shipped. */
const AS_A_HOOK = `set +u +o pipefail -E
for file in /mnt/lib/*.sh; do . "$file"; done
LSB_DIST=ubuntu DIST_VERSION=22.04 DIST_VERSION_MAJOR=22`;

/** Makes and installs a package of this name and version, with this field besides and without any content. */
const INSTALL_EMPTY = `install_empty() {
  mkdir -p "/tmp/$1/DEBIAN"
  printf 'Package: %s\\nVersion: %s\\nArchitecture: all\\nMaintainer: a <a@example.com>\\n%s\\nDescription: x\\n' \\
    "$1" "$2" "\${3-Section: misc}" >"/tmp/$1/DEBIAN/control"
  dpkg-deb --build "/tmp/$1" "/tmp/$1.deb" && dpkg --install "/tmp/$1.deb"
}`;

function expected(): string {
  return got.packages
    .map(({ name, version }) => `${name} ${version} installed`)
    .toSorted()
    .join('\n');
}

/** Bare systems by the tools that they are; dpkg, apt and bash of the other one are older. */
const OWN = 'minbase';
const OLDER = 'bullseye';

if (reason === undefined) {
  const isDebian = /^ID=debian$/m.test(await readFile('/etc/os-release', 'utf8'));
  const releases = isDebian && isNightly ? [OWN, OLDER] : [OWN];
  test.before(async () => {
    tiny = await openTinyRepository();
    for (const release of releases) {
      await mkdir(tiny.at(release));
      await run('tar', ['-C', tiny.at(release), '-xf', join(ROOT, `.curlew/tools/${release}.tar`)]);
    }
    await using server = await servePool(tiny.served);
    const { signal } = new AbortController();
    got = await tiny.collect(server.url, ['zebra-app', 'zebra-many'], {}, signal);
  });
  test.after(async () => tiny[Symbol.asyncDispose]());

  const folders = (): Readonly<Record<string, string>> => ({
    '/mnt/addon/ubuntu-22.04/archives': got.folder,
    '/mnt/lib': join(ROOT, 'scripts/lib'),
  });

  for (const release of releases) {
    test(`${release}: apt installs from the folder as it lies`, async () => {
      const text = await inBareSystem(
        release,
        { '/mnt/archives': got.folder },
        `rm -rf /etc/apt/sources.list.d
         echo 'deb [trusted=yes] file:/mnt/archives ./' >/etc/apt/sources.list
         apt-get update >&2
         apt-get install --yes --no-install-recommends zebra-app zebra-many >&2
         apt-get check >&2
         ${INSTALLED}
         dpkg -L zebra-many | grep -c /file-`,
      );
      assert.is(text, `${expected()}\n${MANY_FILES}`);
    });

    test(`${release}: install_host_archives installs it with dpkg`, async () => {
      const text = await inBareSystem(
        release,
        { '/mnt/addon/ubuntu-22.04/archives': got.folder, '/mnt/lib': join(ROOT, 'scripts/lib') },
        `rm -rf /etc/apt/sources.list.d /etc/apt/sources.list
         ${AS_A_HOOK}
         install_host_archives /mnt/addon zebra-app zebra-many >&2
         apt-get check >&2
         ${INSTALLED}`,
      );
      assert.is(text, expected());
    });

    test(`${release}: a package that the machine has in a newer version stays, and that is said`, async () => {
      const text = await inBareSystem(
        release,
        folders(),
        `${AS_A_HOOK}
         ${INSTALL_EMPTY}
         install_empty zebra-many 99.0 >&2
         install_host_archives /mnt/addon zebra-app zebra-many 2>&1 | grep -a newer
         ${INSTALLED}`,
      );
      assert.match(text, /zebra-many 99\.0 of this machine is newer than .* in the package, and stays/);
      assert.match(text, /^zebra-many 99\.0 installed$/m);
      assert.match(text, /^zebra-app .* installed$/m);
    });

    test(`${release}: a package of the machine that does not go together with one of them is named in one line`, async () => {
      const text = await inBareSystem(
        release,
        folders(),
        `${AS_A_HOOK}
         ${INSTALL_EMPTY}
         install_empty zebra-foe 1.0 'Conflicts: zebra-lib' >&2
         if install_host_archives /mnt/addon zebra-app 2>&1 | tee /tmp/said >&2; [ "\${PIPESTATUS[0]}" = 0 ]; then exit 1; fi
         grep -a -A9 'conflict: ' /tmp/said
         dpkg-query -W -f '\${Package} \${db:Status-Status}\\n' zebra-foe`,
      );
      assert.match(text, /conflict: zebra-foe conflicts with zebra-lib/);
      assert.match(text, /Host packages zebra-app could not be installed from/);
      assert.match(text, /^zebra-foe installed$/m);
    });

    test(`${release}: what dpkg left half done when it was interrupted is finished, and all is installed`, async () => {
      const text = await inBareSystem(
        release,
        folders(),
        `${AS_A_HOOK}
         dpkg --unpack /mnt/addon/ubuntu-22.04/archives/*.deb >&2 || true
         install_host_archives /mnt/addon zebra-app zebra-many >&2
         dpkg --audit >&2
         ${INSTALLED}`,
      );
      assert.is(text, expected());
    });

    test(`${release}: a dependency that lacks is named in one line`, async () => {
      const less = tiny.at('less-hook');
      await shell('rm -rf "$2" && cp -r "$1" "$2" && rm "$2"/zebra++_*.deb', got.folder, less);
      const text = await inBareSystem(
        release,
        { ...folders(), '/mnt/addon/ubuntu-22.04/archives': less },
        `${AS_A_HOOK}
         if install_host_archives /mnt/addon zebra-app 2>&1; then exit 1; fi`,
      );
      assert.match(text, /zebra-choice needs zebra\+\+.*, which neither this machine nor the add-on has/);
    });

    test(`${release}: packages that the operator has to install are told all at once`, async () => {
      const text = await inBareSystem(
        release,
        { '/mnt/lib': join(ROOT, 'scripts/lib') },
        `${AS_A_HOOK}
         DIST_VERSION=24.04 DEMO_VERSION=1 OTHER_VERSION=2
         cd /tmp
         mkdir -p addons/{demo/1,other/2}/ubuntu-24.04
         printf 'bash\\nzebra-app\\n' >addons/demo/1/ubuntu-24.04/Deps
         printf 'zebra-app\\nzebra-many' >addons/other/2/ubuntu-24.04/Deps
         (preflights_require_host_packages) 2>&1 || echo "status $?"`,
      );
      assert.match(text, /zebra-app is required by demo 1, other 2 \(no repository of this machine offers it\)/);
      assert.match(text, /apt-get install -y zebra-app zebra-many\n/);
      assert.match(text, /status 1$/);
    });

    test(`${release}: without one of its files the folder is not enough`, async () => {
      const less = tiny.at('less');
      await shell('rm -rf "$2" && cp -r "$1" "$2" && rm "$2"/zebra++_*.deb', got.folder, less);
      const failing = inBareSystem(release, { '/mnt/archives': less }, 'dpkg --install /mnt/archives/*.deb');
      assert.match(
        await failing.then(
          () => 'installed',
          (error: unknown) => String(error),
        ),
        /zebra-choice depends on zebra\+\+/,
      );
    });
  }

  test("a distribution's own packages: what lacks in its bare system is there, and no more", async ({ signal }) => {
    const folder = tiny.at('real');
    const scratch = tiny.at('real-scratch');
    await mkdir(folder);
    await mkdir(scratch);
    const mirror = await machineMirror();
    if (mirror === undefined) throw new Error('the machine has no web server with packages');
    const { url, release, key } = mirror;
    const repository = { id: 'machine', url, suites: [release], components: ['main'], key };
    const collector = createHostCollector({
      scripts: join(ROOT, 'scripts'),
      env: process.env,
      repositories: { 'ubuntu-22.04': [repository] },
    });
    const names = ['nfs-common', 'lvm2'];
    const os = 'ubuntu-22.04' as const;
    const what = { id: os, task: 'collect', os, arch: machineArch(), names } as const;
    const request = { ...what, known: undefined, folder, scratch };
    const { packages } = await collector.collect(request, { report: noReport, signal });
    const text = await inBareSystem(
      OWN,
      { '/mnt/archives': folder },
      `dpkg-query -W -f '\${Package}\\n' | LC_ALL=C sort >/tmp/before
       rm -rf /etc/apt/sources.list.d
       echo 'deb [trusted=yes] file:/mnt/archives ./' >/etc/apt/sources.list
       apt-get update >&2
       apt-get install --yes --no-install-recommends nfs-common lvm2 >&2
       apt-get check >&2
       dpkg-query -W -f '\${Package}\\n' | LC_ALL=C sort | LC_ALL=C comm -13 /tmp/before -`,
    );
    assert.equal(text.split('\n'), packages.map(({ name }) => name).toSorted());
  });
}

if (reason !== undefined) test.skip('all', reason);
test.run();
