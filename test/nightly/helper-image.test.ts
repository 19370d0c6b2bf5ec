/** The image of packages/curlew-utils: made twice, loaded into real runtimes, its programs as add-ons and controllers run them. */
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { execa } from 'execa';
import { once } from 'node:events';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { curlewOk } from '../support/curlew.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from '../components/support/api-server.ts';
import {
  client,
  containerds,
  docker,
  envOf,
  type Env,
  type RuntimeKind,
} from '../components/support/image-runtimes.ts';
import { grpc, messageField, firstField } from '../components/support/grpc.ts';
import { runContainer, startContainer, type ContainerOptions } from '../components/support/helper-containers.ts';
import { createOpened } from '../components/support/opened.ts';
import { cannotRun, ROOT } from '../components/support/programs.ts';
import { cannotServe, S3_KEYS, startS3, type S3Server } from '../components/support/s3-servers.ts';

const test = suite('the helper image', { timeoutMs: 1_200_000 });
const opened = createOpened();
const reason = cannotRun('dpkg-deb', 'curl', 'runc');
let box: Tree;

if (reason !== undefined) {
  test.skip('everything', reason);
} else {
  test.before(async () => {
    box = opened.keep(await tree());
    await cp(join(ROOT, 'packages/curlew-utils/1.0.0'), box.at('packages/curlew-utils/1.0.0'), { recursive: true });
    await mkdir(box.at('packages/curlew-utils/build-images'));
    await make(box.at('packages/curlew-utils/build-images/curlew-utils.tar'), ROOT);
  });
  test.after(opened.close);

  test('is the same whenever and wherever it is made, and small', async () => {
    const first = await readFile(box.at('packages/curlew-utils/build-images/curlew-utils.tar'));
    await make(box.at('again.tar'), box.path);
    assert.ok((await readFile(box.at('again.tar'))).equals(first));
    assert.ok(first.byteLength < 30e6, `${first.byteLength} bytes for both architectures`);
  });

  for (const kind of [...containerds(), docker()]) {
    if (kind.why === undefined) testRuntime(kind);
    else test.skip(kind.title, kind.why);
  }
  const [kind] = containerds();
  const lacks = kind?.why ?? cannotServe('moto') ?? cannotRun(...API_SERVER_PROGRAMS);
  if (lacks === undefined && kind !== undefined) testServices(kind);
  else test.skip('with an object store and an API server', lacks ?? 'no containerd');

  if (cannotRun('qemu-aarch64-static') === undefined) testOther();
  else test.skip('programs for arm64', 'no emulator');
}

/** What is fetched and compiled is kept in the checkout. */
async function make(path: string, cwd: string): Promise<void> {
  const tsx = join(ROOT, 'node_modules/tsx/dist/loader.mjs');
  await execa(process.execPath, ['--import', tsx, join(ROOT, 'scripts/build-helper-image.ts'), path], { cwd });
}

async function buildPackage(...words: readonly string[]): Promise<string> {
  const out = box.at(`out-${words.join('')}`);
  const how = ['--out', out, '--cache', box.at('cache'), ...words];
  await curlewOk(['build', 'packages/curlew-utils/1.0.0', ...how], { cwd: box.path });
  return join(out, `curlew-utils-1.0.0${words.includes('arm64') ? '_arm64' : ''}.tar.gz`);
}

/** Docker reads OCI layouts since version 25: it is given the other form. */
async function load(kind: RuntimeKind, env: Env): Promise<void> {
  const path = await buildPackage(...(kind.name === 'docker' ? ['--image-format', 'docker-archive'] : []));
  await curlewOk(['load-images', '--bundle', path], { cwd: box.path, env });
}

function testRuntime(kind: RuntimeKind): void {
  test(`${kind.title}: it is loaded like the images of any package, and its programs run`, async () => {
    await using daemon = await kind.start(box.at(`runtime-${kind.title}`));
    const env = envOf(kind, daemon);
    await load(kind, env);
    assert.match(
      await client(kind, env, 'images', ...(kind.name === 'docker' ? [] : ['ls'])),
      'localhost/curlew-utils',
    );
    const bash = async (line: string, options: ContainerOptions = {}): Promise<string> => {
      const { stdout, stderr, exitCode } = await runContainer(
        kind,
        env,
        ['/bin/bash', '-c', `set -e\n${line}`],
        options,
      );
      if (exitCode !== 0) throw new Error(`${line}: status ${exitCode}: ${stdout} ${stderr}`);
      return stdout;
    };
    // Pods that test whether nodes reach each other, by TCP and by UDP.
    const talk = `nc -kl 8472 >/tmp/tcp & nc -kulw 0 8472 >/tmp/udp &
      until echo of-tcp | /usr/bin/nc -w 2 127.0.0.1 8472; do sleep 0.1; done
      until grep -q of-udp /tmp/udp; do echo of-udp | /usr/bin/nc -uw 1 127.0.0.1 8472; done
      cat /tmp/tcp; head -n 1 /tmp/udp`;
    assert.is(await bash(talk), 'of-tcp\nof-udp');
    // Controllers that move volumes, and those that measure a disk.
    const folders = { '/source': box.at(`source-${kind.title}`), '/dest': box.at(`dest-${kind.title}`) };
    for (const path of Object.values(folders)) await mkdir(path);
    await writeFile(join(folders['/source'], 'new'), 'of the source', { mode: 0o640 });
    await writeFile(join(folders['/dest'], 'stale'), 'to be deleted');
    await bash('rsync -a -v -P --delete /source/ /dest; stat -c %a /dest/new', { mounts: folders });
    assert.is(await bash('ls /dest; df -B1 /dest | tail -n 1 | wc -w', { mounts: folders }), 'new\n6');
    // Pods that test whether one finds the other.
    const network = `/usr/local/bin/network --server & server=$!
      /usr/local/bin/network --client --address http://127.0.0.1:8080; wait $server; echo both ended`;
    assert.match(await bash(network), /both ended$/);
    assert.is(await bash('/bin/sh -c "sleep 0.1"; id -u'), '0');
    const other = await runContainer(kind, env, ['/usr/local/bin/kurl', 'host', 'preflight']);
    assert.is(other.exitCode, 1);
    assert.match(other.stderr, 'not supported in this image, which has object-store sync only');
    // Velero's way to its plugins.
    const target = box.at(`target-${kind.title}`);
    await mkdir(target);
    const copied = await runContainer(kind, env, [], { mounts: { '/target': target } });
    assert.is(copied.exitCode, 0, copied.stderr);
    assert.ok((await readFile(join(target, 'kotsadmrestore'))).byteLength > 1e6);
  });
}

function testServices(kind: RuntimeKind): void {
  let env: Env;
  let api: ApiServer;

  test('it copies every bucket of an object store into another, by flags and by variables', async () => {
    env = envOf(kind, opened.keep(await kind.start(box.at('runtime'))));
    await load(kind, env);
    const from = opened.keep(await startS3('moto', box.at('from')));
    const to = opened.keep(await startS3('moto', box.at('to')));
    const [source, dest] = [s3Of(from), s3Of(to)];
    const [Bucket, large] = ['second', 'x'.repeat(20 << 20)];
    await source.send(new CreateBucketCommand({ Bucket }));
    const about = { ContentType: 'text/x-test', Metadata: { note: 'kept' } };
    await source.send(new PutObjectCommand({ Bucket, Key: 'a/b c', Body: 'text', ...about }));
    await source.send(new PutObjectCommand({ Bucket, Key: 'empty', Body: '' }));
    await source.send(new PutObjectCommand({ Bucket, Key: 'large', Body: large }));
    await dest.send(new CreateBucketCommand({ Bucket }));
    await dest.send(new PutObjectCommand({ Bucket, Key: 'besides', Body: 'stays' }));
    const { AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;
    const words = ['source', 'dest'].flatMap((name) => [
      `--${name}_host=${(name === 'dest' ? to : from).url.slice('http://'.length)}`,
      `--${name}_access_key_id=${key}`,
      `--${name}_access_key_secret=${secret}`,
    ]);
    const program = '/usr/local/bin/kurl';
    const first = await runContainer(kind, env, [program, 'object-store', 'sync', ...words], { onHost: true });
    assert.is(first.exitCode, 0, first.stderr);
    assert.match(first.stdout, /second: 3 objects copied\n2 buckets copied from 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+$/);
    const textOf = async (Key: string): Promise<readonly unknown[]> => {
      const { Body, ContentType, Metadata } = await dest.send(new GetObjectCommand({ Bucket, Key }));
      return [await Body?.transformToString(), ContentType, Metadata?.['note']];
    };
    assert.equal(await textOf('a/b c'), ['text', 'text/x-test', 'kept']);
    assert.is((await textOf('empty'))[0], '');
    assert.ok((await textOf('large'))[0] === large);
    assert.is((await textOf('besides'))[0], 'stays');

    // The form that EKCO has, with the older name of the verb; keys need not stand in the words.
    const variables = { KURL_SOURCE_ACCESS_KEY_SECRET: secret };
    const fewer = words.filter((word) => !word.startsWith('--source_access_key_secret'));
    const again = await runContainer(kind, env, [program, 'sync-object-store', ...fewer], { onHost: true, variables });
    assert.is(again.exitCode, 0, again.stderr);
    const nowhere = await runContainer(kind, env, [program, 'object-store', 'sync', '--source_host=127.0.0.1:1']);
    assert.is(nowhere.exitCode, 1);
    assert.match(nowhere.stderr, 'kurl: --dest_host is missing');
  });

  test("velero starts its plugin, which gives kotsadm the proxy of this cluster's ConfigMap", async () => {
    api = opened.keep(await startApiServer(box.at('api')));
    const { hostname, port } = new URL(api.url);
    const config = JSON.parse(await readFile(api.kubeconfig, 'utf8')) as Kubeconfig;
    await mkdir(box.at('account'));
    await writeFile(box.at('account/token'), config.users[0].user.token);
    const ca = config.clusters[0].cluster['certificate-authority-data'];
    await writeFile(box.at('account/ca.crt'), Buffer.from(ca, 'base64'));
    await mkdir(box.at('sockets'));
    const mounts = {
      '/sockets': box.at('sockets'),
      '/var/run/secrets/kubernetes.io/serviceaccount': box.at('account'),
    };
    const variables = {
      VELERO_PLUGIN: 'hello',
      VELERO_NAMESPACE: 'velero',
      PLUGIN_UNIX_SOCKET_DIR: '/sockets',
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
    };
    const { id, running } = startContainer(kind, env, ['/usr/local/bin/veleroplugin'], {
      mounts,
      variables,
      onHost: true,
    });
    try {
      let line = '';
      while (!line.endsWith('\n')) line += String((await once(running.stdout, 'data'))[0]);
      const [, socket = ''] = /^1\|2\|unix\|\/sockets\/([^|]+)\|grpc\|/.exec(line) ?? [];
      const call = async (method: string, message: Uint8Array): Promise<Buffer> =>
        grpc(box.at('sockets', socket), `/generated.${method}`, message);
      const listed = (await call('PluginLister/ListPlugins', Buffer.alloc(0))).toString();
      assert.match(listed, /veleroplugin[^]*RestoreItemAction[^]*kurl\.sh\/restore-kotsadm-plugin/);
      const execute = async (item: object): Promise<unknown> => {
        const request = [
          messageField(1, 'kurl.sh/restore-kotsadm-plugin'),
          messageField(2, JSON.stringify(item)),
          messageField(3, '{}'),
        ];
        return JSON.parse(firstField(await call('RestoreItemAction/Execute', Buffer.concat(request))));
      };
      assert.equal(await execute(kotsadm('http://old:1')), kotsadm('http://old:1'), 'no ConfigMap says otherwise');
      await api.kubectl(['create', 'namespace', 'velero']);
      await api.kubectl(['apply', '-f', '-'], JSON.stringify(PLUGIN_CONFIG));
      assert.equal(await execute(kotsadm('http://old:1')), kotsadm('http://new:3128'));
      const other = { kind: 'Deployment', metadata: { name: 'other' }, big: '12345678901234567890' };
      assert.equal(await execute(other), other);
    } finally {
      await client(kind, env, 'tasks', 'kill', '--signal', 'SIGKILL', id);
      await running;
    }
  });
}

function testOther(): void {
  test('programs for arm64 run in an emulator', async () => {
    const root = box.at('arm64');
    await mkdir(root);
    const path = await buildPackage('--arch', 'arm64', '--image-format', 'docker-archive');
    const unpack = `tar -xzOf "$0" packages/curlew-utils/1.0.0/images/curlew-utils.tar.gz | tar -xzf - &&
      tar -xf "$(sed -E 's/.*"Layers":\\["([^"]+)".*/\\1/' manifest.json)"`;
    await execa('bash', ['-c', unpack, path], { cwd: root });
    const run = async (...words: readonly string[]): Promise<string> => {
      const { all } = await execa('qemu-aarch64-static', ['-L', root, ...words], { all: true, reject: false });
      return all;
    };
    assert.match(await run(join(root, 'usr/bin/bash'), '-c', 'echo $HOSTTYPE'), /^aarch64$/);
    assert.match(await run(join(root, 'usr/bin/busybox')), /^BusyBox v/);
    assert.match(await run(join(root, 'usr/bin/nc'), '-h'), /^OpenBSD netcat/);
    assert.match(await run(join(root, 'usr/bin/rsync'), '--version'), /^rsync {2}version/);
    assert.match(await run(join(root, 'usr/local/bin/kurl'), 'x'), 'not supported in this image');
  });
}

interface Kubeconfig {
  readonly users: readonly [{ readonly user: { readonly token: string } }];
  readonly clusters: readonly [{ readonly cluster: { readonly 'certificate-authority-data': string } }];
}

const PLUGIN_CONFIG = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'restore-kotsadm-plugin',
    namespace: 'velero',
    labels: { 'velero.io/plugin-config': '', 'kurl.sh/restore-kotsadm-plugin': 'RestoreItemAction' },
  },
  data: { HTTP_PROXY: 'http://new:3128', HTTPS_PROXY: '' },
};

function kotsadm(proxy: string): object {
  const containers = [{ name: 'kotsadm', env: [{ name: 'HTTP_PROXY', value: proxy }] }, { name: 'other' }];
  return { kind: 'Deployment', metadata: { name: 'kotsadm' }, spec: { template: { spec: { containers } } } };
}

function s3Of({ url }: S3Server): S3Client {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = S3_KEYS;
  const credentials = { accessKeyId, secretAccessKey };
  return new S3Client({ endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials });
}

test.run();
