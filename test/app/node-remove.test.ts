import { writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { openNodeApi } from '../../src/machine/run/nodes.ts';
import { removeFrom, type NodeRemoval } from '../../src/machine/run/removal.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { removeNode } from '../../src/app/node-remove.ts';
import type { Etcd, Member } from '../../src/cluster/kube/etcd.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import { StatusError } from '../support/api-server/store.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/node-remove');
const certificate = await makeCertificate();

interface Scene extends AsyncDisposable {
  readonly api: ApiClient;
  /** Requests that change something. */
  readonly writes: () => readonly string[];
  readonly notes: readonly string[];
  /** Before each request; what it throws is the answer. */
  readonly before: (hook: (request: string) => void) => void;
  readonly members: Map<string, Member>;
  readonly remove: (
    node: string,
    options?: Partial<Parameters<typeof removeFrom>[2]> & { readonly hasEtcd?: boolean },
  ) => Promise<NodeRemoval>;
}

interface NodeOptions {
  readonly ready?: string;
  readonly control?: boolean;
}

/** Nodes by name, and etcd with a healthy member on each control plane. */
async function scene(nodes: Readonly<Record<string, NodeOptions>>): Promise<Scene> {
  const box = await tree();
  let before: ((request: string) => void) | undefined;
  const server = await startMemoryApiServer({ certificate, before: (request) => before?.(request) });
  const api = apiClient(server.kubeconfig);
  const members = new Map<string, Member>();
  for (const [name, { ready = 'True', control = false }] of Object.entries(nodes)) {
    const labels = control ? { 'node-role.kubernetes.io/control-plane': '' } : {};
    await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const conditions = [{ type: 'Ready', status: ready }];
    const status = { conditions, nodeInfo: { kubeletVersion: 'v1.34.4' } };
    await api.merge(`/api/v1/nodes/${name}/status`, { status });
    const id = String(members.size + 1);
    if (control)
      members.set(name, { id, name, addresses: [], learner: false, healthy: ready === 'True', answers: true });
  }
  const etcd: Etcd = {
    members: async () => [...members.values()],
    agrees: async () => true,
    remove: async (id) => {
      for (const [name, member] of members) if (member.id === id) members.delete(name);
    },
    size: async () => 0,
    save: async () => undefined,
    [Symbol.dispose]: () => undefined,
  };
  await writeFile(box.at('conf'), server.kubeconfig);
  const first = server.requests.length;
  const notes: string[] = [];
  const context = {
    signal: never,
    report: (event: ProgressEvent) => void (event.type === 'note' && notes.push(event.text)),
    env: { KUBECONFIG: box.at('conf') },
    cwd: box.path,
  };
  return {
    api,
    notes,
    members,
    writes: () =>
      server.requests.slice(first).filter((request) => !request.startsWith('GET ') && request !== `POST ${PODS}`),
    before: (hook) => void (before = hook),
    remove: async (node, { hasEtcd = true, ...options } = {}) => {
      const found = hasEtcd ? etcd : undefined;
      const cluster = await openNodeApi(context);
      return removeFrom({ ...cluster, etcd: found }, node, { yes: true, limitMs: 20_000, ...options }, context);
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await box[Symbol.asyncDispose]();
    },
  };
}

const PODS = '/api/v1/namespaces/default/pods';
const THREE = { one: { control: true }, two: { control: true }, three: { control: true } };

async function run(api: ApiClient, name: string, nodeName: string, metadata: object = {}): Promise<void> {
  const containers = [{ name: 'main', image: 'web:1' }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', ...metadata } };
  await api.create(PODS, { ...pod, spec: { nodeName, containers } });
}

function phases({ steps }: NodeRemoval): readonly string[] {
  return steps.map(({ phase }) => phase);
}

test('a control plane leaves in four steps, each of which is shown first and changes nothing then', async () => {
  await using cluster = await scene(THREE);
  await run(cluster.api, 'web', 'three');
  const shown = await cluster.remove('three', { yes: false });
  const all = ['mark', 'drain', 'remove-member', 'delete-node'];
  assert.equal([phases(shown), shown.isDone, cluster.writes()], [all, false, []]);
  const done = await cluster.remove('three');
  assert.equal([phases(done), done.isDone, done.others], [all, true, ['one', 'two']]);
  assert.equal(done.notes, ['etcd has 2 members without three, and survives no failure, like 1: add a control plane']);
  assert.equal([...cluster.members.keys()], ['one', 'two']);
  const writes = cluster.writes().map((request) => request.replace(/\?.*/, ''));
  assert.equal(writes, ['PATCH /api/v1/nodes/three', `POST ${PODS}/web/eviction`, 'DELETE /api/v1/nodes/three']);
});

test('a node that the cluster does not have, or no longer has, is an error that names the nearest or all of them', async () => {
  await using cluster = await scene(THREE);
  const expected = /cannot remove tree: the cluster has no such node/;
  for (const yes of [false, true]) {
    const { hint } = await assert.rejectsWith(cluster.remove('tree', { yes }), 'NOT_FOUND', expected);
    assert.is(hint, 'did you mean three?');
  }
  await cluster.remove('three');
  const { hint } = await assert.rejectsWith(cluster.remove('three'), 'NOT_FOUND', /cannot remove three/);
  assert.is(hint, 'there are one, two');
});

test('what a removal leaves is counted by members of etcd, not by Nodes', async () => {
  await using cluster = await scene(THREE);
  for (const name of ['two', 'three']) cluster.members.delete(name);
  assert.equal((await cluster.remove('three')).notes, []);
});

test('a member of etcd that a node has left is removed', async () => {
  await using cluster = await scene(THREE);
  await cluster.api.remove('/api/v1/nodes/three');
  assert.equal(phases(await cluster.remove('three')), ['remove-member']);
  assert.equal([...cluster.members.keys()], ['one', 'two']);
});

test('a member of etcd that has another name than its node is known by its address', async () => {
  await using cluster = await scene(THREE);
  for (const [at, name] of ['one', 'two', 'three'].entries()) {
    const addresses = [`10.0.0.${at + 1}`];
    await cluster.api.merge(`/api/v1/nodes/${name}/status`, {
      status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
    });
    const member = cluster.members.get(name);
    if (member !== undefined && name !== 'one') cluster.members.set(name, { ...member, name: `infra${at}`, addresses });
  }
  // A worker that has the address of a member is not its node.
  const worker = { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] };
  await cluster.api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'four' } });
  await cluster.api.merge('/api/v1/nodes/four/status', { status: worker });
  assert.equal(phases(await cluster.remove('four', { yes: false })), ['mark', 'delete-node']);
  assert.equal(phases(await cluster.remove('three')), ['mark', 'remove-member', 'delete-node']);
  assert.equal([...cluster.members.keys()], ['one', 'two']);
});

test('pods of DaemonSets and of the kubelet itself stay, and an orphan goes', async () => {
  await using cluster = await scene({ one: { control: true }, two: {} });
  const { api } = cluster;
  const owned = (name: string) => ({
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name, uid: 'u', controller: true }],
  });
  const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'main', image: 'a:1' }] } };
  const spec = { selector: { matchLabels: { app: 'a' } }, template };
  const agent = { apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'agent', namespace: 'default' }, spec };
  await api.create('/apis/apps/v1/namespaces/default/daemonsets', agent);
  await run(api, 'agent-1', 'two', owned('agent'));
  await run(api, 'orphan', 'two', owned('gone'));
  await run(api, 'static', 'two', { annotations: { 'kubernetes.io/config.mirror': 'x' } });
  await run(api, 'elsewhere', 'one');
  await cluster.remove('two');
  const left = ((await api.get(PODS)).body['items'] as readonly object[]).map((pod) =>
    at(pod as never, 'metadata.name'),
  );
  assert.equal(left, ['agent-1', 'elsewhere', 'static']);
});

test('a budget that never allows stops the drain with the reason of each pod, and the node takes pods again if none was evicted', async () => {
  await using cluster = await scene({ one: { control: true }, two: {} });
  await run(cluster.api, 'web', 'two');
  const text = "Cannot evict pod as it would violate the pod's disruption budget.";
  cluster.before((request) => {
    if (request.includes('/eviction')) throw new StatusError(429, 'TooManyRequests', text);
  });
  const removal = cluster.remove('two', { limitMs: 1 });
  const why = /cannot drain two .*default\/web: .*disruption budget.*; none was evicted, so it takes pods again/;
  await assert.rejectsWith(removal, 'CLUSTER_FAILED', why);
  const states = async (): Promise<unknown> => {
    const { body } = await cluster.api.get('/api/v1/nodes/two');
    return [at(body, 'spec.unschedulable') === true, JSON.stringify(body).includes('curlew.dev/leaving')];
  };
  assert.equal(await states(), [false, false]);
  assert.ok(cluster.notes.some((note) => note.includes('disruption budget')));
  // Where a pod was evicted, it stays cordoned and marked, and what ends that is said before, also for who cuts it.
  cluster.before((request) => {
    if (request.includes('/web/eviction')) throw new StatusError(429, 'TooManyRequests', text);
  });
  await run(cluster.api, 'other', 'two');
  const cut = await assert.rejectsWith(cluster.remove('two', { limitMs: 1 }), 'CLUSTER_FAILED', /cannot drain two/);
  assert.match(cut.hint ?? '', /; kubectl uncordon two lets it take pods again$/);
  const undo = 'two: no new pods, also if this ends early: run it again, or kubectl uncordon two';
  assert.ok(cluster.notes.includes(undo), cluster.notes.join());
  assert.equal(await states(), [true, true]);
  cluster.before(() => undefined);
  assert.equal(phases(await cluster.remove('two')), ['drain', 'delete-node']);
});

test('a node that does not answer is not drained, whatever its budgets are', async () => {
  await using cluster = await scene({ one: { control: true }, two: { ready: 'Unknown' } });
  await run(cluster.api, 'web', 'two');
  const { notes, ...removal } = await cluster.remove('two');
  assert.equal(phases({ ...removal, notes }), ['mark', 'delete-node']);
  assert.equal(notes, ['two does not answer, so its pods are not waited for: make sure that it is off']);
});

test('a drain ends when the node stops answering in the middle of it', async () => {
  await using cluster = await scene({ one: { control: true }, two: {} });
  await run(cluster.api, 'web', 'two', { finalizers: ['example.com/held'] });
  let lost: Promise<unknown> | undefined;
  cluster.before((request) => {
    if (!request.includes('/eviction')) return;
    const conditions = [{ type: 'Ready', status: 'Unknown' }];
    lost ??= cluster.api.merge('/api/v1/nodes/two/status', { status: { conditions } });
  });
  assert.equal(phases(await cluster.remove('two')), ['mark', 'drain', 'delete-node']);
  await lost;
});

test('the last healthy control plane stays, and one without which etcd has no quorum', async () => {
  await using last = await scene({ one: { control: true }, two: {} });
  await assert.rejectsWith(
    last.remove('one'),
    'CLUSTER_FAILED',
    /cannot remove one: no other control plane is healthy/,
  );
  await using cluster = await scene({ ...THREE, two: { control: true, ready: 'Unknown' } });
  await assert.rejectsWith(cluster.remove('three'), 'CLUSTER_FAILED', /etcd would lose its quorum without it: 2 of 2/);
  assert.equal(phases(await cluster.remove('two')), ['mark', 'remove-member', 'delete-node']);
  await using learning = await scene(THREE);
  learning.members.set('one', { addresses: [], id: '1', name: 'one', learner: true, healthy: true, answers: true });
  await assert.rejectsWith(learning.remove('three'), 'CLUSTER_FAILED', /none a learner/);
  assert.equal([...last.writes(), ...learning.writes()], []);
});

test('a removal that was cut before any of its requests goes on where that was', async () => {
  const changes = ['PATCH /api/v1/nodes/three', 'POST', 'DELETE /api/v1/nodes/three'];
  for (const change of changes) {
    await using cluster = await scene(THREE);
    await run(cluster.api, 'web', 'three');
    cluster.before((request) => {
      if (request.startsWith(change)) throw new StatusError(403, 'Forbidden', 'cut');
    });
    await cluster.remove('three', { limitMs: 1 }).catch(() => undefined);
    cluster.before(() => undefined);
    assert.ok((await cluster.remove('three')).isDone, change);
    await assert.rejectsWith(cluster.remove('three', { yes: false }), 'NOT_FOUND', /no such node/);
    assert.equal([...cluster.members.keys()], ['one', 'two']);
  }
});

test('without a list of members a worker leaves, and what may have left one behind is not taken as gone', async () => {
  await using cluster = await scene({ ...THREE, four: {} });
  assert.ok((await cluster.remove('four', { hasEtcd: false })).isDone);
  await cluster.api.remove('/api/v1/nodes/three');
  for (const node of ['three', 'two']) {
    const removal = cluster.remove(node, { hasEtcd: false });
    await assert.rejectsWith(removal, 'CLUSTER_FAILED', /the members of etcd could not be listed/);
  }
});

test('a node whose name a member of etcd has leaves like a control plane, whatever its labels are', async () => {
  await using cluster = await scene(THREE);
  const labels = { 'node-role.kubernetes.io/control-plane': null };
  for (const name of ['two', 'three']) await cluster.api.merge(`/api/v1/nodes/${name}`, { metadata: { labels } });
  cluster.members.set('one', { addresses: [], id: '1', name: 'one', learner: false, healthy: false, answers: false });
  await assert.rejectsWith(cluster.remove('three'), 'CLUSTER_FAILED', /no other control plane is healthy/);
});

test('a node that was opened again is closed before its pods go', async () => {
  await using cluster = await scene({ one: { control: true }, two: {} });
  const metadata = { annotations: { 'curlew.dev/leaving': '2026-01-01T00:00:00Z' } };
  await cluster.api.merge('/api/v1/nodes/two', { metadata });
  await run(cluster.api, 'web', 'two');
  assert.equal(phases(await cluster.remove('two')), ['mark', 'drain', 'delete-node']);
});

test('a node with an address of this machine is the machine itself, whatever its name is', async () => {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  const api = apiClient(server.kubeconfig);
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'other' } });
  const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }];
  await api.merge('/api/v1/nodes/other/status', { status: { addresses } });
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: () => undefined, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  await assert.rejectsWith(removeNode({ node: 'other', yes: true }, context), 'USAGE', /it is this machine/);
});

test('the machine itself, and a machine without a cluster, are refused', async () => {
  await using box = await tree();
  const context = { signal: never, report: () => undefined, env: { KUBECONFIG: box.at('none') }, cwd: box.path };
  const own = hostname().toLowerCase();
  await assert.rejectsWith(removeNode({ node: own }, context), 'USAGE', /it is this machine/);
  await assert.rejectsWith(removeNode({ node: `${own}-2` }, context), 'CLUSTER_FAILED', /cannot find the cluster/);
});

test.run();
