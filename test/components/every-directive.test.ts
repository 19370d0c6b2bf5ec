/** An add-on that uses every directive: built by either backend, twice the same, held to its lock. Needs root. */
import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { OS_IDS, osRow } from '../../src/core/os.ts';
import * as assert from '../support/assert.ts';
import { curlew, curlewOk, startCurlew } from '../support/curlew.ts';
import { makeImage, makeLayer } from '../support/images.ts';
import { startRegistry, type RegistryServer } from '../support/registry-server.ts';
import { suite } from '../support/suite.ts';
import { leftToOtherRuns } from '../support/sweep.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, writeTree, type Tree } from '../support/tree.ts';
import type { WebServer } from '../support/web-server.ts';
import { addPackages, indexed, repositoryAt, servePool } from './support/apt-repository.ts';
import { BUILDER, cannotRunBuilder, importBuilder } from './support/builder.ts';
import { startEngine, type EngineBox } from './support/engine.ts';
import { shell } from './support/programs.ts';
import { repositoryOf, startRpmLab, type RpmLab } from './support/rpm-lab.ts';
import { openTinyRepository, type TinyRepository } from './support/tiny-repository.ts';

const test = suite('every directive', { timeoutMs: 600_000 });
const reason = cannotRunBuilder();

const PACKAGES = `apt zebra-app
apt24 jq
apt26 jq
yum app
yum8 app
yum9 app
yumol app
yum2023 app
`;
/** Leaves a repository of one package, as containerd's Dockerfiles of kURL do. */
const DOCKERFILE = `FROM ${BUILDER}
ARG VERSION
RUN mkdir -p /out-files /tmp/state && cd /out-files && echo "$VERSION" > version && echo written-by-hand > Deps
RUN dnf --assumeyes --installroot=/tmp/state --setopt=reposdir=/etc/yum.repos.d --releasever=9 --downloadonly \\
    --destdir=/tmp/got install curl-user && cp /tmp/got/curl-user*.rpm /out-files && touch -d @0 /out-files/*.rpm && \\
    createrepo_c --quiet --no-database --simple-md-filenames --revision 1 /out-files && \\
    sed -i 's|<timestamp>[0-9.]*</timestamp>|<timestamp>1</timestamp>|' /out-files/repodata/repomd.xml
CMD cp -r /out-files/. /out/
`;
const image = makeImage([makeLayer({ 'bin/tool': 'tool' })], 'oci', 'tool');

/** A build of all directives, its repetitions and its lock are tried with one of them in each run. */
const BACKENDS = ['without an engine', 'with an engine'] as const;

function whole(backend: (typeof BACKENDS)[number], title: string, body: () => Promise<void>): void {
  const elsewhere = leftToOtherRuns(backend, BACKENDS);
  if (elsewhere === undefined) test(`${backend}: ${title}`, body);
  else test.skip(backend, elsewhere);
}

let tiny: TinyRepository;
let apt: WebServer;
let rpm: RpmLab;
let registry: RegistryServer;
let engine: EngineBox;

/** A repository of add-ons with one that uses all directives that need no engine, and the flags to build it with. */
async function repository(more = ''): Promise<{ readonly box: Tree; readonly flags: readonly string[] }> {
  const repositories = OS_IDS.map((os) => [
    os,
    [osRow(os).family === 'debian' ? repositoryAt(apt.url, tiny.key.ring) : repositoryOf(rpm)],
  ]);
  const box = await tree({
    'addons/all/1.0/Manifest': `image tool registry.example/tool:1\nasset notes ./notes.txt\n${PACKAGES}${more}`,
    'addons/all/1.0/install.sh': 'all() { :; }\n',
    'addons/all/1.0/notes.txt': 'notes\n',
    'config.json': JSON.stringify({ repositories: Object.fromEntries(repositories) }),
  });
  const flags = [
    '--registry-mirror',
    `registry.example=${registry.host}`,
    '--config',
    'config.json',
    '--cache',
    'cache',
  ];
  return { box, flags };
}

async function hashOf(path: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(path))
    .digest('hex');
}

async function listing(path: string): Promise<readonly string[]> {
  const text = await shell('tar -tzf "$1"', path);
  return text.split('\n').map((name) => name.replace('addons/all/1.0/', ''));
}

if (reason === undefined) {
  test.before(async () => {
    tiny = await openTinyRepository();
    apt = await servePool(tiny.served);
    rpm = await startRpmLab();
    registry = await startRegistry({ 'tool:1': image });
    engine = await startEngine(tiny.at('engine'));
    await importBuilder({ engine, tiny, pool: apt, lab: rpm });
  });
  test.after(async () => {
    await engine[Symbol.asyncDispose]();
    await registry[Symbol.asyncDispose]();
    await rpm.close();
    await apt[Symbol.asyncDispose]();
    await tiny[Symbol.asyncDispose]();
  });

  whole('without an engine', "each of kURL's folders is there, and a second build is the same bytes", async () => {
    const { box, flags } = await repository();
    await using _box = box;
    await curlewOk(['build', '--packages-by', 'host', '--update-lock', ...flags], { cwd: box.path });
    const names = await listing(box.at('out/all-1.0.tar.gz'));
    for (const os of ['ubuntu-16.04', 'ubuntu-18.04', 'ubuntu-20.04', 'ubuntu-22.04']) {
      assert.ok(names.includes(`${os}/archives/Packages`), os);
      assert.ok(names.includes(`${os}/archives/zebra-app_2.0-1_amd64.deb`), os);
    }
    for (const os of ['rhel-7', 'rhel-8', 'rhel-9', 'ol-7', 'amazon-2023']) {
      assert.ok(names.includes(`${os}/archives/repodata/repomd.xml`), os);
    }
    assert.not(names.some((name) => name.startsWith('rhel-7-force/archives/repodata')));
    assert.ok(names.some((name) => /^rhel-7-force\/archives\/.*\.rpm$/.test(name)));
    for (const os of ['ubuntu-24.04', 'ubuntu-26.04', 'rhel-9', 'amazon-2023']) {
      assert.ok(names.includes(`${os}/Deps`), os);
    }
    const again = await curlewOk(['build', '--packages-by', 'host', ...flags], { cwd: box.path });
    assert.match(again, /^all 1\.0: unchanged/);
    const elsewhere = ['--packages-by', 'host', '--locked', '--out', 'elsewhere', '--cache', 'other'];
    await curlewOk(['build', ...flags, ...elsewhere], { cwd: box.path });
    assert.is(await hashOf(box.at('elsewhere/all-1.0.tar.gz')), await hashOf(box.at('out/all-1.0.tar.gz')));
  });

  whole('with an engine', 'dockerout too, Deps of what it left, nothing stays in the engine', async () => {
    const { box, flags } = await repository(`dockerout rhel-9 addons/all/template/Dockerfile 1.2\n`);
    await using _box = box;
    await writeTree(box.path, { 'addons/all/template/Dockerfile': DOCKERFILE, 'config.json': '{}' });
    const before = await engine.inventory();
    const builders = OS_IDS.flatMap((os) => ['--builder', `${os}=${BUILDER}`]);
    const how = [...flags, ...builders, '--container-network', 'host'];
    const options = { cwd: box.path, env: engine.env };
    await curlewOk(['build', '--update-lock', ...how], options);
    // So many systems at once wait for one signal: more than Node lets pass without a warning, which is thrown.
    assert.is(await curlewOk(['outdated', ...how], options), 'all 1.0: matches its committed lock');
    const names = await listing(box.at('out/all-1.0.tar.gz'));
    for (const name of ['rhel-9/archives/repodata/repomd.xml', 'rhel-9/repodata/repomd.xml', 'rhel-9/version']) {
      assert.ok(names.includes(name), name);
    }
    assert.ok(names.includes('ubuntu-22.04/archives/zebra-app_2.0-1_amd64.deb'));
    const deps = await shell('tar -xzOf "$1" addons/all/1.0/rhel-9/Deps', box.at('out/all-1.0.tar.gz'));
    const expected = ['bash', 'helper', 'libcurl-minimal', 'library', 'openssl-libs', 'service', 'written-by-hand'];
    assert.equal(deps.split('\n'), expected);
    assert.equal(await engine.inventory(), before);
    assert.match(await curlewOk(['build', ...how], options), /^all 1\.0: unchanged/);
    const elsewhere = ['--locked', '--out', 'elsewhere', '--cache', 'other'];
    await curlewOk(['build', ...how, ...elsewhere], options);
    assert.is(await hashOf(box.at('elsewhere/all-1.0.tar.gz')), await hashOf(box.at('out/all-1.0.tar.gz')));
    await writeFile(box.at('addons/all/template/Dockerfile'), `${DOCKERFILE}# changed\n`);
    const { exitCode, stderr } = await curlew(['build', '--locked', ...how, ...elsewhere], options);
    assert.is(exitCode, 23, stderr);
    assert.match(stderr, /container-build rhel-9 addons\/all\/template\/Dockerfile: locked 1\.2 sha256:/);
    assert.equal(await engine.inventory(), before);
  });

  for (const [what, manifest, dockerfile] of [
    ['a container runs', 'dockerout rhel-9 addons/all/template/Dockerfile 1\n', `FROM ${BUILDER}\nCMD sleep 1000\n`],
    ['packages are fetched', 'apt zebra-app\n', ''],
  ] as const) {
    test(`Ctrl-C while ${what}: status 130, nothing stays in the engine or on disk`, async () => {
      const { box } = await repository();
      await using _box = box;
      await writeTree(box.path, {
        'addons/all/1.0/Manifest': manifest,
        'addons/all/template/Dockerfile': dockerfile,
        'config.json': '{}',
      });
      const before = await engine.inventory();
      const builders = OS_IDS.flatMap((os) => ['--builder', `${os}=${BUILDER}`]);
      const words = ['build', '--container-network', 'host', '--cache', 'cache', ...builders];
      const child = startCurlew(words, { cwd: box.path, env: engine.env });
      while (child.exitCode === null && (await engine.docker('container', 'ls', '--quiet')).trim() === '')
        await wait(20);
      child.kill('SIGINT');
      const { exitCode, stderr } = await child;
      assert.is(exitCode, 130, stderr);
      assert.equal(await engine.inventory(), before);
      assert.equal(await readdir(box.at('out')), []);
      assert.equal(await readdir(box.at('cache/unfinished')), []);
    });
  }

  test('--ca-file is what package managers trust too', async () => {
    const { box, flags } = await repository();
    await using _box = box;
    const certificate = await makeCertificate(['127.0.0.1']);
    await using secure = await servePool(tiny.served, { tls: certificate });
    const debian = OS_IDS.filter((os) => osRow(os).family === 'debian');
    const repositories = debian.map((os) => [os, [repositoryAt(secure.url, tiny.key.ring)]] as const);
    await writeTree(box.path, {
      'addons/all/1.0/Manifest': 'apt zebra-lib\n',
      'ca.pem': certificate.ca,
      'config.json': JSON.stringify({ repositories: Object.fromEntries(repositories) }),
    });
    const how = ['build', '--packages-by', 'host', ...flags];
    const { exitCode, stderr } = await curlew(how, { cwd: box.path });
    assert.is(exitCode, 12, stderr);
    await curlewOk([...how, '--ca-file', 'ca.pem'], { cwd: box.path });
  });

  test('without an engine a dockerout line says how to start one', async () => {
    const { box, flags } = await repository();
    await using _box = box;
    await writeTree(box.path, {
      'addons/all/1.0/Manifest': 'dockerout rhel-9 addons/all/template/Dockerfile 1\n',
      'addons/all/template/Dockerfile': 'FROM registry.example/tool:1\nCMD true\n',
    });
    const env = { DOCKER_HOST: `unix://${box.at('nothing.sock')}` };
    const { exitCode, stderr } = await curlew(['build', ...flags], { cwd: box.path, env });
    assert.is(exitCode, 12, stderr);
    assert.match(stderr, /the Docker engine does not respond/);
    assert.match(stderr, /hint: start it .*DOCKER_HOST/);
  });

  test('a package more: only what is new is fetched', async () => {
    const { box, flags } = await repository();
    await using _box = box;
    await writeFile(box.at('addons/all/1.0/Manifest'), 'apt zebra-lib\n');
    await curlewOk(['build', '--packages-by', 'host', ...flags], { cwd: box.path });
    const asked = apt.log.length;
    await writeFile(box.at('addons/all/1.0/Manifest'), 'apt zebra-lib\napt zebra-early\n');
    await curlewOk(['build', '--packages-by', 'host', ...flags], { cwd: box.path });
    const files = apt.log.slice(asked).flatMap(({ path }) => (path.endsWith('.deb') ? [decodeURIComponent(path)] : []));
    assert.equal([...new Set(files)], ['/pool/zebra-early_1.0_all.deb']);
  });

  test('--locked and outdated notice a package that the repository has in a newer version', async () => {
    const { box, flags } = await repository();
    await using _box = box;
    await writeFile(box.at('addons/all/1.0/Manifest'), 'apt zebra-early\n');
    const how = ['--packages-by', 'host', ...flags];
    await curlewOk(['build', '--update-lock', ...how], { cwd: box.path });
    const folder = box.at('repository');
    await shell('mkdir -p "$2" && cp -a "$1"/repository/pool "$2"/', tiny.at(), folder);
    await addPackages(folder, [{ name: 'zebra-early', version: '1.1' }]);
    await using newer = await servePool(await indexed(folder, tiny.key, ['amd64']));
    const config = JSON.stringify({
      repositories: Object.fromEntries(
        OS_IDS.filter((os) => osRow(os).family === 'debian').map((os) => [
          os,
          [repositoryAt(newer.url, tiny.key.ring)],
        ]),
      ),
    });
    await writeFile(box.at('config.json'), config);
    await rm(box.at('out'), { recursive: true });
    const { exitCode, stderr } = await curlew(['build', '--locked', ...how], { cwd: box.path });
    assert.is(exitCode, 23, stderr);
    assert.match(stderr, /package ubuntu-22\.04 zebra-early\.all: locked 1\.0 sha256:\w+, now 1\.1 sha256:/);
    const text = await curlewOk(['outdated', ...how], { cwd: box.path });
    assert.match(text, /package ubuntu-22\.04 zebra-early\.all\n +locked +1\.0 \w{12}\n +now +1\.1 \w{12}/);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
