/** The deb, the rpm and the image of curlew, each in a bare system that has nothing else of it, with no network. */
import { execa } from 'execa';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { packedExecutableName } from '../../src/core/layout.ts';
import { toolVersion } from '../../src/own/version.ts';
import * as assert from '../support/assert.ts';
import { CHECKOUT } from '../support/built.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { createOpened } from './support/opened.ts';
import { noPageMachine, pageMachine } from './support/page-machine.ts';
import { startImages } from './support/page-servers.ts';
import { cannotRun, oracle, run, shell } from './support/programs.ts';
import { assertSays } from './support/proof.ts';

const test = suite('components/linux-packages', { timeoutMs: 900_000 });
const VERSION = toolVersion();
const MAINTAINER = 'Ann Example <ann@example.com>';
const programs = ['dpkg-deb', 'rpm', 'unshare', 'chroot', 'mount', 'man', 'bsdtar', 'lintian', 'skopeo', 'umoci'];
const reason = cannotRun(oracle('nfpm'), ...programs);
const onAmd64 = process.arch === 'x64' ? reason : 'the packages of amd64 run on amd64';
const checked = unless(onAmd64, test);

const ADDON = `mkdir -p /root/work/addons/hello/1.0.0 && cd /root/work
printf 'asset motd motd.txt\\n' >addons/hello/1.0.0/Manifest
printf 'Hello.\\n' >addons/hello/1.0.0/motd.txt
printf 'function hello() { :; }\\n' >addons/hello/1.0.0/install.sh
printf '%s\\n' 'apiVersion: cluster.kurl.sh/v1beta1' 'kind: Installer' 'metadata: { name: example }' \\
  'spec: { hello: { version: 1.0.x } }' >installer.yaml
`;
/** What a user does with a package first. */
const USE = `curlew --version
${ADDON}
curlew build hello --out out
curlew publish hello --to store --release v1
curlew bundle installer.yaml --from store -o bundle.tar.gz
curlew verify bundle.tar.gz
curlew doctor bundle | grep executables
curlew help install.md | head -1
`;
/** What a machine has besides: shellcheck is no part of an image. */
const MORE = `{ curlew new other && curlew lint other hello; } >&2
tar -xzf bundle.tar.gz ./bin/curlew 2>/dev/null || tar -xzf bundle.tar.gz bin/curlew
bin/curlew --version
`;
/** What packages may change: everything but users' files, and the records of package managers. */
const SNAPSHOT = `snapshot() {
  find / -xdev \\( -path /root -o -path /tmp -o -path /mnt -o -path /proc -o -path /var/lib/dpkg -o -path /var/lib/rpm \\
    -o -path /var/log \\) -prune -o -printf '%p %y %m\\n' | sort
}
`;

const PAGE = await readFile(join(CHECKOUT, 'docs/install.md'), 'utf8');

/** The blocks of a section of docs/install.md, for the version of this checkout: how to install, and how to remove. */
function typed(section: string): readonly [string, string] {
  const [, text = ''] = PAGE.split(`## ${section}\n`);
  const blocks = [...(text.split('\n## ')[0] ?? '').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  const [install = '', remove = ''] = blocks.map((block) => block.replaceAll('VERSION', VERSION));
  assert.ok(install !== '' && remove !== '', section);
  return [install, remove];
}

const opened = createOpened();
let box: Tree;

/**
 * Runs a line of bash as root of a bare Debian 12, with no network, the packages below /mnt, and `prepare` before it outside of the
 * system, whose root is its `$1`. What it changes is gone afterwards.
 */
async function inBareSystem(line: string, prepare = ''): Promise<string> {
  await mkdir(box.at('work'), { recursive: true });
  const steps = [
    'mount -t tmpfs -o size=1500m tmpfs "$1" && mkdir "$1"/{upper,work,root}',
    'mount -t overlay -o lowerdir="$2",upperdir="$1/upper",workdir="$1/work" overlay "$1/root"',
    'mount --bind -o ro "$3" "$1/root/mnt" && mount -t proc proc "$1/root/proc"',
    `set -- "$1/root" "$3" "$4"\n${prepare}`,
    'exec env -i PATH="$PATH" HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive chroot "$1" /bin/bash -euo pipefail -c "$3"',
  ];
  const words = ['--net', '--mount', '--pid', '--fork', 'bash', '-euc', steps.join('\n'), 'bash'];
  return run('unshare', [...words, box.at('work'), box.at('minbase'), box.at('made'), line], {
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
  });
}

if (onAmd64 === undefined) {
  test.before(async () => {
    box = opened.keep(await tree({ 'made/x': '', 'minbase/x': '' }));
    await run('tar', ['-C', box.at('minbase'), '-xf', join(CHECKOUT, '.curlew/tools/minbase.tar')]);
    const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', box.path];
    await execa('npm', pack, { cwd: CHECKOUT, env: { NPM_CONFIG_CACHE: box.at('npm') } });
    const words = ['scripts/build-linux-packages.ts', box.at(`curlew-${VERSION}.tgz`), box.at('made'), 'amd64'];
    const make = [process.execPath, ['--import', 'tsx', ...words]] as const;
    const refused = await execa(...make, { cwd: CHECKOUT, env: { CURLEW_MAINTAINER: 'curlew' }, reject: false });
    assert.match(refused.stderr, /^set CURLEW_MAINTAINER to the name and the mail address of who releases/);
    // What nfpm does by default takes nearly all of the time, and a night does it.
    const env = { CURLEW_MAINTAINER: MAINTAINER, CURLEW_GZIP_LEVEL: '1' };
    const { stderr } = await execa(...make, { cwd: CHECKOUT, env });
    const steps = [
      'collect the files for amd64',
      'make the layers of the image for amd64',
      `compress curlew_${VERSION}_amd64.deb`,
      `compress curlew-${VERSION}.x86_64.rpm`,
      `write curlew-${VERSION}-image.tar`,
    ];
    const said = stderr
      .replaceAll(/\d+ s$/gm, 'N s')
      .split('\n')
      .toSorted();
    assert.equal(said, steps.flatMap((one) => [`${one} …`, `${one}: N s`]).toSorted());
    await run('dpkg-deb', ['-R', box.at('made', `curlew_${VERSION}_amd64.deb`), box.at('older')]);
    await shell(
      `cd "$1"; sed -i 's/^Version: .*/Version: 0.0.1/' DEBIAN/control; echo old >usr/lib/curlew/old.txt
       sed -i 's/"version": "[^"]*"/"version": "0.0.1"/' usr/lib/curlew/package.json
       dpkg-deb --root-owner-group -Znone -b . "$2/older.deb"`,
      box.at('older'),
      box.at('made'),
    );
  });
}
test.after(opened.close);

checked('the deb is all that a bare Debian needs to make a bundle, and removing it leaves nothing', async () => {
  const [install, remove] = typed('Debian and Ubuntu');
  const text = await inBareSystem(`${SNAPSHOT}
snapshot >/tmp/before
cd /mnt
{ ${install} } >&2
dpkg --audit
${USE}${MORE}
{ ${remove} } >&2
snapshot | diff /tmp/before - && echo nothing left`);
  assert.match(text, new RegExp(`^${VERSION}\\n`));
  assert.match(text, /\[PASS\] executables: bundles can be made for amd64 nodes, not for arm64 nodes/);
  assert.match(text, new RegExp(`^# Installing curlew\\n${VERSION}\\nnothing left$`, 'm'));
});

checked('a newer deb replaces an older one, and an unpacked one runs beside it', async () => {
  const text = await inBareSystem(`dpkg -i /mnt/older.deb >&2
dpkg-deb -x /mnt/older.deb /opt/older
curlew --version
dpkg -i /mnt/curlew_${VERSION}_amd64.deb >&2
curlew --version
ln -s /opt/older/usr/bin/curlew /usr/local/bin/older && /usr/local/bin/older --version
ls /usr/lib/curlew/old.txt || echo replaced`);
  assert.is(text, `0.0.1\n${VERSION}\n0.0.1\nreplaced`);
});

checked('rpm --root installs the rpm, and removing it leaves nothing', async () => {
  // The bare system is no rpm distribution: its libraries are not in a database of rpm.
  const [install, remove] = typed('RHEL and relatives').map((block) =>
    block.replace(/^rpm/m, 'rpm --root "$1" --nodeps').replace(/^curlew --version$/m, 'chroot "$1" curlew --version'),
  );
  const left = await inBareSystem(
    `${SNAPSHOT}snapshot | grep -e curlew -e /usr/share/fish -e /usr/share/zsh || echo nothing left`,
    `cd "$2"; { ${install} ${remove} } >&2`,
  );
  assert.is(left, 'nothing left');
});

checked(
  'the image publishes and bundles, in a container without a network, by what its configuration says',
  async () => {
    const [archive, layout] = [box.at('made', `curlew-${VERSION}-image.tar`), `${box.at('oci')}:curlew`];
    await run('skopeo', ['--insecure-policy', 'copy', '-q', `oci-archive:${archive}`, `oci:${layout}`]);
    await run('umoci', ['unpack', '--image', layout, box.at('container')]);
    const { process: started } = JSON.parse(await readFile(box.at('container/config.json'), 'utf8')) as {
      readonly process: { readonly args: readonly string[]; readonly env: readonly string[]; readonly cwd: string };
    };
    assert.equal([started.args, started.cwd], [['/usr/bin/curlew'], '/work']);
    const root = box.at('container/rootfs');
    const contained = async (...words: readonly string[]): Promise<string> => {
      const steps =
        'mkdir -p "$1"/{dev,proc}; mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; shift; exec env -i "$@"';
      const first = ['--net', '--mount', '--pid', '--fork', 'bash', '-euc', steps, 'bash', root];
      return run('/usr/bin/unshare', [...first, ...started.env, '/usr/sbin/chroot', root, ...words]);
    };
    assert.is(await contained(...started.args, '--version'), VERSION);
    const text = await contained('/usr/bin/bash', '-euo', 'pipefail', '-c', USE);
    assert.match(text, /\[PASS\] executables: bundles can be made for amd64 nodes, not for arm64 nodes/);
    assert.match(text, /^# Installing curlew$/m);
  },
);

/** The deb without its large binaries, which checkers read several times; a night checks the deb with them. */
async function leanDeb(): Promise<string> {
  const [lean, made] = [box.at('lean'), box.at('lean.deb')];
  if (existsSync(made)) return made;
  await cp(box.at('older'), lean, { recursive: true, verbatimSymlinks: true });
  await rm(join(lean, 'usr/lib/curlew/old.txt'));
  await copyFile('/bin/true', join(lean, 'usr/lib/curlew/bin/node'));
  await writeFile(join(lean, 'usr/lib/curlew/dist/node', packedExecutableName('amd64')), gzipSync(''));
  await shell(
    `cd "$1"; sed -i "s/^Version: .*/Version: $3/" DEBIAN/control
     find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums
     dpkg-deb --root-owner-group -Zgzip -z1 -b . "$2"`,
    lean,
    made,
    VERSION,
  );
  return made;
}

checked('lintian has nothing to say about the deb', async () => {
  const said = await run('lintian', [await leanDeb()]);
  assertSays('lintian', said === '' ? 'nothing' : 'something', said);
});

unless(onAmd64 ?? cannotRun('piuparts', 'dpkg-scanpackages'), test)(
  'piuparts installs, upgrades, reinstalls and purges the deb, and finds nothing left',
  async () => {
    const deb = await leanDeb();
    const [system, repository, work] = ['system', 'repository', 'work'].map((name) => box.at('piuparts', name));
    await shell(
      `mkdir -p "$1" "$2" "$3" && tar -C "$1" -xf "$4" && mkdir -p "$1"/usr/share/{doc,locale,man/man1}
       cp -a "$5" "$3/old" && cd "$3/old"
       sed -i 's/^Version: .*/Version: 0.0.1/' DEBIAN/control && dpkg-deb --root-owner-group -Zgzip -z1 -b . "$2/old.deb" >&2
       rm -r "$3/old" && cd "$2" && dpkg-scanpackages --multiversion . >Packages
       echo "deb [trusted=yes] file:$2 ./" >"$1/etc/apt/sources.list"`,
      ...[system, repository, work, join(CHECKOUT, '.curlew/tools/minbase.tar'), box.at('lean')].map(String),
    );
    // The bare system has no manual pages and other documentation, which debsums misses; dpkg must have their folders.
    const words = ['--no-eatmydata', '--warn-on-debsums-errors', '--pedantic-purge-test', '--install-purge-install'];
    const places = ['--existing-chroot', system, '--bindmount', repository, '--tmpdir', work, '--keep-sources-list'];
    const { exitCode, all } = await execa(
      'unshare',
      ['--net', '--mount', 'piuparts', ...words, ...places, deb].map(String),
      {
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
        stdin: 'ignore',
        all: true,
        reject: false,
      },
    );
    const tests = [...all.matchAll(/INFO: (PASS: .*)$/gm)].map(([, said]) => said);
    assert.is(/debsums: .*from curlew package/.exec(all)?.[0], undefined);
    assertSays(
      'piuparts',
      exitCode === 0 ? tests.join(' ') : `status ${exitCode}`,
      all
        .split('\n')
        .filter((line) => /FAIL|PASS|^ {2}\//.test(line))
        .join('\n'),
    );
  },
);

unless(onAmd64 ?? cannotRun('rpmlint'), test)('rpmlint has nothing to say about the rpm', async () => {
  const words = ['--config', join(CHECKOUT, 'scripts/linux-packages/rpmlint.toml')];
  const rpm = box.at('made', `curlew-${VERSION}.x86_64.rpm`);
  const { all } = await execa('rpmlint', [...words, rpm], {
    all: true,
    reject: false,
    stdin: 'ignore',
    env: { LC_ALL: 'C.UTF-8' },
  });
  assertSays('rpmlint', /(\d+ errors, \d+ warnings)/.exec(all)?.[0] ?? '', all);
});

checked('both have man pages, the documentation, and completions of bash, zsh and fish', async () => {
  await run('dpkg-deb', ['-x', box.at('made', `curlew_${VERSION}_amd64.deb`), box.at('deb')]);
  await mkdir(box.at('rpm'));
  await run('bsdtar', ['-C', box.at('rpm'), '-xf', box.at('made', `curlew-${VERSION}.x86_64.rpm`)]);
  for (const [kind, zsh] of [
    ['deb', 'vendor-completions'],
    ['rpm', 'site-functions'],
  ] as const) {
    const share = box.at(kind, 'usr/share');
    assert.match(await run('man', ['-M', join(share, 'man'), '-P', 'cat', 'curlew-bundle']), '--from');
    assert.is(
      await shell('ls "$1/docs/install.md"; find -L "$1" -type l', join(share, 'doc/curlew')),
      join(share, 'doc/curlew/docs/install.md'),
    );
    const line = `PATH="$1/../bin:$PATH"; source "$1/bash-completion/completions/curlew"
COMP_LINE='curlew bun' COMP_POINT=10 _curlew curlew bun curlew; echo "\${COMPREPLY[@]}"`;
    assert.is(await run('bash', ['-c', line, 'bash', share]), 'bundle');
    await shell('test -s "$1/zsh/$2/_curlew" && test -s "$1/fish/vendor_completions.d/curlew.fish"', share, zsh);
  }
  const documented = await run('rpm', ['-qpd', box.at('made', `curlew-${VERSION}.x86_64.rpm`)]);
  assert.equal(
    documented.split('\n').toSorted(),
    (await readdir(box.at('rpm/usr/share/man/man1'))).map((name) => `/usr/share/man/man1/${name}`).toSorted(),
  );
  assert.is(await run('rpm', ['-qp', '--scripts', box.at('made', `curlew-${VERSION}.x86_64.rpm`)]), '');
  assert.is(await shell('ls "$1/DEBIAN"', box.at('older')), 'control\nmd5sums');
});

unless(onAmd64 ?? noPageMachine('docker-registry'), test)('every other command of the page works', async () => {
  await using machine = await pageMachine('docs/install.md', {
    hosts: ['registry.example.com'],
    values: { VERSION },
    env: { NPM_CONFIG_PREFIX: '/opt/npm', PATH: '/opt/npm/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  await copyFile(box.at(`curlew-${VERSION}.tgz`), machine.at(`/root/work/curlew-${VERSION}.tgz`));
  await machine.run('sha256sum *.tgz >SHA256SUMS');
  await machine.block('sha256sum --check');
  for (const name of [`curlew_${VERSION}_amd64.deb`, `curlew-${VERSION}-image.tar`]) {
    await copyFile(box.at('made', name), machine.at(`/root/work/${name}`));
  }
  console.log(await machine.block('npm install'));
  console.log(await machine.block('dpkg-deb --extract'));
  await startImages(machine);
  await machine.run(
    'mkdir -p /etc/containers && echo \'{"default":[{"type":"insecureAcceptAnything"}]}\' >/etc/containers/policy.json',
  );
  await machine.block('skopeo copy');
  assert.match(await machine.run('curl -fs https://registry.example.com/v2/curlew/tags/list'), `"${VERSION}"`);
  await machine.block('rm -rf ~/.cache/curlew');
  // Bare systems run these, above.
  assert.equal(
    machine.left().map((line) => line.split(' ')[0]),
    ['dpkg', 'dpkg', 'rpm', 'rpm'],
  );
});

test.run();
