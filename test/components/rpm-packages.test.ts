/** rpm packages with the host backend: what comes along, what does not, and that nothing else changes. */
import { chown, cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { depsOf } from '../../src/build/host-packages/deps.ts';
import { rpmRepositoryFile } from '../../src/build/host-packages/rpm-repositories.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';
import { run, shell } from './support/programs.ts';
import {
  cannotRunRpm,
  filesIn,
  labels,
  repositoryOf,
  SCRIPTS,
  startRpmLab,
  take,
  type RpmLab,
} from './support/rpm-lab.ts';
import { metadataPart, namesInMetadata } from './support/rpm-repository.ts';

const test = suite('rpm packages', { timeoutMs: 180_000 });
const NOBODY = 65_534;

/** What dnf and rpm keep of this machine, with times and sizes. Whoever reads the database touches its shared memory. */
async function ownState(): Promise<string> {
  const places =
    '/var/lib/rpm /var/lib/dnf /var/cache/dnf /etc/dnf /etc/yum.repos.d /root/.rpmdb /var/log/dnf* /var/tmp/dnf-*';
  return shell(`find ${places} -not -name '*.sqlite-shm' -printf '%p %s %T@ %m\\n' 2>/dev/null | sort || true`);
}

const reason = cannotRunRpm();
if (reason === undefined) {
  let lab: RpmLab;
  test.before(async () => {
    lab = await startRpmLab();
  });
  test.after(async () => lab.close());

  const APP = [
    'app 2.0-1 noarch',
    'bash 4.4-1 x86_64',
    'filesystem 3.8-6 x86_64',
    'glibc 2.28-1 x86_64',
    'glibc-common 2.28-1 x86_64',
    'helper 1.0-1 noarch',
    'library 1:2.0-3 x86_64',
    'service 4.1-1 noarch',
  ];

  test('what packages require is told of files too, without fetching any', async ({ signal }) => {
    const flat = lab.box.at('flat');
    await shell(
      'mkdir "$2" && find "$1" -name "app-2.0-1*.rpm" -exec cp {} "$2" ";" -o -name "curl-user-*.rpm" -exec cp {} "$2" ";"',
      lab.folder,
      flat,
    );
    const asked = lab.server.log.length;
    const { packages, requires, files } = await take(lab, [], { task: 'requires', os: 'rhel-9', known: flat, signal });
    assert.equal([packages, files], [[], []]);
    assert.equal(depsOf({ direct: [], shipped: [], collected: [{ packages, requires }] }), [
      'bash',
      'helper',
      'libcurl-minimal',
      'library',
      'openssl-libs',
      'service',
    ]);
    assert.is(requires.length, 6);
    assert.equal(
      lab.server.log.slice(asked).filter(({ path }) => path.endsWith('.rpm')),
      [],
    );
  });

  test('all that a package needs comes along: by name, file, capability and epoch, and nothing weak or foreign', async () => {
    const before = await ownState();
    const taken = await take(lab, ['app']);
    assert.equal(labels(taken), APP);
    for (const { repository } of taken.packages) assert.is(repository, `${lab.server.url}/`);
    assert.is(
      taken.fetched,
      taken.packages.reduce((sum, { size }) => sum + size, 0),
    );
    assert.equal(taken.requires, []);
    assert.equal(
      taken.files.filter((file) => !file.endsWith('.rpm')),
      ['filelists.xml.gz', 'other.xml.gz', 'primary.xml.gz', 'repomd.xml'].map((name) => `repodata/${name}`),
    );
    assert.equal(
      await namesInMetadata(taken.folder),
      taken.packages.map(({ name }) => name),
    );
    assert.is(await ownState(), before);
  });

  test('a huge list of files is in the metadata as a whole', async () => {
    const taken = await take(lab, ['many']);
    const text = await metadataPart(taken.folder, 'filelists.xml.gz');
    assert.is(text.match(/<file>\/usr\/share\/many\/deep/g)?.length, 4000);
  });

  test('the same state of the repository gives the same bytes', async () => {
    const [first, second] = [await take(lab, ['app', 'tool-user']), await take(lab, ['tool-user', 'app'])];
    assert.equal(second.files, first.files);
    for (const file of first.files) {
      const [one, two] = await Promise.all([first, second].map(({ folder }) => readFile(join(folder, file))));
      assert.ok(one !== undefined && two !== undefined && one.equals(two), file);
    }
  });

  test('only what is new comes over the network', async () => {
    const first = await take(lab, ['app']);
    const from = lab.server.log.length;
    const second = await take(lab, ['app', 'right'], { known: first.folder });
    const asked = lab.server.log.slice(from).filter(({ path }) => path.endsWith('.rpm'));
    assert.equal(
      asked.map(({ path }) => path),
      ['/noarch/right-3.0-1.noarch.rpm'],
    );
    assert.is(second.fetched, second.packages.find(({ name }) => name === 'right')?.size);
    assert.is(second.packages.length, first.packages.length + 1);
  });

  test('a known file that is damaged is fetched again', async () => {
    const first = await take(lab, ['helper']);
    const file = join(first.folder, first.packages[0]?.file ?? '');
    const bytes = await readFile(file);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await writeFile(file, bytes);
    const second = await take(lab, ['helper'], { known: first.folder });
    assert.is(second.fetched, bytes.length);
    assert.equal(second.packages, first.packages);
  });

  test('what a bare system has is left out where only what is missing is asked for, unless it is named', async () => {
    const taken = await take(lab, ['app'], { os: 'rhel-7-force' });
    assert.equal(labels(taken), [
      'app 2.0-1 noarch',
      'helper 1.0-1 noarch',
      'library 1:2.0-3 x86_64',
      'service 4.1-1 noarch',
    ]);
    assert.equal(
      taken.files.filter((file) => !file.endsWith('.rpm')),
      [],
    );
    assert.equal(taken.requires, ['bash', 'glibc']);
    const named = await take(lab, ['app', 'bash'], { os: 'rhel-7-force' });
    assert.ok(labels(named).includes('bash 4.4-1 x86_64'));
    assert.not.ok(labels(named).includes('glibc 2.28-1 x86_64'));
  });

  test('without resolution only the named come, and for Deps one provider of each requirement', async () => {
    const taken = await take(lab, ['curl-user'], { os: 'rhel-9' });
    assert.equal(labels(taken), ['curl-user 1.0-1 noarch']);
    assert.is(taken.requires.length, 2, taken.requires.join());
    assert.equal(depsOf({ direct: ['lvm2', 'curl-user-tools'], shipped: ['curl-user'], collected: [taken] }), [
      'libcurl-minimal',
      'lvm2',
      'openssl-libs',
    ]);
  });

  test('packages of another architecture are fetched for it', async () => {
    const taken = await take(lab, ['arm-app'], { os: 'rhel-9', arch: 'arm64' });
    assert.equal(labels(taken), ['arm-app 1.0-1 aarch64']);
    assert.equal(taken.requires, ['library']);
    const all = await take(lab, ['helper', 'arm-only'], { os: 'rhel-8', arch: 'arm64' });
    assert.equal(labels(all), ['arm-only 1.0-1 aarch64', 'helper 1.0-1 noarch']);
  });

  test('a module hides what has its name outside of it, and comes with its own documents', async () => {
    const taken = await take(lab, ['tool']);
    assert.equal(labels(taken), ['tool 1.0-1 noarch', 'tool-base 1.0-1 noarch']);
    const text = await metadataPart(taken.folder, 'modules.yaml.gz');
    const named = [...text.matchAll(/^ {2}(?:name|module|stream): "?([^"\n]*)"?$/gm)].map(([, value]) => value);
    assert.equal(named, ['base', 'only', 'tool', '1', 'base', 'only', 'tool', '1']);
    assert.not.match(text, /curlew|kurl/);
  });

  test('no root is needed, and the caller sees nothing of this machine change', async () => {
    await using box = await tree({ out: '', state: '' });
    await shell('rm "$1/out" "$1/state" && mkdir "$1/out" "$1/state" && chmod 0711 "$1"', box.path);
    await shell('chmod 0711 "$1"', lab.box.path);
    await cp(join(SCRIPTS, 'host-packages'), box.at('scripts'), { recursive: true });
    await writeFile(box.at('list'), rpmRepositoryFile([repositoryOf(lab)], 'amd64'));
    for (const name of ['out', 'state']) await chown(box.at(name), NOBODY, NOBODY);
    const before = await ownState();
    const env = {
      PATH: '/usr/bin:/bin',
      HOME: box.at('state'),
      CURLEW_OS: 'rhel-8',
      CURLEW_ARCH: 'amd64',
      CURLEW_TASK: 'collect',
      CURLEW_MODE: 'host',
      CURLEW_RESOLVE: 'all',
      CURLEW_METADATA: '1',
      CURLEW_MODULES: '1',
      CURLEW_KNOWN: '',
      CURLEW_OUT: box.at('out'),
      CURLEW_STATE: box.at('state'),
      CURLEW_REPOSITORIES: box.at('list'),
    };
    const user = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups', '--no-new-privs'];
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    await run('setpriv', [...user, 'env', '-i', ...variables, 'bash', box.at('scripts/rpm.sh'), 'app'], { cwd: '/' });
    assert.is((await filesIn(box.at('out'))).filter((file) => file.endsWith('.rpm')).length, APP.length);
    assert.is(await ownState(), before);
  });
} else {
  test.skip('all of it', reason);
}

test.run();
