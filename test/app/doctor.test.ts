/** What `curlew doctor` finds on a machine, and when it fails. */
import { symlink, writeFile } from 'node:fs/promises';
import { checksFor, installableText, type DoctorFinding } from '../../src/app/doctor.ts';
import { CurlewError } from '../../src/core/errors.ts';
import { bundleArches, type BundleArches } from '../../src/steps/open/executables.ts';
import { hostArch } from '../../src/steps/sources/run-source.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { curlew } from '../support/curlew.ts';
import { answers } from '../support/faults.ts';
import { kubeconfigText } from '../support/kube-server.ts';
import { runCommand } from '../support/run-command.ts';
import { startSilent } from '../support/silent-server.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';
import { serveFiles } from '../support/web-server.ts';

const test = suite('app/doctor', { timeoutMs: 60_000 });

/** Nothing of this machine responds. */
function bare(box: Tree): Readonly<Record<string, string>> {
  return {
    DOCKER_HOST: `unix://${box.at('none.sock')}`,
    CONTAINERD_ADDRESS: box.at('none.sock'),
    KUBECONFIG: box.at('no'),
  };
}

async function findings(
  box: Tree,
  words: readonly string[],
  env = bare(box),
): Promise<ReadonlyMap<string, DoctorFinding>> {
  const { stdout, stderr } = await runCommand(['doctor', '--json', ...words], box.path, env);
  assert.is(stderr, '');
  return new Map((JSON.parse(stdout) as readonly DoctorFinding[]).map((one) => [one.check, one]));
}

test('a machine without anything gets hints, and nothing fails', async () => {
  await using box = await tree();
  const { exitCode, stdout } = await runCommand(['doctor'], box.path, bare(box));
  assert.is(exitCode, 0, stdout);
  assert.match(stdout, /^\[WARN\] container runtime: neither containerd nor Docker responds\n {7}hint: load-images, /m);
  assert.match(stdout, /^\[WARN\] Docker engine: .*\n {7}hint: builds use it for .*DOCKER_HOST/m);
  assert.match(stdout, /^\[WARN\] cluster: .*no does not exist\n {7}hint: channel and fleet need it: /m);
  assert.match(stdout, /^\[PASS\] cache: \d.* free in /m);
  assert.not.match(stdout, /FAIL|store:/);
});

test('a machine without the programs of the sandbox is warned that trials do not work there', async () => {
  await using box = await tree({ 'bin/x': '' });
  await symlink('/bin/bash', box.at('bin/bash'));
  const trials = (await findings(box, [], { ...bare(box), PATH: box.at('bin') })).get('trials');
  assert.equal(
    [trials?.verdict, trials?.message],
    ['warn', 'missing program: unshare (packages util-linux, iproute2, findutils)'],
  );
  assert.match(trials?.hint ?? '', /^dev, and runs with --root DIR, need a sandbox: install util-linux/);
});

test('programs of the sandbox are found for a user whose PATH lacks the folders of administrators', async () => {
  await using box = await tree();
  const trials = (await findings(box, [], { ...bare(box), PATH: '/usr/bin:/bin' })).get('trials');
  assert.not.match(trials?.message ?? '', /missing program/);
});

test('a named command that cannot work is a failure', async () => {
  await using box = await tree();
  const { exitCode, stdout } = await runCommand(['doctor', 'channel', 'load-images'], box.path, bare(box));
  assert.is(exitCode, 21, stdout);
  assert.equal(
    [...stdout.matchAll(/^\[FAIL\] (.*?):/gm)].map(([, name]) => name),
    ['container runtime', 'cluster'],
  );
});

test('on a node, what only builders need is checked if one of their commands is named', () => {
  const namesOn = (hasPages: boolean, commands: readonly 'build'[] = []): readonly string[] =>
    checksFor({ commands }, hasPages).map(({ name }) => name);
  const builders = ['executables', 'Docker engine', 'registries', 'cache'];
  const node = ['configuration', 'user', 'architecture', 'trials', 'install folder', 'container runtime', 'cluster'];
  assert.equal(namesOn(false), node);
  assert.equal(namesOn(false, ['build']), ['configuration', 'registries', 'cache', ...node.slice(1)]);
  assert.equal(namesOn(true).toSorted(), [...builders, ...node].toSorted());
});

test('the cluster of the option is asked', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate: await makeCertificate() });
  await writeFile(box.at('paris.conf'), server.kubeconfig);
  const found = await findings(box, ['channel', '--kubeconfig', 'paris.conf']);
  assert.is(found.get('cluster')?.verdict, 'pass');
});

test('a store is checked if it is given, and fails if it does not respond', async () => {
  await using box = await tree({ 'dist/VERSION': 'v1.0.0\n', 'empty/x': '' });
  assert.is(
    (await findings(box, ['--from', 'dist'])).get('store')?.message,
    `${box.at('dist')} responds, current is v1.0.0`,
  );
  assert.match((await findings(box, ['--from', 'empty'])).get('store')?.message ?? '', /has no release$/);
  for (const [store, env] of [
    ['nowhere', {}],
    ['http://127.0.0.1:9/dist', {}],
    [
      's3://bucket/x',
      {
        AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:9',
        AWS_ACCESS_KEY_ID: 'a',
        AWS_SECRET_ACCESS_KEY: 'hidden',
        AWS_REGION: 'r',
      },
    ],
  ] as const) {
    const { exitCode, stdout } = await runCommand(['doctor', '--from', store], box.path, { ...bare(box), ...env });
    assert.is(exitCode, 21, stdout);
    assert.match(stdout, /^\[FAIL\] store: /m);
    assert.not.match(stdout, /hidden/);
  }
});

test('a bucket whose server is busy is given up with the reason', async () => {
  await using box = await tree();
  const busy = answers({ status: 503, body: '<Error><Code>SlowDown</Code><Message>busy</Message></Error>' });
  await using server = await serveFiles({}, { faults: [busy] });
  const env = { ...bare(box), AWS_ACCESS_KEY_ID: 'some', AWS_SECRET_ACCESS_KEY: 'hidden' };
  const words = ['doctor', '--from', 's3://bucket/x', '--s3-endpoint', server.url];
  const { stdout } = await curlew(words, { cwd: box.path, env });
  const reason = 'the server asked curlew to slow down (SlowDown: busy)';
  const hint = 'releases are there: run the same command again later';
  assert.match(stdout, `[FAIL] store: cannot read VERSION in s3://bucket/x: ${reason}\n       hint: ${hint}\n`);
  assert.is(server.log.length, 2);
});

test('credentials are named by their registries, and never shown', async () => {
  const auth = Buffer.from('robot:hunter2').toString('base64');
  const config = { auths: { 'quay.io': { auth } }, credHelpers: { 'gcr.io': 'gcloud' }, credsStore: 'pass' };
  await using box = await tree({ '.docker/config.json': JSON.stringify(config) });
  const found = await findings(box, []);
  assert.is(found.get('registries')?.message, 'credentials for quay.io, gcr.io, others from docker-credential-pass');
  assert.not.match(JSON.stringify([...found]), /hunter2|robot/);
});

test('a damaged file of credentials or configuration is reported', async () => {
  await using box = await tree({ '.docker/config.json': '{', '.config/curlew/config.json': '{"unknown": 1}' });
  const found = await findings(box, ['build']);
  assert.is(found.get('registries')?.verdict, 'fail');
  assert.is(found.get('configuration')?.verdict, 'fail');
});

async function archesOf(host: 'amd64' | 'arm64', places: Readonly<Record<string, string>>): Promise<BundleArches> {
  return bundleArches(host, async (arch) => {
    const place = places[arch];
    if (place === undefined) throw new CurlewError('NOT_FOUND', `no executable for ${arch}`, { hint: `get ${arch}` });
    return Promise.resolve(place === '' ? undefined : place);
  });
}

test('the architectures that bundles can be made for are named', async () => {
  const both = await archesOf('arm64', { amd64: '', arm64: '/srv/arm64' });
  assert.equal(both, {
    message: 'bundles can be made for amd64 nodes and arm64 nodes with /srv/arm64',
    hint: undefined,
  });
  const other = await archesOf('amd64', { amd64: '' });
  assert.equal(other, { message: 'bundles can be made for amd64 nodes, not for arm64 nodes', hint: undefined });
});

test('without the executable of its own architecture, or of what bundle is for by default, a machine gets a hint', async () => {
  const own = await archesOf('arm64', { amd64: '' });
  assert.equal(own.hint, 'no executable for arm64; get arm64');
  const byDefault = await archesOf('arm64', { arm64: '' });
  assert.equal(byDefault.message, 'bundles can be made for arm64 nodes, not for amd64 nodes');
  assert.equal(byDefault.hint, 'no executable for amd64; get amd64');
});

test('without any executable, the first one that is missing is the failure', async () => {
  await assert.rejectsWith(archesOf('arm64', {}), 'NOT_FOUND', /no executable for amd64/);
});

test('the architecture of this machine is named, and another one is refused with what it is good for', async () => {
  await using box = await tree();
  assert.match(
    (await findings(box, [])).get('architecture')?.message ?? '',
    /^packages for (?:amd64|arm64) can be installed$/,
  );
  assert.is(installableText('arm64', 'linux'), 'packages for arm64 can be installed');
  assert.is(installableText('arm64', 'darwin'), 'this machine is arm64, but packages are installed on Linux');
  assert.equal([hostArch('x64'), hostArch('arm64')], ['amd64', 'arm64']);
  const { message, hint } = assert.throwsWith(() => hostArch('s390x'), 'UNSUPPORTED');
  assert.is(message, 'cannot install: this machine is s390x; packages are for amd64 and arm64');
  assert.is(hint, 'install on a machine with one of these; this one can build, publish and bundle');
});

test('a store and a cluster that refuse connections are named with this reason, and nothing else is printed', async () => {
  await using box = await tree({
    conf: kubeconfigText('https://127.0.0.1:1', {}, {}),
  });
  const found = await findings(box, ['channel', '--from', 'https://127.0.0.1:1/dist', '--kubeconfig', 'conf']);
  assert.match(
    found.get('store')?.message ?? '',
    /^cannot read VERSION in .*127\.0\.0\.1:1: the connection was refused$/,
  );
  const cluster = found.get('cluster');
  assert.is(cluster?.verdict, 'fail');
  assert.match(
    cluster?.message ?? '',
    /^no answer within 5 seconds: https:\/\/127\.0\.0\.1:1: .*the connection was refused$/,
  );
});

test('what never answers is given up', async () => {
  await using silent = await startSilent();
  await using box = await tree();
  const found = await findings(box, ['--from', `http://127.0.0.1:${silent.port}/x`], {
    ...bare(box),
    DOCKER_HOST: `tcp://127.0.0.1:${silent.port}`,
  });
  assert.is(found.get('Docker engine')?.message, 'no answer within 5 seconds');
  assert.is(found.get('store')?.verdict, 'fail');
});

test.run();
