/** What a node says of its cluster: tested with an API server in this process, and folders as kubeadm makes them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { clusterHealth, type ClusterHealth, type HealthFolders } from '../../src/machine/run/node-health.ts';
import { encodeRecords } from '../../src/cluster/channel/record.ts';
import { apiClient, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/health');
const certificate = await makeCertificate();

interface Scene extends AsyncDisposable {
  readonly box: Tree;
  readonly api: ApiClient;
  readonly stop: () => Promise<void>;
  readonly folders: HealthFolders;
  readonly health: () => Promise<ClusterHealth | undefined>;
}

/** A control plane: its folders, and an API server. */
async function scene(): Promise<Scene> {
  const box = await tree();
  const server = await startMemoryApiServer({ certificate });
  const folders = { kubernetes: box.at('kubernetes'), kubelet: box.at('kubelet'), images: box.at('containerd') };
  for (const name of ['kubernetes/pki/etcd', 'kubelet/pki', 'containerd'])
    await mkdir(box.at(name), { recursive: true });
  await writeFile(box.at('kubernetes/kubelet.conf'), '');
  await writeFile(box.at('kubernetes/admin.conf'), server.kubeconfig);
  const context = { env: { KUBECONFIG: '/does/not/exist' }, signal: never };
  return {
    box,
    api: apiClient(server.kubeconfig),
    stop: async () => server[Symbol.asyncDispose](),
    folders,
    health: async () => clusterHealth(context, folders),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

async function found(one: Scene): Promise<ClusterHealth> {
  const health = await one.health();
  assert.ok(health);
  return health;
}

async function addNode(api: ApiClient, name: string, ready: string, spec: object = {}): Promise<void> {
  const labels = name === 'one' ? { 'node-role.kubernetes.io/control-plane': '' } : {};
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels }, spec });
  const conditions = [{ type: 'Ready', status: ready, reason: 'KubeletNotReady', message: 'no network' }];
  await api.merge(`/api/v1/nodes/${name}/status`, { status: { conditions, nodeInfo: { kubeletVersion: 'v1.34.4' } } });
}

test('a machine that kubeadm has not made a node says nothing about a cluster', async () => {
  await using box = await tree();
  const folders = { kubernetes: box.at('kubernetes'), kubelet: box.at('kubelet'), images: box.at('containerd') };
  assert.is(await clusterHealth({ env: {}, signal: never }, folders), undefined);
});

test('nodes, pods and add-ons that are not healthy have their reasons, and others are not listed', async () => {
  await using one = await scene();
  await addNode(one.api, 'one', 'True');
  await addNode(one.api, 'two', 'False', { unschedulable: true });
  const pods = '/api/v1/namespaces/kube-system/pods';
  for (const [name, ready] of [
    ['web', 'True'],
    ['dns', 'False'],
  ]) {
    const spec = { nodeName: 'two', containers: [{ name: 'main', image: 'main:1' }] };
    await one.api.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'kube-system' }, spec });
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' };
    const containerStatuses = ready === 'True' ? [] : [{ name: 'main', ready: false, state: { waiting } }];
    const conditions = [{ type: 'Ready', status: ready, message: 'containers with unready status' }];
    await one.api.merge(`${pods}/${name}/status`, { status: { phase: 'Running', conditions, containerStatuses } });
  }
  const record = { namespace: 'kube-system', owner: 'shop', since: '2026-01-01T00:00:00.000Z', history: [] };
  const records = encodeRecords([
    { ...record, addon: 'good', state: 'Succeeded', reason: '' },
    { ...record, addon: 'bad', state: 'Failed', reason: 'its Deployment does not start' },
  ]);
  await one.api.create('/api/v1/namespaces/kube-system/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'curlew-addons', namespace: 'kube-system' },
    data: records,
  });
  const health = await found(one);
  assert.equal(health.problems, []);
  assert.equal(
    health.nodes.map(({ name, role, version, cordoned, reason }) => [name, role, version, cordoned, reason !== '']),
    [
      ['one', 'control-plane', '1.34.4', false, false],
      ['two', 'worker', '1.34.4', true, true],
    ],
  );
  assert.match(health.nodes[1]?.reason ?? '', 'no network');
  assert.equal(
    health.pods.map(({ name }) => name),
    ['kube-system/dns'],
  );
  assert.match(
    health.pods[0]?.reason ?? '',
    /ImagePullBackOff.*; if the image is in the bundle: \.\/tasks\.sh load-images on two$/,
  );
  assert.equal(health.addons, [{ name: 'kube-system/bad', reason: 'Failed: its Deployment does not start' }]);
});

test('a hundred pods that are not ready are counted, and some of them shown', async () => {
  await using one = await scene();
  for (let index = 0; index < 25; index += 1) {
    const metadata = { name: `pod-${index}`, namespace: 'default' };
    await one.api.create('/api/v1/namespaces/default/pods', { apiVersion: 'v1', kind: 'Pod', metadata, spec: {} });
  }
  const { pods, morePods } = await found(one);
  assert.equal([pods.length, morePods], [10, 15]);
});

test('the certificate that expires first is at the beginning, and authorities are left out', async () => {
  await using one = await scene();
  const later = await makeCertificate(['localhost'], { notAfterDate: new Date('2040-01-01T00:00:00Z') });
  const soon = await makeCertificate(['localhost'], { notAfterDate: new Date('2030-01-01T00:00:00Z') });
  await writeFile(one.box.at('kubernetes/pki/apiserver.crt'), later.cert);
  await writeFile(one.box.at('kubernetes/pki/ca.crt'), later.ca);
  await writeFile(one.box.at('kubernetes/pki/etcd/server.crt'), 'half written');
  await writeFile(one.box.at('kubelet/pki/kubelet-client-current.pem'), soon.cert);
  const soonest = await makeCertificate(['localhost'], { notAfterDate: new Date('2029-01-01T00:00:00Z') });
  const user = `users:\n- user:\n    client-certificate-data: ${btoa(soonest.cert)}\n`;
  await writeFile(one.box.at('kubernetes/scheduler.conf'), user);
  await writeFile(one.box.at('kubernetes/controller-manager.conf'), user.slice(0, 100));
  const { certificates, problems } = await found(one);
  assert.equal(certificates, [
    { name: 'scheduler.conf', expires: '2029-01-01T00:00:00.000Z' },
    { name: 'pki/kubelet-client-current.pem', expires: '2030-01-01T00:00:00.000Z' },
    { name: 'pki/apiserver.crt', expires: '2040-01-01T00:00:00.000Z' },
  ]);
  assert.equal(problems, [
    'pki/etcd/server.crt is damaged: it has no certificate that can be read',
    'controller-manager.conf is damaged: it has no certificate that can be read',
  ]);
});

test('a certificate that has expired is a problem, and a control plane is not to be removed for it', async () => {
  await using one = await scene();
  const old = await makeCertificate(['localhost'], { notAfterDate: new Date('2020-01-01T00:00:00Z') });
  await writeFile(one.box.at('kubelet/pki/kubelet-client-current.pem'), old.cert);
  const kubelet = 'the certificate pki/kubelet-client-current.pem expired on 2020-01-01:';
  assert.equal((await found(one)).problems, [
    `${kubelet} remove the node (curlew node remove), reset its machine, and let it join again`,
  ]);
  await writeFile(one.box.at('kubernetes/pki/apiserver.crt'), old.cert);
  assert.equal((await found(one)).problems.toSorted(), [
    'the certificate pki/apiserver.crt expired on 2020-01-01: curlew certificates renew',
    `${kubelet} make /etc/kubernetes/kubelet.conf again (kubernetes.io, Troubleshooting kubeadm, Kubelet client certificate rotation fails)`,
  ]);
  // Its certificate of the API server may be damaged, too.
  await writeFile(one.box.at('kubernetes/pki/apiserver.crt'), '');
  await writeFile(one.box.at('kubernetes/pki/front-proxy-client.crt'), certificate.cert);
  assert.match((await found(one)).problems.at(-1) ?? '', `${kubelet} make /etc/kubernetes/kubelet.conf again`);
});

test('components that a cut has left stopped are a problem, with what starts them', async () => {
  await using one = await scene();
  await mkdir(one.box.at('kubernetes/curlew/manifests'), { recursive: true });
  assert.equal((await found(one)).problems, []);
  await writeFile(one.box.at('kubernetes/curlew/manifests/kube-scheduler.yaml'), '');
  assert.match((await found(one)).problems[0] ?? '', 'kube-scheduler stopped: run it again, or curlew node repair');
});

test('components that do not run are named, but those that a cut has left stopped', async () => {
  await using one = await scene();
  await using host = await tree({
    'etc/kubernetes/kubelet.conf': '',
    'etc/kubernetes/pki/apiserver.crt': '',
    'etc/kubernetes/manifests/kube-scheduler.yaml': '',
    'etc/cni/net.d/10-flannel.conflist': '',
    'run/systemd/system/x': '',
    'bin/systemctl': '#!/bin/sh\n[ "$1" = cat ]\n',
    'bin/ctr': '#!/bin/sh\nexit 1\n',
  });
  const env = { PATH: `${host.at('bin')}:${process.env['PATH']}` };
  const broken = async (user?: number) => {
    const folders = { ...one.folders, root: host.path };
    return (await clusterHealth({ env, user, signal: never }, folders))?.broken;
  };
  const stopped = ['the kubelet does not run', 'containerd does not run'];
  const none = (name: string): string => `${name} has no manifest`;
  assert.equal(await broken(0), [...stopped, none('kube-apiserver'), none('kube-controller-manager')]);
  assert.equal(await broken(1000), [], 'only root may ask the container runtime');
  await mkdir(one.box.at('kubernetes/curlew/manifests'), { recursive: true });
  await writeFile(one.box.at('kubernetes/curlew/manifests/kube-apiserver.yaml'), '');
  assert.equal(await broken(0), [...stopped, none('kube-controller-manager')]);
});

test("the disk of images is compared with the kubelet's own limit", async () => {
  await using one = await scene();
  assert.is((await found(one)).images?.limit, 85);
  await writeFile(one.box.at('kubelet/config.yaml'), 'kind: KubeletConfiguration\nimageGCHighThresholdPercent: 70\n');
  const { images } = await found(one);
  assert.is(images?.limit, 70);
  assert.ok(images !== undefined && images.used >= 0 && images.used <= 100);
});

test('an API server that does not answer is a problem, and the rest is shown', async () => {
  await using one = await scene();
  await one.stop();
  const { nodes, problems, images } = await found(one);
  assert.equal(nodes, []);
  assert.is(problems.length, 1);
  assert.match(problems[0] ?? '', 'cannot list nodes');
  assert.ok(images);
});

test.run();
