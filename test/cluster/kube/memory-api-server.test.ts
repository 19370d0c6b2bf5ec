/** The API server in this process, which other tests use, behaves as the real one where they rely on it. */
import { request } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { apiClient } from '../../support/api-client.ts';
import { apiBehavior } from './api-behavior.ts';
import { applied } from '../../support/api-server/ownership.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../../support/api-server/server.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/kube/memory-api-server');
let server: MemoryApiServer;
test.before(async () => {
  server = await startMemoryApiServer();
});
test.after(async () => server[Symbol.asyncDispose]());

apiBehavior(test, () => apiClient(server.kubeconfig));

test('a list and a watch of a compacted version have expired', async () => {
  const api = apiClient(server.kubeconfig);
  const page = await api.get('/api/v1/namespaces?limit=1');
  const { continue: next, resourceVersion } = page.body['metadata'] as {
    readonly continue: string;
    readonly resourceVersion: string;
  };
  await api.create('/api/v1/namespaces', { metadata: { name: 'later' } });
  server.compact();
  assert.is((await api.get(`/api/v1/namespaces?limit=1&continue=${next}`)).status, 410);
  assert.is((await api.get(`/api/v1/namespaces?watch=true&resourceVersion=${resourceVersion}`)).status, 410);
});

test('the time of a manager is that of its last change of fields', () => {
  const config = { data: { a: '1' } };
  const by = { manager: 'one', operation: 'Apply', apiVersion: 'v1', subresource: '' } as const;
  const first = applied({ document: {}, managers: [] }, config, { ...by, time: 'then' }, false);
  assert.ok('managers' in first);
  const timesOf = (data: object): readonly string[] => {
    const next = applied(first, { data: data as typeof config.data }, { ...by, time: 'now' }, false);
    return 'managers' in next ? next.managers.map(({ time }) => time) : [];
  };
  assert.equal([timesOf({ a: '1' }), timesOf({ a: '1', b: '1' })], [['then'], ['now']]);
});

test('a hook gets no request whose body does not come whole', async () => {
  const hooked: string[] = [];
  const path = '/api/v1/namespaces/default/configmaps';
  await using own = await startMemoryApiServer({ before: (request) => void hooked.push(request) });
  const { clusters } = JSON.parse(own.kubeconfig) as {
    readonly clusters: readonly [{ readonly cluster: { readonly server: string } }];
  };
  const headers = { authorization: 'Bearer test-token', 'content-length': 1000 };
  const url = new URL(path, clusters[0].cluster.server);
  const cut = request(url, { method: 'POST', headers, rejectUnauthorized: false, agent: false });
  cut.write('{');
  while (!own.requests.includes(`POST ${path}`)) await wait(10);
  cut.once('error', () => undefined).destroy();
  const { status } = await apiClient(own.kubeconfig).create(path, { metadata: { name: 'whole' } });
  assert.is(status, 201);
  assert.equal(hooked, [`POST ${path}`]);
});

test.run();
