import { writeFile } from 'node:fs/promises';
import { drain, type NodeDrain } from '../../src/app/node-drain.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import { drainNode } from '../../src/machine/run/drain.ts';
import { openNodeApi, type NodeApi } from '../../src/machine/run/nodes.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/node-drain');
const certificate = await makeCertificate();
const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const LABELS = { app: 'web' };
const OWNER = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'r1', controller: true };

type Options = Omit<Parameters<typeof drain>[0], 'node'>;

interface OnNode {
  readonly api: ApiClient;
  readonly run: (node: string, options?: Options) => Promise<NodeDrain>;
  readonly notes: readonly string[];
  readonly cluster: NodeApi;
}

/** A node with one pod. */
async function onNode(work: (scene: OnNode) => Promise<void>): Promise<void> {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  const api = apiClient(server.kubeconfig);
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'two' } });
  const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.34.4' } };
  await api.merge('/api/v1/nodes/two/status', { status });
  await addPod(api, 'web', { labels: LABELS, ownerReferences: [OWNER] });
  await writeFile(box.at('conf'), server.kubeconfig);
  const notes: string[] = [];
  const report = (event: ProgressEvent): void => void (event.type === 'note' && notes.push(event.text));
  const context = { signal: never, report, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  const run: OnNode['run'] = async (node, options = {}) => drain({ node, ...options }, context);
  await work({ api, run, notes, cluster: await openNodeApi(context) });
}

async function addPod(api: ApiClient, name: string, metadata: object, more: object = {}): Promise<void> {
  const spec = { nodeName: 'two', containers: [{ name: 'main', image: 'web:1' }], ...more };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default', ...metadata }, spec };
  await api.create(PODS, pod);
  await api.merge(`${PODS}/${name}/status`, { status: { phase: 'Running' } });
}

/** A budget that never allows to evict its pod. */
async function addBudget(api: ApiClient): Promise<void> {
  const spec = { minAvailable: 1, selector: { matchLabels: LABELS } };
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'all' }, spec };
  await api.create(BUDGETS, budget);
  await api.merge(`${BUDGETS}/all/status`, {
    status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  });
}

async function refused(work: Promise<unknown>, message: string, hint: string): Promise<void> {
  const error = await assert.rejectsWith(work, 'CLUSTER_FAILED');
  assert.equal([error.message, error.hint], [message, hint]);
}

async function isCordoned(api: ApiClient): Promise<boolean> {
  return at((await api.get('/api/v1/nodes/two')).body, 'spec.unschedulable') === true;
}

test('a drain shows the pods first, then moves them, and leaves a cordon that is not of curlew', async () => {
  await onNode(async ({ api, run }) => {
    assert.equal(await run('two'), { node: 'two', isCordoned: false, pods: ['default/web'], lost: [] });
    assert.is(await isCordoned(api), false);
    assert.equal(await run('two', { yes: true }), { node: 'two', isCordoned: true, pods: [], lost: [] });
    const { body } = await api.get('/api/v1/nodes/two');
    assert.equal([at(body, 'spec.unschedulable'), at(body, 'metadata.annotations') ?? {}], [true, {}]);
    assert.equal(await run('two'), { node: 'two', isCordoned: true, pods: [], lost: [] });
  });
});

test('the cordon of an upgrade becomes that of a person, which no upgrade lifts', async () => {
  await onNode(async ({ api, run }) => {
    const metadata = { annotations: { 'curlew.dev/cordon': 'v1.34.5' } };
    await api.merge('/api/v1/nodes/two', { metadata, spec: { unschedulable: true } });
    assert.is((await run('two')).isCordoned, false);
    assert.equal(await run('two', { yes: true }), { node: 'two', isCordoned: true, pods: [], lost: [] });
    const { body } = await api.get('/api/v1/nodes/two');
    assert.equal([at(body, 'spec.unschedulable'), at(body, 'metadata.annotations') ?? {}], [true, {}]);
  });
});

test('a node that the cluster does not have is not drained', async () => {
  await onNode(async ({ run }) => {
    const expected = /cannot drain tow: the cluster has no such node/;
    const { hint } = await assert.rejectsWith(run('tow', { yes: true }), 'NOT_FOUND', expected);
    assert.is(hint, 'did you mean two?');
  });
});

test('what would not come back is named first, and needs a word before anything changes', async () => {
  await onNode(async ({ api, run }) => {
    const volumes = [
      { name: 'cache', emptyDir: {} },
      { name: 'conf', configMap: { name: 'conf' } },
    ];
    await addPod(api, 'bare', { ownerReferences: [{ ...OWNER, controller: false }] });
    await addPod(api, 'data', { ownerReferences: [OWNER] }, { volumes });
    await addPod(api, 'done', {}, { volumes });
    await api.merge(`${PODS}/done/status`, { status: { phase: 'Succeeded' } });
    const lost = ['default/bare: no controller creates it again', 'default/data: loses the data in its emptyDir cache'];
    assert.equal((await run('two')).lost, lost);
    await refused(
      run('two', { yes: true }),
      `cannot drain two: not everything on it would come back: ${lost.join('; ')}`,
      'save what is needed, then add --force',
    );
    assert.is(await isCordoned(api), false);
    assert.equal(await run('two', { yes: true, force: true }), { node: 'two', isCordoned: true, pods: [], lost: [] });
  });
});

test('a budget that allows nothing is named, and a drain that has evicted nothing leaves the node as it was', async () => {
  await onNode(async ({ api, run, notes }) => {
    await addBudget(api);
    const why = 'default/web: The disruption budget all needs 1 healthy pods and has 1 currently';
    const failed = async (text: string, hint: string): Promise<void> =>
      refused(run('two', { yes: true, drainTimeout: 1 }), text, hint);
    const past =
      'let the PodDisruptionBudget allow it, or delete these pods, then run the same command again; curlew node drain two --ignore-budgets --yes deletes them at the end of its time';
    await failed(`cannot drain two in 0 s: ${why}; none was evicted, so it takes pods again`, past);
    assert.equal([await isCordoned(api), notes], [false, [why]]);
    // A cordon of somebody else is not lifted.
    await api.merge('/api/v1/nodes/two', { spec: { unschedulable: true } });
    await failed(`cannot drain two in 0 s: ${why}`, `${past}; kubectl uncordon two lets it take pods again`);
    assert.is(await isCordoned(api), true);
    await api.merge('/api/v1/nodes/two', { spec: { unschedulable: false } });
    // What has moved does not come back by itself.
    await addPod(api, 'other', { ownerReferences: [OWNER] });
    const moved = `${why}; default/other: has not ended yet`;
    await failed(`cannot drain two in 0 s: ${moved}`, `${past}; kubectl uncordon two lets it take pods again`);
    assert.is(await isCordoned(api), true);
  });
});

test('pods that a budget keeps are deleted at the end of the time where this is asked for', async () => {
  await onNode(async ({ api, run, notes }) => {
    await addBudget(api);
    const options = { yes: true, ignoreBudgets: true, drainTimeout: 1 };
    assert.equal(await run('two', options), { node: 'two', isCordoned: true, pods: [], lost: [] });
    const why = 'default/web: The disruption budget all needs 1 healthy pods and has 1 currently';
    assert.equal(notes, [why, `two: deleting the pods that budgets have kept for 0 s: ${why}`]);
  });
});

test('what a drain waits for is repeated while it waits', async () => {
  await onNode(async ({ api, notes, cluster }) => {
    await addBudget(api);
    await addPod(api, 'slow', { finalizers: ['example.com/wait'], ownerReferences: [OWNER] });
    const stop = new AbortController();
    const text =
      'two: still waiting for default/web: The disruption budget all needs 1 healthy pods and has 1 currently; default/slow: has not ended yet';
    const report = (event: ProgressEvent): void => {
      if (event.type === 'note' && event.text === text && notes.length === 0) (notes as string[]).push(text);
      else if (event.type === 'note' && event.text === text) stop.abort(new Error('seen twice'));
    };
    const drained = drainNode(cluster, 'two', { limitMs: 60_000, remindMs: 0, report, signal: stop.signal });
    assert.is(String(await drained.catch((error: unknown) => error)), 'Error: seen twice');
  });
});

test.run();
