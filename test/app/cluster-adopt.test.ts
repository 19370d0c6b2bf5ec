import { readFile, writeFile } from 'node:fs/promises';
import { adoptCluster } from '../../src/app/cluster-adopt.ts';
import { command } from '../../src/cli/commands/cluster-adopt.ts';
import { openApi } from '../../src/cluster/kube/api.ts';
import { openCalls } from '../../src/cluster/kube/call.ts';
import { readHosts } from '../../src/machine/run/cluster-file.ts';
import { seenNodes } from '../../src/machine/run/nodes.ts';
import { planOf } from '../../src/machine/run/planned-cluster.ts';
import { apiClient, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/cluster-adopt');
const certificate = await makeCertificate();
const VERSION = 'v1.31.2';

interface Given {
  readonly role?: 'control-plane' | 'worker';
  readonly address?: string;
  readonly version?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly object[];
}

/** The file once somebody has put in the keys of its hosts. */
function withKeys(text: string): string {
  return text.replaceAll(/# (ssh: .*)/g, '$1').replaceAll('SHA256:…', `SHA256:${'A'.repeat(43)}`);
}

async function addNode(api: ApiClient, name: string, given: Given = {}): Promise<void> {
  const { role = 'worker', address = '10.0.0.1', version = VERSION, labels = {}, taints = [] } = given;
  const roles = role === 'worker' ? {} : { 'node-role.kubernetes.io/control-plane': '' };
  const metadata = { name, labels: { 'kubernetes.io/hostname': name, ...roles, ...labels } };
  const own = role === 'worker' ? [] : [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }];
  await api.create('/api/v1/nodes', {
    apiVersion: 'v1',
    kind: 'Node',
    metadata,
    spec: { taints: [...own, ...taints] },
  });
  const status = {
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [
      { type: 'Hostname', address: name },
      { type: 'InternalIP', address },
    ],
    nodeInfo: { kubeletVersion: version, osImage: 'Debian GNU/Linux 12 (bookworm)' },
  };
  await api.merge(`/api/v1/nodes/${name}/status`, { status });
}

async function addConfig(api: ApiClient, more = ''): Promise<void> {
  const ClusterConfiguration = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: paris
kubernetesVersion: ${VERSION}
networking: { podSubnet: 10.32.0.0/20, serviceSubnet: 10.96.0.0/22, dnsDomain: cluster.local }
${more}`;
  await api.create('/api/v1/namespaces/kube-system/configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'kubeadm-config', namespace: 'kube-system' },
    data: { ClusterConfiguration },
  });
}

type Adopt = (more?: { readonly out?: string; readonly name?: string }) => ReturnType<typeof adoptCluster>;

async function onCluster(work: (api: ApiClient, adopt: Adopt, box: Tree) => Promise<void>): Promise<void> {
  await using box = await tree({ 'keys/conf': '' });
  await using server = await startMemoryApiServer({ certificate });
  await writeFile(box.at('keys/conf'), server.kubeconfig);
  const context = { signal: never, report: noReport, env: {}, cwd: box.path };
  await work(
    apiClient(server.kubeconfig),
    async (more = {}) => adoptCluster({ kubeconfig: 'keys/conf', ...more }, context),
    box,
  );
}

test('the file of a running cluster has its nodes, and with their host keys nothing is to do for it', async () => {
  await onCluster(async (api, adopt, box) => {
    await addConfig(api, 'controlPlaneEndpoint: balancer.example\n');
    const db = { key: 'dedicated', value: 'db', effect: 'NoSchedule' };
    const away = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
    await addNode(api, 'a-worker', { address: '10.0.0.9', labels: { disk: 'ssd' }, taints: [db, away] });
    for (const [at, name] of ['p1', 'p2', 'p3'].entries())
      await addNode(api, name, { role: 'control-plane', address: `10.0.0.${at + 1}` });
    const shown = await adopt();
    const adopted = await adopt({ out: 'paris.yaml' });
    const text = await readFile(box.at('paris.yaml'), 'utf8');
    assert.is(text, shown.text);
    assert.equal(
      adopted.machines.map(({ name, role }) => `${name} ${role}`),
      ['p1 control-plane', 'p2 control-plane', 'p3 control-plane', 'a-worker worker'],
    );
    const lines = command.render(adopted, { request: { out: 'paris.yaml' } } as never, {} as never);
    assert.match(lines, 'a-worker: ssh-keyscan -t ed25519 10.0.0.9 | ssh-keygen -lf -\n');
    const context = { signal: never, report: noReport, env: {}, cwd: box.path };
    await assert.rejectsWith(
      readHosts({ files: ['paris.yaml'] }, 'plan', context),
      'SPEC_INVALID',
      /p1 has no host key/,
    );
    await writeFile(box.at('paris.yaml'), withKeys(text));
    const cluster = await readHosts({ files: ['paris.yaml'] }, 'plan', context);
    assert.equal([cluster.name, cluster.version, cluster.kubeconfig], ['paris', VERSION, box.at('keys/conf')]);
    assert.equal(cluster.installer, { kubernetes: { loadBalancerAddress: 'balancer.example:6443' } });
    const { labels, taints } = cluster.machines[3]?.machine ?? {};
    assert.equal([labels, taints], [{ disk: 'ssd' }, [db]]);
    const kube = await openApi({ env: { KUBECONFIG: box.at('keys/conf') } });
    assert.ok(kube);
    const machines = await seenNodes(openCalls(kube, { patienceMs: 0, signal: never }));
    const members = ['p1', 'p2', 'p3'].map((name) => ({ name, healthy: true }));
    const seen = { complete: true, machines, members };
    const look = { hosts: [], extras: [], seen, held: [], refused: [], isListed: true, speaker: undefined };
    const { steps, held, refused } = planOf(cluster, { ...look, silent: undefined, busy: [], unasked: [] }, undefined);
    assert.equal([steps, held, refused], [[], [], []]);
  });
});

test('other versions are comments, and a control plane that names itself needs no address of all', async () => {
  await onCluster(async (api, adopt) => {
    await addConfig(api, 'controlPlaneEndpoint: 10.0.0.1:6443\n');
    await addNode(api, 'p1', { role: 'control-plane', version: 'v1.32.0' });
    await addNode(api, 'p2', { address: '10.0.0.2', version: 'v1.31.0\nname: eve' });
    const { text, version } = await adopt({ name: 'lyon' });
    assert.is(version, 'v1.32.0');
    assert.match(text, 'name: lyon');
    assert.not.match(text, 'loadBalancerAddress');
    assert.match(text, /^ +# Debian GNU\/Linux 12 \(bookworm\)\n +- name: p1$/m);
    assert.match(text, /# Debian GNU\/Linux 12 \(bookworm\); its kubelet has v1\.31\.0\S*name: eve, not v1\.32\.0\n/);
  });
});

test("the file of a cluster with kURL's internal load balancer says what a machine needs before it joins", async () => {
  await onCluster(async (api, adopt, box) => {
    await addConfig(api, 'controlPlaneEndpoint: localhost:6444\n');
    for (const [at, name] of ['p1', 'p2', 'p3'].entries())
      await addNode(api, name, { role: 'control-plane', address: `10.0.0.${at + 1}` });
    const { text } = await adopt({ out: 'paris.yaml' });
    assert.match(
      text,
      /^# Each machine reaches the API server at localhost:6444, .*\n# A machine that joins needs that proxy before\.\n/,
    );
    await writeFile(box.at('paris.yaml'), withKeys(text));
    const { installer } = await readHosts({ files: ['paris.yaml'] }, 'plan', {
      signal: never,
      report: noReport,
      env: {},
      cwd: box.path,
    });
    assert.equal(installer, { kubernetes: { loadBalancerAddress: 'localhost:6444' } });
  });
});

test('a cluster without nodes, one that kubeadm has not made, and hostile addresses are refused', async () => {
  await onCluster(async (api, adopt) => {
    await assert.rejectsWith(adopt(), 'CLUSTER_FAILED', /no ConfigMap kube-system\/kubeadm-config, so kubeadm has not/);
    await addConfig(api);
    await assert.rejectsWith(adopt(), 'CLUSTER_FAILED', /cannot adopt the cluster: it has no nodes/);
    await addNode(api, 'p2', { address: '10.0.0.2' });
    await assert.rejectsWith(adopt(), 'CLUSTER_FAILED', /none of its nodes is a control plane/);
    await addNode(api, 'p1', { role: 'control-plane', address: '1.1.1.1;reboot' });
    await assert.rejectsWith(adopt(), 'CLUSTER_FAILED', /the Node p1 has the address 1\.1\.1\.1;reboot, which is none/);
  });
});

test('a file that exists is not replaced, and a name that no cluster can have is refused', async () => {
  await onCluster(async (api, adopt, box) => {
    await addConfig(api);
    await addNode(api, 'p1', { role: 'control-plane' });
    await assert.rejectsWith(adopt({ name: 'Paris #1' }), 'CLUSTER_FAILED', /at most 57 lower-case letters/);
    await assert.rejectsWith(
      adopt({ out: 'sites/paris.yaml' }),
      'USAGE',
      /keys\/conf is not in the folder of its file/,
    );
    await writeFile(box.at('paris.yaml'), 'mine');
    await assert.rejectsWith(adopt({ out: 'paris.yaml' }), 'FILE_EXISTS', /paris\.yaml/);
    assert.is(await readFile(box.at('paris.yaml'), 'utf8'), 'mine');
  });
});

test.run();
