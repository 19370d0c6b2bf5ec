/** The real API server behaves as the one in the process of tests does. */
import { setTimeout as pause } from 'node:timers/promises';
import type { JsonObject } from '../support/api-server/fields.ts';
import { apiClient, textAt, type ApiClient } from '../support/api-client.ts';
import { apiBehavior } from '../cluster/kube/api-behavior.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { API_SERVER_PROGRAMS } from './support/api-server.ts';
import { lendApiServer } from './support/lender/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/api-server', { timeoutMs: 120_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();

const GROUP = 'litter.example.com';
const LISTS: readonly string[] = [
  '/api/v1/namespaces',
  '/api/v1/configmaps',
  '/api/v1/services',
  '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  '/apis/apiregistration.k8s.io/v1/apiservices',
];

/** Names of objects, with what they say; and the groups that are served. */
async function everything(client: ApiClient): Promise<readonly string[]> {
  const lists = await Promise.all(
    LISTS.map(async (path) => {
      const { items } = (await client.get(path)).body as { readonly items?: readonly JsonObject[] };
      return (items ?? []).map((item) => `${path}/${textAt(item, 'metadata.name')} ${JSON.stringify(item['rules'])}`);
    }),
  );
  const { groups = [] } = (await client.get('/apis')).body as { readonly groups?: readonly JsonObject[] };
  return [...lists.flat(), ...groups.map((group) => textAt(group, 'name'))];
}

/** What users of an API server leave: objects, a kind with an object, a role that is changed, and one that is gone. */
async function litter(client: ApiClient): Promise<void> {
  const made = async (path: string, object: object): Promise<void> => {
    const { status, body } = await client.create(path, object);
    assert.is(status, 201, JSON.stringify(body));
  };
  await made('/api/v1/namespaces', { metadata: { name: 'litter' } });
  await made('/api/v1/namespaces/litter/configmaps', { metadata: { name: 'page' }, data: { a: 'b' } });
  await made('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    metadata: { name: `things.${GROUP}` },
    spec: {
      group: GROUP,
      names: { plural: 'things', kind: 'Thing' },
      scope: 'Cluster',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  });
  while ((await client.get(`/apis/${GROUP}/v1/things`)).status !== 200) await pause(50);
  await made(`/apis/${GROUP}/v1/things`, { apiVersion: `${GROUP}/v1`, kind: 'Thing', metadata: { name: 'one' } });
  const roles = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
  assert.is((await client.merge(`${roles}/view`, { rules: [] })).status, 200);
  assert.is((await client.remove(`${roles}/edit`)).status, 200);
}

if (reason === undefined) {
  let client: ApiClient;
  let before: readonly string[] = [];
  let after: readonly string[] = [];
  test.before(async () => {
    const server = opened.keep(await lendApiServer());
    client = apiClient((server.about as { readonly kubeconfig: string }).kubeconfig);
    before = await everything(client);
    await litter(client);
    await server.calls['kill']?.();
    await server.restore();
    await server.check();
    after = await everything(client);
  });
  test.after(opened.close);

  test('one that is lent again has nothing of its last user, who changed and removed what it had, and killed it', () => {
    assert.ok(before.length > 0);
    assert.equal(after, before);
  });

  apiBehavior(test, () => client);
} else test.skip('behavior of the API server', reason);

test.run();
