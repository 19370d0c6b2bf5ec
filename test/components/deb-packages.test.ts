/** apt-get as the host backend uses it, on a signed repository of tiny packages. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { startProxy } from '../support/proxy-server.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import type { WebServer } from '../support/web-server.ts';
import { servePool } from './support/apt-repository.ts';
import { asOtherUser, OTHER_USER, USER_PROGRAMS } from './support/other-user.ts';
import { cannotRun, shell } from './support/programs.ts';
import { openTinyRepository, TINY_PROGRAMS, type TinyRepository } from './support/tiny-repository.ts';

const test = suite('apt packages on a host');
const reason = cannotRun(...TINY_PROGRAMS, ...USER_PROGRAMS);

let tiny: TinyRepository;

function commandOf(server: WebServer): readonly string[] {
  return server.log.map(({ path }) => decodeURIComponent(path)).filter((path) => path.endsWith('.deb'));
}

function sizeOf(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + Buffer.from(tiny.served[`pool/${file}`] ?? '').byteLength, 0);
}

const APP = [
  'zebra++_0.1_all.deb',
  'zebra-app_2.0-1_amd64.deb',
  'zebra-choice_1.0~rc1+git5-1_all.deb',
  'zebra-early_1.0_all.deb',
  'zebra-lib_2.3-1_all.deb',
  'zebra-mailer_3_all.deb',
];

if (reason === undefined) {
  test.before(async () => {
    tiny = await openTinyRepository();
  });
  test.after(async () => tiny[Symbol.asyncDispose]());

  test('brings what a bare system lacks: dependencies, a choice, a provider, the epoch; nothing recommended', async ({
    signal,
  }) => {
    await using server = await servePool(tiny.served);
    const before = await stateOfMachine();
    const { packages, requires, fetched, files } = await tiny.collect(server.url, ['zebra-app'], {}, signal);
    assert.equal(await stateOfMachine(), before);
    assert.equal(
      packages.map(({ file }) => file),
      APP,
    );
    assert.equal(files, ['Packages', 'Release', ...APP]);
    assert.equal(
      packages.find(({ name }) => name === 'zebra-lib'),
      {
        file: 'zebra-lib_2.3-1_all.deb',
        name: 'zebra-lib',
        version: '1:2.3-1',
        arch: 'all',
        size: sizeOf(['zebra-lib_2.3-1_all.deb']),
        digest: digestOf(tiny.served['pool/zebra-lib_2.3-1_all.deb'] ?? ''),
        repository: `${server.url}/`,
      },
    );
    assert.equal(requires, ['base-files', 'libc6']);
    assert.is(fetched, sizeOf(APP));
    assert.equal(
      commandOf(server).toSorted(),
      APP.map((file) => `/pool/${file}`),
    );
  });

  test('metadata are the stanzas of the signed index, without what depends on the machine', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const { folder } = await tiny.collect(server.url, ['zebra-app'], {}, signal);
    const packages = await readFile(join(folder, 'Packages'), 'utf8');
    const index = String(tiny.served['dists/stable/main/binary-amd64/Packages']);
    assert.match(index, /^Phased-Update-Percentage: 10$/m);
    const expected = APP.map((file) => {
      const stanza = index.split('\n\n').find((text) => text.includes(`/${file}\n`)) ?? '';
      return `${stanza.replace('Phased-Update-Percentage: 10\n', '').replace('Filename: pool/', 'Filename: ./')}\n\n`;
    });
    assert.is(packages, expected.join(''));
    const release = await readFile(join(folder, 'Release'), 'utf8');
    assert.match(release, /^Suite: ubuntu-22\.04$/m);
    assert.ok(release.includes(` ${digestOf(packages).slice(7)} ${Buffer.byteLength(packages)} Packages\n`));
  });

  test('another architecture than the machine has its own packages', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const { packages } = await tiny.collect(server.url, ['zebra-app'], { arch: 'arm64' }, signal);
    assert.equal(
      packages.map(({ file, arch }) => `${file} ${arch}`),
      ['zebra-app_2.0-1_arm64.deb arm64', 'zebra-arm-firmware_1.0_arm64.deb arm64', 'zebra-lib_2.3-1_all.deb all'],
    );
  });

  test('a package of the base system comes when it is named; a name that is provided brings its provider', async ({
    signal,
  }) => {
    await using server = await servePool(tiny.served);
    const { packages } = await tiny.collect(server.url, ['base-files', 'zebra-mail'], {}, signal);
    assert.equal(
      packages.map(({ file }) => file),
      ['base-files_1.0_all.deb', 'zebra-heavy_1.0_all.deb', 'zebra-mailer_3_all.deb'],
    );
  });

  test('what a bare system may have or not, since something else would do there, comes along', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const { packages } = await tiny.collect(server.url, ['zebra-toll'], {}, signal);
    assert.equal(
      packages.map(({ file }) => file),
      ['zebra-heavy_1.0_all.deb', 'zebra-toll_1.0_all.deb'],
    );
  });

  test('twice the same repository: the same bytes', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const first = await tiny.collect(server.url, ['zebra-app', 'zebra-many'], {}, signal);
    const second = await tiny.collect(server.url, ['zebra-many', 'zebra-app'], { known: first.folder }, signal);
    await shell('diff -r "$1" "$2"', first.folder, second.folder);
    assert.equal(second.packages, first.packages);
    assert.is(second.fetched, 0);
    assert.is(commandOf(server).length, APP.length + 1);
  });

  test('with one package more, only that is fetched; what is damaged is fetched again', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const first = await tiny.collect(server.url, ['zebra-app'], {}, signal);
    const lib = join(first.folder, 'zebra-lib_2.3-1_all.deb');
    const content = await readFile(lib);
    await writeFile(lib, content.fill(0, 100, 101));
    const before = commandOf(server).length;
    const wanted = ['zebra-docs_1.0_all.deb', 'zebra-lib_2.3-1_all.deb'];
    const names = ['zebra-app', 'zebra-docs'];
    const { fetched, packages } = await tiny.collect(server.url, names, { known: first.folder }, signal);
    assert.equal(
      commandOf(server).slice(before).toSorted(),
      wanted.map((file) => `/pool/${file}`),
    );
    assert.is(fetched, sizeOf(wanted));
    assert.is(packages.length, APP.length + 1);
  });

  test("the machine's own configuration and package state are neither read nor written", async ({ signal }) => {
    await using server = await servePool(tiny.served);
    const hidden = ['/var/lib/dpkg', '/var/lib/apt', '/var/cache/apt', '/etc/apt'];
    const hide = hidden.map((folder) => `mount -t tmpfs -o ro,size=4k tmpfs ${folder}`).join(' && ');
    const env = await tiny.withBash(`exec unshare -m /bin/bash -c '${hide} && exec /bin/bash "$@"' bash "$@"`);
    const { files } = await tiny.collect(server.url, ['zebra-app'], { env }, signal);
    assert.equal(files, ['Packages', 'Release', ...APP]);
  });

  test('no root is needed', async ({ signal }) => {
    await using server = await servePool(tiny.served);
    await using open = await tree();
    const words = asOtherUser('--no-new-privs', '/bin/bash').map((word) => `'${word}'`);
    const env = await tiny.withBash(
      `chown -R ${OTHER_USER}:${OTHER_USER} ${open.path} && exec ${words.join(' ')} "$@"`,
    );
    const own = { env, folder: open.at('out'), scratch: open.at('scratch') };
    // The way to the key ring and to the scripts is open to all; the folders of tests are not.
    await writeFile(open.at('ring.gpg'), await readFile(tiny.key.ring));
    await mkdir(open.at('out'));
    await mkdir(open.at('scratch'));
    const { files, folder } = await tiny.collect(
      server.url,
      ['zebra-app'],
      { ...own, key: open.at('ring.gpg') },
      signal,
    );
    assert.equal(files, ['Packages', 'Release', ...APP]);
    assert.is(await shell('stat -c %u "$1"/*.deb | sort -u', folder), String(OTHER_USER));
  });

  test('proxies are used, and authorities beside those of the system', async ({ signal }) => {
    const certificate = await makeCertificate(['packages.example']);
    await writeFile(tiny.at('ca.pem'), certificate.ca);
    await using server = await servePool(tiny.served, { tls: certificate });
    const hosts = { 'packages.example:443': server.port };
    await using proxy = await startProxy({ hosts });
    const env = { HTTPS_PROXY: proxy.url, SSL_CERT_FILE: tiny.at('ca.pem') };
    const { packages } = await tiny.collect('https://packages.example', ['zebra-lib'], { env }, signal);
    assert.is(packages.length, 1);
    assert.ok(proxy.log.some((line) => line === 'CONNECT packages.example:443'));
  });

  for (const [what, names, code, message, hint] of [
    [
      'a name that nobody has is named, with those near it',
      ['zebra-doc', 'zebra-app', 'qqqqqq'],
      'PACKAGES_UNRESOLVED',
      /: no such package: qqqqqq, zebra-doc$/,
      /^instead of zebra-doc, did you mean zebra-docs or /,
    ],
    [
      'a pattern, or an order to remove, is only a name that nobody has',
      ['zebra.*', 'zebra-app-'],
      'PACKAGES_UNRESOLVED',
      /no such package: zebra-app-, zebra\.\*$/,
      /zebra-app/,
    ],
    [
      'two that exclude each other: the reason of the resolver',
      ['zebra-app', 'zebra-enemy'],
      'PACKAGES_UNRESOLVED',
      /cannot be installed together\n {2}\| zebra-enemy : Conflicts: zebra-lib but 1:2\.3-1 is to be installed$/,
      /remove one of them/,
    ],
    [
      'a dependency that nothing meets: the reason of the resolver',
      ['zebra-future'],
      'PACKAGES_UNRESOLVED',
      /cannot be installed together\n {2}\| zebra-future : Depends: zebra-lib \(>= 9:0\)[^\n]*$/,
      /remove one of them/,
    ],
  ] as const) {
    test(what, async ({ signal }) => {
      await using server = await servePool(tiny.served);
      const error = await assert.rejectsWith(tiny.collect(server.url, names, {}, signal), code, message);
      assert.match(error.hint ?? '', hint);
      assert.equal(commandOf(server), []);
    });
  }
}

/** Everything that says something of this machine's packages: paths, sizes, times. */
async function stateOfMachine(): Promise<string> {
  return shell('find /var/lib/dpkg /var/lib/apt /var/cache/apt -printf "%p %s %T@ %C@\\n" | sort | sha256sum');
}

if (reason !== undefined) test.skip('all', reason);
test.run();
