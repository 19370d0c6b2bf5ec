/** What `curlew doctor` finds on a machine, and when it fails. */
import { createServer, type Server } from 'node:net';
import type { Finding } from '../../src/app/doctor.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/doctor', { timeoutMs: 60_000 });

/** Nothing of this machine responds. */
function bare(box: Tree): Readonly<Record<string, string>> {
  return {
    DOCKER_HOST: `unix://${box.at('none.sock')}`,
    CONTAINERD_ADDRESS: box.at('none.sock'),
    KUBECONFIG: box.at('no'),
  };
}

async function findings(box: Tree, words: readonly string[], env = bare(box)): Promise<ReadonlyMap<string, Finding>> {
  const { stdout, stderr } = await runCommand(['doctor', '--json', ...words], box.path, env);
  assert.is(stderr, '');
  return new Map((JSON.parse(stdout) as readonly Finding[]).map((one) => [one.check, one]));
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

test('a named command that cannot work is a failure', async () => {
  await using box = await tree();
  const { exitCode, stdout } = await runCommand(['doctor', 'channel', 'load-images'], box.path, bare(box));
  assert.is(exitCode, 21, stdout);
  assert.equal(
    [...stdout.matchAll(/^\[FAIL\] (.*?):/gm)].map(([, name]) => name),
    ['container runtime', 'cluster'],
  );
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

test('what never answers is given up', async () => {
  const silent: Server = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  try {
    const address = silent.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await using box = await tree();
    const found = await findings(box, ['--from', `http://127.0.0.1:${port}/x`], {
      ...bare(box),
      DOCKER_HOST: `tcp://127.0.0.1:${port}`,
    });
    assert.is(found.get('Docker engine')?.message, 'no answer within 5 seconds');
    assert.is(found.get('store')?.verdict, 'fail');
  } finally {
    silent.close();
  }
});

test.run();
