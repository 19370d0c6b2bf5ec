/** Nodes of a cluster, as an API server lists them, and what they mean for an upgrade of Kubernetes. */
import * as assert from '../../support/assert.ts';
import { writeFile } from 'node:fs/promises';
import { type KubeApi, openApi } from '../../../src/cluster/kube/api.ts';
import { type NodeCluster, type ClusterNode, openCluster, readNodes } from '../../../src/runtime/cluster/cluster.ts';
import type { AppliedRecord } from '../../../src/runtime/plan/records.ts';
import { suite } from '../../support/suite.ts';
import { type KubeServer, startKubeServer, statusReply } from '../../support/kube-server.ts';
import { tree, type Tree } from '../../support/tree.ts';
import { checkNodes } from '../../../src/runtime/host/host-checks.ts';
import type { RunView } from '../../../src/runtime/prepare/request.ts';

const test = suite('runtime/cluster/nodes');

const node = (name: string, ready?: string): unknown => ({
  metadata: { name },
  status: {
    conditions: [{ type: 'MemoryPressure', status: 'True' }, ...(ready ? [{ type: 'Ready', status: ready }] : [])],
  },
});

async function openOf(box: Tree, server: KubeServer): Promise<KubeApi> {
  await writeFile(box.at('conf'), server.kubeconfig());
  const api = await openApi({ env: { KUBECONFIG: box.at('conf') } });
  if (api === undefined) throw new Error('no kubeconfig');
  return api;
}

test('nodes are read page by page, with what their kubelets say', async ({ signal }) => {
  await using box = await tree();
  const pages = [
    { items: [node('a', 'True'), node('b', 'False')], metadata: { continue: 'x y' } },
    { items: [node('c'), 'junk'], metadata: {} },
  ];
  await using server = await startKubeServer(() => ({ json: pages[server.log.length - 1] }));
  const found = await readNodes(await openOf(box, server), { signal });
  assert.equal(
    found.map(({ name, ready }) => `${name} ${ready}`),
    ['a True', 'b False', 'c ', '? '],
  );
  assert.equal(
    server.log.map(({ path }) => path),
    ['/api/v1/nodes?limit=100', '/api/v1/nodes?limit=100&continue=x%20y'],
  );
});

test('an answer that is none ends with the reason', async ({ signal }) => {
  await using box = await tree();
  await using server = await startKubeServer(() => statusReply(403, 'Forbidden', 'no right to list nodes'));
  const api = await openOf(box, server);
  await assert.rejectsWith(readNodes(api, { signal }), 'CLUSTER_FAILED', /list the nodes: .*no right/);
});

test('an API server that denies everything just after its start is asked again', async ({ signal }) => {
  await using box = await tree();
  const namespace = { metadata: { uid: 'a1b2c3d4-0000-4000-8000-000000000000' } };
  let denials = 2;
  await using server = await startKubeServer(() =>
    denials-- > 0 ? statusReply(403, 'Forbidden', 'no role bindings yet') : { json: namespace },
  );
  await writeFile(box.at('conf'), server.kubeconfig());
  const env = { KUBECONFIG: box.at('conf') };
  const cluster = await openCluster({ env, signal });
  assert.is(cluster?.uid, namespace.metadata.uid);
  // A command that only looks does not wait.
  denials = 1;
  await assert.rejectsWith(openCluster({ env, patienceMs: 0, signal }), 'CLUSTER_FAILED', /no role bindings yet/);
});

interface Scene {
  readonly kind?: 'install' | 'join';
  readonly mode?: 'install' | 'already applied';
  readonly finished?: boolean;
}

/** The part of a run that is read. */
function viewOf(
  nodes: readonly ClusterNode[],
  { kind = 'install', mode = 'install', finished = true }: Scene,
): RunView {
  const cluster: Pick<NodeCluster, 'readNodes'> = { readNodes: async () => Promise.resolve(nodes) };
  const record: Pick<AppliedRecord, 'finished'> = { finished };
  const view: unknown = {
    request: { kind },
    records: { applied: { kubernetes: record } },
    plan: { addons: [{ ref: { name: 'kubernetes' }, mode }] },
    view: { cluster },
  };
  return view as RunView;
}

const NODES = [
  { name: 'a', ready: 'True', controlPlane: false },
  { name: 'b', ready: 'Unknown', controlPlane: false },
  { name: 'c', ready: 'False', controlPlane: false },
  { name: 'd', ready: '', controlPlane: false },
];

test('an upgrade of Kubernetes wants all control planes ready, and goes on without a worker', async () => {
  const [worker] = await checkNodes(viewOf(NODES, {}));
  assert.equal(
    [worker?.verdict, worker?.message],
    ['warn', 'Not ready: b, c; the control plane is upgraded without them'],
  );
  const controlPlane = { name: 'e', ready: 'Unknown', controlPlane: true };
  const [bad] = await checkNodes(viewOf([...NODES, controlPlane], {}));
  assert.equal(
    [bad?.verdict, bad?.message],
    ['fail', 'Control planes that are not ready: e; repair or remove them first'],
  );
  const [good] = await checkNodes(viewOf(NODES.slice(0, 1), {}));
  assert.equal([good?.verdict, good?.message], ['pass', 'All nodes are ready']);
  const many = Array.from({ length: 12 }, (_, at) => ({ name: `n${at}`, ready: 'False', controlPlane: false }));
  assert.match((await checkNodes(viewOf(many, {})))[0]?.message ?? '', /n9 and 2 more;/);
});

for (const [title, scene] of [
  ['another node', { kind: 'join' }],
  ['a Kubernetes that stays', { mode: 'already applied' }],
  ['one whose first run did not finish', { finished: false }],
] as const) {
  test(`nothing is asked for ${title}`, async () => {
    assert.equal(await checkNodes(viewOf(NODES, scene)), []);
  });
}

test.run();
