import { writeFile } from 'node:fs/promises';
import { drain, type NodeDrain } from '../../src/app/node-drain.ts';
import { apiClient, at, type ApiClient } from '../support/api-client.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { never, noReport } from '../support/context.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/node-drain');
const certificate = await makeCertificate();
const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'default' } };

/** A node with one pod. */
async function onNode(
  work: (api: ApiClient, run: (node: string, yes?: boolean) => Promise<NodeDrain>) => Promise<void>,
): Promise<void> {
  await using box = await tree();
  await using server = await startMemoryApiServer({ certificate });
  const api = apiClient(server.kubeconfig);
  await api.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'two' } });
  const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.34.4' } };
  await api.merge('/api/v1/nodes/two/status', { status });
  const spec = { nodeName: 'two', containers: [{ name: 'main', image: 'web:1' }] };
  await api.create('/api/v1/namespaces/default/pods', { ...POD, spec });
  await writeFile(box.at('conf'), server.kubeconfig);
  const context = { signal: never, report: noReport, env: { KUBECONFIG: box.at('conf') }, cwd: box.path };
  await work(api, async (node, yes = false) => drain({ node, yes }, context));
}

test('a drain shows the pods first, then moves them, and leaves a cordon that is not of curlew', async () => {
  await onNode(async (api, run) => {
    assert.equal(await run('two'), { node: 'two', isCordoned: false, pods: ['default/web'] });
    const before = await api.get('/api/v1/nodes/two');
    assert.is.not(at(before.body, 'spec.unschedulable'), true);
    assert.equal(await run('two', true), { node: 'two', isCordoned: true, pods: [] });
    const { body } = await api.get('/api/v1/nodes/two');
    assert.equal([at(body, 'spec.unschedulable'), at(body, 'metadata.annotations') ?? {}], [true, {}]);
    assert.equal(await run('two'), { node: 'two', isCordoned: true, pods: [] });
  });
});

test('the cordon of an upgrade becomes that of a person, which no upgrade lifts', async () => {
  await onNode(async (api, run) => {
    const metadata = { annotations: { 'curlew.dev/cordon': 'v1.34.5' } };
    await api.merge('/api/v1/nodes/two', { metadata, spec: { unschedulable: true } });
    assert.is((await run('two')).isCordoned, false);
    assert.equal(await run('two', true), { node: 'two', isCordoned: true, pods: [] });
    const { body } = await api.get('/api/v1/nodes/two');
    assert.equal([at(body, 'spec.unschedulable'), at(body, 'metadata.annotations') ?? {}], [true, {}]);
  });
});

test('a node that the cluster does not have is not drained', async () => {
  await onNode(async (_, run) => {
    await assert.rejectsWith(run('tow', true), 'NOT_FOUND', /cannot drain tow: the cluster has no such node/);
  });
});

test.run();
