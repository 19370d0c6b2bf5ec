import { createHash } from 'node:crypto';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { openNodeApi } from '../../src/machine/run/nodes.ts';
import { openSnapshot } from '../../src/machine/run/snapshot-file.ts';
import { keepSnapshot } from '../../src/machine/run/snapshots.ts';
import { planNodeUpgrade, type NodeUpgrade, type UpgradedNode } from '../../src/machine/run/upgrade.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import type { Etcd } from '../../src/cluster/kube/etcd.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';

const test = suite('app/node-upgrade');
const certificate = await makeCertificate();
const PAGE = Buffer.alloc(4096, 7);

/** Sends one page and its digest. */
const ETCD: Etcd = {
  members: async () => [],
  agrees: async () => true,
  remove: async () => undefined,
  size: async () => PAGE.length,
  save: async (write) => {
    write(PAGE);
    write(createHash('sha256').update(PAGE).digest());
  },
  [Symbol.dispose]: () => undefined,
};

interface Scene extends AsyncDisposable {
  readonly api: ApiClient;
  readonly path: string;
  readonly notes: readonly string[];
  readonly before: (hook: (request: string) => void) => void;
  readonly plan: (request?: Partial<UpgradedNode>, etcd?: Etcd) => Promise<NodeUpgrade | undefined>;
}

const METRICS = `# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="flowcontrol.apiserver.k8s.io",removed_release="1.34",resource="flowschemas",subresource="",version="v1beta3"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="later",removed_release="1.35",resource="things",subresource="",version="v1beta1"} 1
`;
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'r1', controller: true };
const PODS = '/api/v1/namespaces/default/pods';

/** Nodes one, a control plane, and two, with a pod on each. */
async function scene(version = 'v1.33.13'): Promise<Scene> {
  const box = await tree();
  let before: ((request: string) => void) | undefined;
  const server = await startMemoryApiServer({ certificate, metrics: METRICS, before: (request) => before?.(request) });
  const api = apiClient(server.kubeconfig);
  for (const name of ['one', 'two']) {
    const labels = name === 'one' ? { 'node-role.kubernetes.io/control-plane': '' } : {};
    await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    await setNode(api, name, version);
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `web-${name}`, namespace: 'default', ownerReferences: [OWNER] },
    };
    await api.create(PODS, { ...pod, spec: { nodeName: name, containers: [{ name: 'main', image: 'web:1' }] } });
  }
  await setCluster(api, version);
  await writeFile(box.at('conf'), server.kubeconfig);
  const notes: string[] = [];
  const context = {
    signal: never,
    report: (event: ProgressEvent) => void (event.type === 'note' && notes.push(event.text)),
    env: { KUBECONFIG: box.at('conf') },
    cwd: box.path,
  };
  return {
    api,
    path: box.path,
    notes,
    before: (hook) => void (before = hook),
    plan: async (request, etcd = ETCD) => {
      const cluster = { ...(await openNodeApi(context)), openEtcd: async () => etcd };
      const versions = { kubernetes: '1.34.4', containerd: undefined };
      const rest = { node: 'one', leads: true, isAdmin: true, directory: box.path, limitMs: 20_000, owed: false };
      return planNodeUpgrade(cluster, { ...versions, ...rest, ...request }, context);
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

async function setNode(api: ApiClient, name: string, kubeletVersion: string, ready = 'True'): Promise<void> {
  const nodeInfo = { kubeletVersion, containerRuntimeVersion: 'containerd://2.2.6+unknown' };
  await api.merge(`/api/v1/nodes/${name}/status`, {
    status: { conditions: [{ type: 'Ready', status: ready }], nodeInfo },
  });
}

async function setCluster(api: ApiClient, version: string): Promise<void> {
  const metadata = { name: 'kubeadm-config', namespace: 'kube-system' };
  const data = { ClusterConfiguration: `kind: ClusterConfiguration\nkubernetesVersion: ${version}\n` };
  const path = '/api/v1/namespaces/kube-system/configmaps';
  const exists = (await api.get(`${path}/kubeadm-config`)).status === 200;
  if (exists) await api.merge(`${path}/kubeadm-config`, { data });
  else await api.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
}

async function cordonOf(api: ApiClient, name: string): Promise<unknown> {
  const { body } = await api.get(`/api/v1/nodes/${name}`);
  return [at(body, 'spec.unschedulable') === true, (at(body, 'metadata.annotations') as never)?.['curlew.dev/cordon']];
}

async function podNames(api: ApiClient): Promise<readonly unknown[]> {
  const items = (await api.get(PODS)).body['items'] as readonly object[];
  return items.map((pod) => at(pod as never, 'metadata.name'));
}

test('the first control plane is saved, cordoned, drained and uncordoned, and names the next node', async () => {
  await using cluster = await scene();
  const upgrade = await cluster.plan();
  assert.equal(upgrade?.steps, [
    'save etcd',
    'cordon one',
    'drain it: 1 pod',
    'Kubernetes v1.33.13 -> v1.34.4',
    'wait until one is ready, and uncordon it',
  ]);
  // A plan changes nothing.
  assert.equal(
    [await cordonOf(cluster.api, 'one'), await podNames(cluster.api)],
    [
      [false, undefined],
      ['web-one', 'web-two'],
    ],
  );
  await upgrade?.begin?.();
  assert.equal([await cordonOf(cluster.api, 'one'), await podNames(cluster.api)], [[true, 'v1.34.4'], ['web-two']]);
  assert.equal((await readdir(`${cluster.path}/etcd`)).length, 1);
  await setCluster(cluster.api, 'v1.34.4');
  await setNode(cluster.api, 'one', 'v1.34.4');
  assert.equal(await upgrade?.finish(), 'next: ./upgrade.sh of the bundle on two');
  assert.equal(await cordonOf(cluster.api, 'one'), [false, undefined]);
  assert.equal(await cluster.plan(), undefined);
});

test('APIs in use that the version no longer has are named before', async () => {
  await using cluster = await scene();
  const text = 'flowcontrol.apiserver.k8s.io/v1beta3 flowschemas is in use, and Kubernetes 1.34 no longer has it';
  assert.equal((await cluster.plan())?.notes, [text]);
});

test('an upgrade that was cut continues, and lifts the cordon that it finds of itself alone', async () => {
  await using cluster = await scene();
  await (await cluster.plan())?.begin?.();
  await setCluster(cluster.api, 'v1.34.4');
  const again = await cluster.plan();
  assert.equal(again?.steps.slice(0, 2), ['cordon one', 'drain it: 0 pods']);
  await setNode(cluster.api, 'one', 'v1.34.4');
  const left = await cluster.plan();
  assert.equal([left?.steps, left?.begin], [['wait until one is ready, and uncordon it'], undefined]);
  await left?.finish();
  assert.equal(await cordonOf(cluster.api, 'one'), [false, undefined]);
  await cluster.api.merge('/api/v1/nodes/two', { spec: { unschedulable: true } });
  const two = await cluster.plan({ node: 'two', leads: false });
  assert.equal(two?.steps[0], 'two is cordoned already, and stays so');
  await two?.begin?.();
  await setNode(cluster.api, 'two', 'v1.34.4');
  assert.equal(await two?.finish(), 'all nodes have v1.34.4');
  assert.equal(await cordonOf(cluster.api, 'two'), [true, undefined]);
});

test('versions that skip a minor, go down or come before the control plane are refused', async () => {
  await using cluster = await scene();
  const refused = async (text: RegExp, request: Partial<UpgradedNode>): Promise<void> =>
    void (await assert.rejectsWith(cluster.plan(request), 'CLUSTER_FAILED', text));
  await refused(/cannot upgrade one: v1.35.4 skips a minor version/, { kubernetes: '1.35.4' });
  await refused(/cannot upgrade one: the cluster has v1.33.13, and kubeadm cannot return/, { kubernetes: '1.32.1' });
  await refused(/cannot upgrade two: the cluster has v1.33.13: its first/, { node: 'two', leads: false });
});

test('a budget that never allows is named before, and stops the drain, but not on a node that is lost', async () => {
  await using cluster = await scene();
  const text = "Cannot evict pod as it would violate the pod's disruption budget.";
  cluster.before((request) => {
    if (request.includes('/web-one/eviction')) throw new StatusError(429, 'TooManyRequests', text);
  });
  const upgrade = await cluster.plan({ limitMs: 400 });
  assert.match(upgrade?.notes[0] ?? '', /^not yet: default\/web-one: .*would violate the pod's disruption budget/);
  await assert.rejectsWith(
    upgrade?.begin?.() ?? Promise.resolve(),
    'CLUSTER_FAILED',
    /default\/web-one: .*disruption budget/,
  );
  // Nothing has changed, so that the node takes pods while the operator looks for a way.
  assert.equal(await cordonOf(cluster.api, 'one'), [false, undefined]);
  await setNode(cluster.api, 'one', 'v1.33.13', 'Unknown');
  await (await cluster.plan())?.begin?.();
  assert.equal(await podNames(cluster.api), ['web-one', 'web-two']);
});

test('pods stay on a node whose pods no other one would take', async () => {
  await using cluster = await scene();
  await cluster.api.merge('/api/v1/nodes/two', { spec: { unschedulable: true } });
  const upgrade = await cluster.plan();
  assert.match(upgrade?.steps[2] ?? '', /no drain: no other node takes pods/);
  await upgrade?.begin?.();
  assert.equal(await podNames(cluster.api), ['web-one', 'web-two']);
});

test('another containerd is an upgrade of its own, and the same one is none', async () => {
  await using cluster = await scene('v1.34.4');
  const steps = (await cluster.plan({ containerd: '2.3.1' }))?.steps ?? [];
  assert.match(steps.join('; '), /drain it: 1 pod; containerd:\/\/2.2.6\+unknown -> 2.3.1; wait/);
  assert.equal(await cluster.plan({ containerd: '2.2.6' }), undefined);
});

const within = (box: Tree) => ({ directory: box.path, kubernetes: box.path, report: () => undefined, signal: never });

async function requireOpens(file: string, box: Tree): Promise<void> {
  await using _ = await openSnapshot(file, { folder: box.path, signal: never });
}

test('snapshots are for root alone, and the last three are kept', async () => {
  await using box = await tree();
  const files: string[] = [];
  for (const hour of [1, 2, 3, 4])
    files.push(await keepSnapshot(ETCD, new Date(Date.UTC(2026, 1, 1, hour)), within(box)));
  assert.equal((await readdir(box.at('etcd'))).length, 3);
  assert.equal((await stat(files[3] ?? '')).mode & 0o777, 0o600);
  await requireOpens(files[3] ?? '', box);
  const cut: Etcd = { ...ETCD, save: async (write) => write(PAGE) };
  await assert.rejectsWith(
    keepSnapshot(cut, new Date(), within(box)),
    'CLUSTER_FAILED',
    /is not a whole snapshot of etcd/,
  );
  assert.equal((await readdir(box.at('etcd'))).length, 3);
});

test('snapshots of the same second, as by a timer and by hand, are all taken', async () => {
  await using box = await tree();
  for (const hour of [1, 2, 3]) await keepSnapshot(ETCD, new Date(Date.UTC(2026, 1, 1, hour)), within(box));
  const now = new Date(Date.UTC(2026, 1, 1, 4));
  let begun = 0;
  let resume = (): void => undefined;
  const both = new Promise<void>((resolve) => (resume = resolve));
  const slow: Etcd = {
    ...ETCD,
    save: async (write) => {
      if (++begun === 2) resume();
      await both;
      await ETCD.save(write);
    },
  };
  const files = await Promise.all([1, 2].map(async () => keepSnapshot(slow, now, within(box))));
  assert.is(files[0], files[1]);
  await requireOpens(files[0] ?? '', box);
  assert.is((await readdir(box.at('etcd'))).length, 3);
});

test('the snapshot that was just taken is never removed, also with a clock that was set back', async () => {
  await using box = await tree();
  for (const hour of [1, 2, 3]) await keepSnapshot(ETCD, new Date(Date.UTC(2026, 1, 1, hour)), within(box));
  const file = await keepSnapshot(ETCD, new Date(Date.UTC(2001, 1, 1)), within(box));
  await requireOpens(file, box);
  assert.equal(await readdir(box.at('etcd')), [
    'etcd-2001-02-01T00-00-00Z.tar',
    'etcd-2026-02-01T02-00-00Z.tar',
    'etcd-2026-02-01T03-00-00Z.tar',
  ]);
});

test('the snapshot from before an upgrade is kept, however often the upgrade is tried', async () => {
  await using box = await tree();
  const at = (hour: number) => new Date(Date.UTC(2026, 1, 1, hour));
  const first = await keepSnapshot(ETCD, at(0), { ...within(box), upgradeTo: 'v1.34.4' });
  for (const hour of [1, 2, 3, 4, 5]) await keepSnapshot(ETCD, at(hour), { ...within(box), upgradeTo: 'v1.34.4' });
  await requireOpens(first, box);
  assert.is((await readdir(box.at('etcd'))).length, 4);
  for (const minor of [35, 36, 37])
    await keepSnapshot(ETCD, at(minor - 29), { ...within(box), upgradeTo: `v1.${minor}.0` });
  await assert.rejectsWith(requireOpens(first, box), 'NOT_FOUND');
  assert.is((await readdir(box.at('etcd'))).length, 6);
});

test('a snapshot that does not fit on the disk is not begun', async () => {
  await using box = await tree();
  let begun = false;
  const huge: Etcd = { ...ETCD, size: async () => 2 ** 60, save: async () => void (begun = true) };
  await assert.rejectsWith(keepSnapshot(huge, new Date(), within(box)), 'NO_SPACE', /are needed/);
  assert.equal([begun, await readdir(box.at('etcd'))], [false, []]);
});

test.run();
