/** The API server in this process, which other tests use, behaves as the real one where they rely on it. */
import { apiClient } from '../support/api-client.ts';
import { apiBehavior } from './api-behavior.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('kube/memory-api-server');
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

test.run();
