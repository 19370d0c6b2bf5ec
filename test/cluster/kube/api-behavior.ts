/** What tests rely on of an API server. The same suite runs against the one in this process and against the real one. */
import * as assert from '../../support/assert.ts';
import { at, type ApiClient, type ApiReply } from '../../support/api-client.ts';
import {
  decodeFields,
  fieldTitle,
  isMap,
  textOf,
  type Json,
  type JsonObject,
} from '../../support/api-server/fields.ts';

/** A suite's `test`, and the client of the server that it has started. */
interface Runner {
  (title: string, run: () => Promise<void>): void;
}

let spaces = 0;

/** `<fields> <manager> <operation>` for each manager, sorted. */
function owners({ body }: ApiReply): readonly string[] {
  const entries = (at(body, 'metadata.managedFields') ?? []) as readonly JsonObject[];
  return entries
    .map(({ manager, operation, subresource, fieldsV1 }) => {
      const fields = isMap(fieldsV1) ? [...decodeFields(fieldsV1)].map(fieldTitle).toSorted() : [];
      const part = subresource === undefined ? '' : `/${textOf(subresource)}`;
      return `${textOf(manager)}${part} ${textOf(operation)}: ${fields.join(' ')}`;
    })
    .toSorted();
}

function configMap(data: Readonly<Record<string, string>>, metadata: object = {}): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', ...metadata }, data };
}

function deployment(containers: readonly object[]): object {
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: labels }, template },
  };
}

function causes({ body }: ApiReply): readonly string[] {
  const found = (at(body, 'details.causes') ?? []) as readonly JsonObject[];
  return found.map(({ field, reason }) => `${textOf(reason)} ${textOf(field)}`);
}

function expectStatus(reply: ApiReply, status: number): ApiReply {
  assert.is(reply.status, status, JSON.stringify(reply.body));
  return reply;
}

/** Registers the suite. `client` is called when a test runs. */
export function apiBehavior(test: Runner, client: () => ApiClient): void {
  const namespaced = (title: string, run: (api: ApiClient, maps: string, namespace: string) => Promise<void>): void =>
    test(title, async () => {
      spaces += 1;
      const namespace = `behavior-${process.pid}-${spaces}`;
      const api = client();
      expectStatus(await api.create('/api/v1/namespaces', { metadata: { name: namespace } }), 201);
      await run(api, `/api/v1/namespaces/${namespace}/configmaps`, namespace);
    });

  namespaced('apply creates an object, owns its fields, and changes nothing the second time', async (api, maps) => {
    const first = expectStatus(
      await api.apply(`${maps}/page`, configMap({ a: '1' }, { labels: { app: 'x' } }), 'one'),
      201,
    );
    assert.equal(owners(first), ['one Apply: .data.a .metadata.labels.app']);
    const second = expectStatus(
      await api.apply(`${maps}/page`, configMap({ a: '1' }, { labels: { app: 'x' } }), 'one'),
      200,
    );
    assert.is(at(second.body, 'metadata.resourceVersion'), at(first.body, 'metadata.resourceVersion'));
  });

  namespaced('a generated name keeps 58 characters of its beginning, and gets five more', async (api, maps) => {
    const names = await Promise.all(
      [57, 58, 59].map(async (length) => {
        const { body } = expectStatus(await api.create(maps, { metadata: { generateName: 'p'.repeat(length) } }), 201);
        return textOf(at(body, 'metadata.name'));
      }),
    );
    assert.equal(
      names.map((name) => [/^p+/.exec(name.slice(0, -5))?.[0].length, name.length]),
      [
        [57, 62],
        [58, 63],
        [58, 63],
      ],
    );
  });

  namespaced('fields that the next apply leaves out go, unless another manager owns them', async (api, maps) => {
    await api.apply(`${maps}/page`, configMap({ a: '1', b: '1', c: '1' }), 'one');
    await api.apply(`${maps}/page`, configMap({ b: '1' }), 'two');
    const next = expectStatus(await api.apply(`${maps}/page`, configMap({ c: '1' }), 'one'), 200);
    assert.equal(at(next.body, 'data'), { b: '1', c: '1' });
    assert.equal(owners(next), ['one Apply: .data.c', 'two Apply: .data.b']);
  });

  namespaced('a field of another manager is a conflict, which force takes', async (api, maps) => {
    await api.apply(`${maps}/page`, configMap({ a: '1', b: '1' }), 'one');
    await api.merge(`${maps}/page`, { data: { a: '2' } }, 'jane');
    const refused = expectStatus(await api.apply(`${maps}/page`, configMap({ a: '1', b: '1' }), 'one'), 409);
    assert.equal(causes(refused), ['FieldManagerConflict .data.a']);
    assert.match(textOf(at(refused.body, 'details.causes.0.message')), /^conflict with "jane" using v1/);
    assert.is(refused.body['reason'], 'Conflict');
    const forced = expectStatus(
      await api.apply(`${maps}/page`, configMap({ a: '1', b: '1' }), 'one', '&force=true'),
      200,
    );
    assert.equal(owners(forced), ['one Apply: .data.a .data.b']);
  });

  namespaced('an update takes the fields that it changes from their managers', async (api, maps) => {
    await api.apply(`${maps}/page`, configMap({ a: '1', b: '1' }), 'one');
    const patched = expectStatus(await api.merge(`${maps}/page`, { data: { a: '2', b: null, d: '1' } }, 'jane'), 200);
    assert.equal(owners(patched), ['jane Update: .data.a .data.d']);
  });

  namespaced('items of keyed lists have owners of their own', async (api, _maps, namespace) => {
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
    await api.apply(path, deployment([{ name: 'a', image: 'a:1', env: [{ name: 'X', value: '1' }] }]), 'one');
    const side = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { template: { spec: { containers: [{ name: 'b', image: 'b:1' }] } } },
    };
    const both = expectStatus(await api.apply(path, side, 'two'), 200);
    const names = (reply: ApiReply): readonly Json[] =>
      ((at(reply.body, 'spec.template.spec.containers') ?? []) as readonly JsonObject[]).map(
        ({ name }) => name ?? null,
      );
    assert.equal(names(both), ['a', 'b']);
    const next = expectStatus(await api.apply(path, deployment([{ name: 'a', image: 'a:2' }]), 'one'), 200);
    assert.equal(names(next), ['a', 'b']);
    assert.is(at(next.body, 'spec.template.spec.containers.0.env'), undefined);
    assert.is(at(next.body, 'metadata.generation'), 3);
    const refused = expectStatus(await api.apply(path, deployment([{ name: 'b', image: 'b:9' }]), 'one'), 409);
    assert.equal(causes(refused), ['FieldManagerConflict .spec.template.spec.containers[name="b"].image']);
  });

  namespaced('a dry run answers as if, and stores nothing', async (api, maps) => {
    const dry = expectStatus(await api.apply(`${maps}/page`, configMap({ a: '1' }), 'one', '&dryRun=All'), 201);
    assert.is(at(dry.body, 'data.a'), '1');
    expectStatus(await api.get(`${maps}/page`), 404);
    await api.create(maps, configMap({ a: '1' }));
    expectStatus(await api.remove(`${maps}/page?dryRun=All`), 200);
    expectStatus(await api.get(`${maps}/page`), 200);
  });

  namespaced(
    'a status is written by its own path only, and does not count in the generation',
    async (api, _maps, namespace) => {
      const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
      await api.apply(path, deployment([{ name: 'a', image: 'a:1' }]), 'one');
      await api.merge(path, { status: { replicas: 1 } });
      assert.is(at((await api.get(path)).body, 'status.replicas'), undefined);
      const status = expectStatus(
        await api.merge(`${path}/status`, { status: { replicas: 1 }, spec: { paused: true } }),
        200,
      );
      assert.is(at(status.body, 'status.replicas'), 1);
      assert.is(at(status.body, 'spec.paused'), undefined);
      assert.is(at(status.body, 'metadata.generation'), 1);
    },
  );

  namespaced('what exists, has changed or is gone is named by the reason', async (api, maps, namespace) => {
    const made = expectStatus(await api.create(maps, configMap({ a: '1' })), 201);
    assert.is(expectStatus(await api.create(maps, configMap({})), 409).body['reason'], 'AlreadyExists');
    await api.merge(`${maps}/page`, { data: { a: '2' } });
    const stale = expectStatus(await api.replace(`${maps}/page`, made.body), 409);
    assert.is(stale.body['reason'], 'Conflict');
    const other = { preconditions: { uid: '00000000-0000-0000-0000-000000000000' } };
    assert.is(expectStatus(await api.remove(`${maps}/page`, other), 409).body['reason'], 'Conflict');
    expectStatus(await api.remove(`${maps}/page`, { preconditions: { uid: at(made.body, 'metadata.uid') } }), 200);
    assert.is(expectStatus(await api.remove(`${maps}/page`), 404).body['reason'], 'NotFound');
    expectStatus(await api.create(`/api/v1/namespaces/${namespace}-none/configmaps`, configMap({})), 404);
    expectStatus(await api.get('/apis/example.com/v1/things'), 404);
  });

  namespaced('what cannot change is refused with its field', async (api, maps, namespace) => {
    await api.create(maps, { ...configMap({ a: '1' }), immutable: true });
    const fixed = expectStatus(await api.merge(`${maps}/page`, { data: { a: '2' } }), 422);
    assert.is(fixed.body['reason'], 'Invalid');
    assert.match(textOf(fixed.body['message']), /data: .*(?:immutable)/);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/web`;
    await api.apply(path, deployment([{ name: 'a', image: 'a:1' }]), 'one');
    const labels = { app: 'other' };
    const change = { spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } };
    const selector = expectStatus(await api.merge(path, change), 422);
    assert.equal(causes(selector), ['FieldValueInvalid spec.selector']);
    expectStatus(await api.create(maps, { ...configMap({}), metadata: { name: 'Not_A_Name' } }), 422);
  });

  namespaced('a finalizer keeps a deleted object until it goes', async (api, maps) => {
    await api.create(maps, configMap({}, { finalizers: ['example.com/hold'] }));
    expectStatus(await api.remove(`${maps}/page`), 200);
    const held = expectStatus(await api.get(`${maps}/page`), 200);
    assert.match(textOf(at(held.body, 'metadata.deletionTimestamp')), /^\d{4}-/);
    await api.merge(`${maps}/page`, { metadata: { finalizers: null } });
    expectStatus(await api.get(`${maps}/page`), 404);
  });

  namespaced('lists come in pages, by label, and as metadata alone', async (api, maps) => {
    for (const name of ['a', 'b', 'c']) {
      await api.create(maps, {
        ...configMap({ x: '1' }),
        metadata: { name, labels: { letter: name, kind: name === 'c' ? 'y' : 'z' } },
      });
    }
    const namesOf = ({ body }: ApiReply): readonly Json[] =>
      ((at(body, 'items') ?? []) as readonly JsonObject[]).map((item) => at(item, 'metadata.name') ?? null);
    const first = expectStatus(await api.get(`${maps}?limit=2`), 200);
    const next = textOf(at(first.body, 'metadata.continue'));
    assert.equal(
      [...namesOf(first), ...namesOf(await api.get(`${maps}?limit=2&continue=${encodeURIComponent(next)}`))].filter(
        (name) => name !== 'kube-root-ca.crt',
      ),
      ['a', 'b', 'c'],
    );
    const selected = async (selector: string) =>
      namesOf(await api.get(`${maps}?labelSelector=${encodeURIComponent(selector)}`));
    assert.equal(await selected('kind=z,letter!=a'), ['b']);
    assert.equal(await selected('letter in (a,c),kind'), ['a', 'c']);
    assert.equal(await selected('!kind'), []);
    assert.equal(namesOf(await api.get(`${maps}?fieldSelector=metadata.name%3Db`)), ['b']);
    const partial = await api.get(
      `${maps}?labelSelector=letter`,
      'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
    );
    assert.is(partial.body['kind'], 'PartialObjectMetadataList');
    assert.equal(at(partial.body, 'items.0.data'), undefined);
  });

  namespaced(
    'a watch gets each change after the version of a list, and a bookmark before it ends',
    async (api, maps) => {
      await api.create(maps, configMap({ a: '1' }, { labels: { seen: 'yes' } }));
      const list = await api.get(`${maps}?labelSelector=seen`);
      const version = textOf(at(list.body, 'metadata.resourceVersion'));
      await api.merge(`${maps}/page`, { data: { a: '2' } });
      await api.merge(`${maps}/page`, { metadata: { labels: { seen: null } } });
      await api.create(maps, { ...configMap({}), metadata: { name: 'other', labels: { seen: 'yes' } } });
      await api.remove(`${maps}/other`);
      const query = `watch=true&resourceVersion=${version}&labelSelector=seen&allowWatchBookmarks=true&timeoutSeconds=3`;
      const events = await api.watch(`${maps}?${query}`, 5);
      assert.equal(
        events.slice(0, 4).map((event) => `${textOf(event['type'])} ${textOf(at(event, 'object.metadata.name'))}`),
        ['MODIFIED page', 'DELETED page', 'ADDED other', 'DELETED other'],
      );
      assert.ok(events.length === 4 || events[4]?.['type'] === 'BOOKMARK');
    },
  );

  namespaced('managed fields can be rewritten by a patch, under the version that was read', async (api, maps) => {
    await api.create(maps, configMap({ a: '1' }));
    const { body } = await api.get(`${maps}/page`);
    const own = {
      manager: 'one',
      operation: 'Apply',
      apiVersion: 'v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {} } },
    };
    const rewrite = (version: string): readonly object[] => [
      { op: 'replace', path: '/metadata/managedFields', value: [own] },
      { op: 'replace', path: '/metadata/resourceVersion', value: version },
    ];
    expectStatus(await api.jsonPatch(`${maps}/page`, rewrite('1')), 409);
    const version = textOf(at(body, 'metadata.resourceVersion'));
    assert.equal(owners(expectStatus(await api.jsonPatch(`${maps}/page`, rewrite(version)), 200)), [
      'one Apply: .data.a',
    ]);
    const next = expectStatus(await api.apply(`${maps}/page`, configMap({}), 'one'), 200);
    assert.is(at(next.body, 'data.a'), undefined);
  });

  namespaced('a definition adds a kind, whose fields are checked and pruned', async (api, _maps, namespace) => {
    const group = `${namespace}.example.com`;
    const size = { type: 'integer' };
    const openAPIV3Schema = {
      type: 'object',
      properties: { spec: { type: 'object', required: ['size'], properties: { size } } },
    };
    const version = {
      name: 'v1',
      served: true,
      storage: true,
      subresources: { status: {} },
      schema: { openAPIV3Schema },
    };
    const names = { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' };
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const definition = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `widgets.${group}` },
      spec: { group, names, scope: 'Namespaced', versions: [version] },
    };
    expectStatus(await api.create(definitions, definition), 201);
    const isEstablished = async (): Promise<boolean> =>
      JSON.stringify(at((await api.get(`${definitions}/widgets.${group}`)).body, 'status.conditions') ?? []).includes(
        'Established',
      ) && (await api.get(`/apis/${group}/v1/widgets`)).status === 200;
    while (!(await isEstablished()));
    const widgets = `/apis/${group}/v1/namespaces/${namespace}/widgets`;
    const widget = (spec: object): object => ({
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name: 'one' },
      spec,
    });
    expectStatus(await api.create(widgets, widget({ size: 'big' })), 422);
    expectStatus(await api.apply(`${widgets}/one`, widget({}), 'one'), 422);
    const made = expectStatus(await api.create(widgets, widget({ size: 1, color: 'red' })), 201);
    assert.equal(at(made.body, 'spec'), { size: 1 });
    const bigger = expectStatus(await api.merge(`${widgets}/one`, { spec: { size: 2 } }), 200);
    assert.is(at(bigger.body, 'metadata.generation'), 2);
  });

  namespaced('a Lease changes hands only for who has read its last version', async (api, _maps, namespace) => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'lock' },
      spec: { holderIdentity: 'a' },
    };
    const made = expectStatus(await api.create(leases, lease), 201);
    const taken = { ...made.body, spec: { holderIdentity: 'b' } };
    expectStatus(await api.replace(`${leases}/lock`, taken), 200);
    expectStatus(await api.replace(`${leases}/lock`, { ...made.body, spec: { holderIdentity: 'c' } }), 409);
    assert.is(at((await api.get(`${leases}/lock`)).body, 'spec.holderIdentity'), 'b');
  });

  namespaced(
    'an eviction that a budget does not allow is refused with the name of the budget',
    async (api, _, space) => {
      const labels = { app: 'web' };
      const pods = `/api/v1/namespaces/${space}/pods`;
      const budgets = `/apis/policy/v1/namespaces/${space}/poddisruptionbudgets`;
      // A real server admits no pod without it, and its controller does not run here.
      const account = { metadata: { name: 'default' }, automountServiceAccountToken: false };
      expectStatus(await api.create(`/api/v1/namespaces/${space}/serviceaccounts`, account), 201);
      const spec = { nodeName: 'none', containers: [{ name: 'main', image: 'web:1' }] };
      expectStatus(await api.create(pods, { metadata: { name: 'web', labels }, spec }), 201);
      const conditions = [{ type: 'Ready', status: 'True' }];
      expectStatus(await api.merge(`${pods}/web/status`, { status: { phase: 'Running', conditions } }), 200);
      const budget = { metadata: { name: 'all' }, spec: { minAvailable: 1, selector: { matchLabels: labels } } };
      expectStatus(await api.create(budgets, { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', ...budget }), 201);
      const counts = { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 };
      expectStatus(await api.merge(`${budgets}/all/status`, { status: { observedGeneration: 1, ...counts } }), 200);
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web', namespace: space } };
      const refused = expectStatus(await api.create(`${pods}/web/eviction`, eviction), 429);
      const message = 'The disruption budget all needs 1 healthy pods and has 1 currently';
      assert.equal(at(refused.body, 'details.causes'), [{ reason: 'DisruptionBudget', message }]);
      expectStatus(await api.merge(`${budgets}/all/status`, { status: { disruptionsAllowed: 1 } }), 200);
      expectStatus(await api.create(`${pods}/web/eviction`, eviction), 201);
    },
  );

  test('discovery lists built-in kinds, and their scope', async () => {
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
    const { body } = await client().get('/apis', accept);
    const apps = (at(body, 'items') as readonly JsonObject[]).find((item) => at(item, 'metadata.name') === 'apps');
    const resources = at(apps, 'versions.0.resources') as readonly JsonObject[];
    const found = resources.find(({ resource }) => resource === 'deployments');
    assert.equal([at(found, 'responseKind.kind'), found?.['scope']], ['Deployment', 'Namespaced']);
    assert.match(textOf((await client().get('/version')).body['gitVersion']), /^v1\.\d+\.\d+/);
  });
}
