/** Charts that a controller delivers itself, with Secrets of the hub: hub and clusters are API servers in this process, and helm a stand-in. */
import { readFile } from 'node:fs/promises';
import { readYaml } from '../../src/formats/yaml/yaml.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import type { JsonObject } from '../support/api-server/fields.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { deployment } from '../support/delivery-scene.ts';
import { countedHelm, helmWithRepository, startHelm, type HelmStandIn } from '../support/helm-stand-in.ts';
import { hubChannel, hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene, type RunningController } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';

const test = suite('app/controller-charts', { timeoutMs: 240_000 });
const certificate = await makeCertificate();
const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const MAP = '/api/v1/namespaces/default/configmaps/page';
const PAGE = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' }, data: { version: '1' } };
const CHART = { repoURL: 'https://charts.example.com', name: 'page', version: '1.0.0', namespace: 'default' };

interface ChartScene extends AsyncDisposable {
  readonly hub: HubScene;
  /** The cluster `oslo`. */
  readonly cluster: ApiClient;
  readonly helm: HelmStandIn;
  /** Runs of helm by their first argument. */
  readonly runs: () => Promise<readonly string[]>;
  readonly hubRequests: readonly string[];
  readonly clusterRequests: readonly string[];
  readonly start: () => RunningController;
  /** Creates a Secret of the hub, or replaces it with another one. */
  readonly secret: (place: string, data: Readonly<Record<string, string>>) => Promise<void>;
  /** What the hub says about the add-on `page` on `oslo`: `Succeeded`, or `Failed REASON: message`. */
  readonly state: () => Promise<string>;
}

/** The chart has these objects. */
async function openScene(objects: readonly object[] = [PAGE]): Promise<ChartScene> {
  const box = await tree();
  const own = await startMemoryApiServer({ certificate });
  const server = await startMemoryApiServer({ certificate });
  const hub = await openHubScene(own.kubeconfig);
  const cluster = apiClient(server.kubeconfig);
  const helm = await startHelm(cluster, box);
  const repository = await helmWithRepository(helm, box, objects);
  const { program, runs } = await countedHelm(repository.program, box);
  const secret: ChartScene['secret'] = async (place, data) => {
    const [namespace = '', name = ''] = place.split('/');
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    await hub.client.remove(`${path}/${name}`);
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    const value = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: Object.fromEntries(encoded) as object };
    assert.is((await hub.client.create(path, value)).status, 201);
  };
  await hub.client.create('/api/v1/namespaces', { metadata: { name: 'fleet-oslo' } });
  const spec = { access: { kubeconfigSecret: 'oslo-kubeconfig' } };
  await hub.client.create(`${ROOT}/namespaces/fleet-oslo/clusters`, hubCluster('oslo', { env: 'prod' }, spec));
  await secret('fleet-oslo/oslo-kubeconfig', { value: server.kubeconfig });
  return {
    hub,
    cluster,
    helm,
    runs,
    hubRequests: own.requests,
    clusterRequests: server.requests,
    secret,
    start: () => hub.start({ helm: program }),
    state: async () => {
      const { body } = await hub.client.get(`${ROOT}/namespaces/fleet-oslo/clusteraddons/page`);
      const [state, reason, message] = ['state', 'reason', 'message'].map((key) => textAt(body, `status.${key}`));
      return `${state} ${reason}: ${message}`.replace(/ : $/, '');
    },
    [Symbol.asyncDispose]: async () => {
      await hub[Symbol.asyncDispose]();
      for (const one of [helm, server, own, box]) await one[Symbol.asyncDispose]();
    },
  };
}

test('an add-on stays what it is while the login that its restoration needs cannot be read', async () => {
  await using scene = await openScene();
  const { hub, cluster } = scene;
  await scene.secret('default/repository', { 'config.json': '{}' });
  await hub.addon('page', { source: { chart: { ...CHART, credentials: { secret: { name: 'repository' } } } } });
  const controller = scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await hub.client.remove('/api/v1/namespaces/default/secrets/repository');
  await cluster.remove(MAP);
  await hub.change('page', { spec: { drift: 'Revert' } });
  await eventually(() => controller.notes.includes('oslo: there is no Secret default/repository'));
  assert.is(await scene.state(), 'Succeeded');
  await scene.secret('default/repository', { 'config.json': '{}' });
  await eventually(async () => (await cluster.get(MAP)).status === 200);
});

test('deliveries that follow each other share the chart that was downloaded, and the version of helm', async () => {
  await using scene = await openScene();
  const { hub, helm } = scene;
  await hub.addon('page', { source: { chart: CHART } });
  scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await hub.change('page', { spec: { config: { default: { text: 'other' } } } });
  await eventually(() => JSON.stringify(helm.values()).includes('other'));
  await eventually(async () => (await scene.state()) === 'Succeeded');
  assert.equal(await scene.runs(), ['version', 'pull', 'upgrade', 'upgrade']);
});

test('what cannot be restored yet holds no later order on its cluster', async () => {
  await using scene = await openScene();
  const { hub, cluster, hubRequests, clusterRequests } = scene;
  await scene.secret('default/repository', { 'config.json': '{}' });
  await hub.addon('page', { source: { chart: { ...CHART, credentials: { secret: { name: 'repository' } } } } });
  scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await hub.client.remove('/api/v1/namespaces/default/secrets/repository');
  await cluster.remove(MAP);
  const tries = (): number => hubRequests.filter((one) => /^GET .*secrets\/repository/.test(one)).length;
  const before = tries();
  await hub.change('page', { spec: { drift: 'Revert' } });
  // After the fifth failure, the next try is at least 12.8 s away.
  await eventually(() => tries() >= before + 5);
  const looks = (): number => clusterRequests.filter((one) => one === 'GET /version').length;
  const looked = looks();
  const begun = performance.now();
  await hub.client.remove(`${ROOT}/fleetaddons/page`);
  // The removal itself starts programs, which take long on a busy machine.
  await eventually(() => looks() > looked);
  assert.ok(performance.now() - begun < 10_000);
  await eventually(async () => (await hub.client.get(`${ROOT}/fleetaddons/page`)).status === 404);
});

test('releases of one chart on a cluster take one download, one run of helm each, and are applied two at a time', async () => {
  await using scene = await openScene();
  const names = ['web', 'site', 'shop'];
  let begun = 0;
  scene.helm.before(async (command) => {
    if (!command.startsWith('upgrade')) return;
    begun += 1;
    await eventually(() => begun >= 2);
  });
  for (const name of names) await scene.hub.addon(name, { source: { chart: CHART } });
  scene.start();
  for (const name of names) await scene.hub.condition(name, 'Available', 'True AllSucceeded');
  assert.equal((await scene.runs()).toSorted(), ['pull', ...names.map(() => 'upgrade'), 'version']);
});

test('a release that is ordered while another one is applied neither waits for its end nor has the cluster looked at again', async () => {
  await using scene = await openScene();
  const begun: string[] = [];
  scene.helm.before(async (command) => {
    begun.push(command);
    if (command === 'upgrade web') await eventually(() => begun.includes('upgrade site'));
  });
  await scene.hub.addon('web', { source: { chart: CHART } });
  scene.start();
  await eventually(() => begun.includes('upgrade web'));
  const openings = (): number => scene.clusterRequests.filter((one) => one === 'GET /version').length;
  const opened = openings();
  await scene.hub.addon('site', { source: { chart: CHART } });
  await eventually(() => begun.includes('upgrade site'));
  assert.is(openings(), opened);
  for (const name of ['web', 'site']) await scene.hub.condition(name, 'Available', 'True AllSucceeded');
  assert.equal(await scene.runs(), ['version', 'pull', 'upgrade', 'upgrade']);
  assert.is(openings(), opened);
  // The next order opens it again, to look at it and to deliver.
  await scene.hub.addon('shop', { source: { chart: CHART } });
  await scene.hub.condition('shop', 'Available', 'True AllSucceeded');
  assert.is(openings(), opened + 2);
});

/** All that the hub says of add-ons, and what the cluster has recorded. */
async function shownBy({ hub, cluster }: ChartScene): Promise<string> {
  const paths = [`${ROOT}/fleetaddons`, `${ROOT}/clusteraddons`, '/api/v1/namespaces/default/events'];
  const own = await Promise.all(paths.map(async (path) => (await hub.client.get(path)).body));
  const { body } = await cluster.get('/api/v1/namespaces/kube-system/configmaps');
  return JSON.stringify([...own, body]);
}

test('values of a Secret are the last ones, roll out when they change, and are shown nowhere', async () => {
  await using scene = await openScene();
  const { hub, helm } = scene;
  const [, text = ''] = /### Secret values[^]*?```yaml\n([^]*?)```/.exec(await readFile('docs/hub.md', 'utf8')) ?? [];
  const { spec } = readYaml('hub.md', text).value as { readonly spec: JsonObject };
  const chart = { ...(at(spec, 'source.chart') as JsonObject), namespace: 'default' };
  const place = `curlew-system/${textAt(spec, 'valuesSecret.name')}`;
  await scene.secret(place, { 'values.yaml': 'replicas: 3\ntoken: first-secret\n' });
  await hub.addon('page', { ...spec, source: { chart } });
  const controller = scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  assert.equal(helm.values(), [{ replicas: 2 }, { replicas: 3, token: 'first-secret' }]);
  await hub.condition('page', 'Available', 'True AllSucceeded');
  await hub.becomes('page', 'oslo:1.4.2@1');

  helm.before((command) => {
    if (command === 'upgrade page') throw new Error('UPGRADE FAILED: bad value "second-secret"');
  });
  const values = Buffer.from('token: second-secret\n').toString('base64');
  const path = `/api/v1/namespaces/curlew-system/secrets/${place.split('/')[1] ?? ''}`;
  await hub.client.merge(path, { data: { 'values.yaml': values } });
  await hub.becomes('page', 'oslo:1.4.2@2');
  await eventually(async () => (await scene.state()).endsWith('bad value "[secret]"'));
  assert.equal(helm.values(), [{ replicas: 2 }, { token: 'second-secret' }]);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /(?:first|second)-secret/);
});

test('what a cluster quotes of a Secret when an add-on is unhealthy is in no reason, there or in the hub', async () => {
  await using scene = await openScene([PAGE, deployment('page')]);
  const { hub, cluster } = scene;
  await scene.secret('curlew-system/web', { 'values.yaml': 'image: registry.local/some-secret\n' });
  await hub.addon('page', { source: { chart: CHART }, valuesSecret: { name: 'web' } });
  const controller = scene.start();
  const path = '/apis/apps/v1/namespaces/default/deployments/page';
  await eventually(async () => (await cluster.get(path)).status === 200);
  const message = 'cannot pull registry.local/some-secret';
  const failed = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message };
  await cluster.merge(`${path}/status`, { status: { observedGeneration: 1, conditions: [failed] } });
  await eventually(async () => (await scene.state()).startsWith('Failed'));
  assert.match(await scene.state(), /cannot pull \[secret\]/);
  const { body } = await cluster.get('/api/v1/namespaces/kube-system/configmaps/curlew-addons');
  assert.match(JSON.stringify(body), /cannot pull \[secret\]/);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /some-secret/);
});

test('what helm quotes of a Secret when a removal fails is in no reason, there or in the hub', async () => {
  await using scene = await openScene();
  const { hub, helm } = scene;
  await scene.secret('curlew-system/web', { 'values.yaml': 'token: some-secret' });
  await hub.addon('page', { source: { chart: CHART }, valuesSecret: { name: 'web' } });
  const controller = scene.start();
  await hub.condition('page', 'Available', 'True AllSucceeded');
  helm.before((command) => {
    if (command === 'uninstall page') throw new Error('cannot remove it: bad value "some-secret"');
  });
  await hub.client.remove(`${ROOT}/fleetaddons/page`);
  await eventually(async () => (await scene.state()).includes('bad value'));
  assert.match(await scene.state(), /bad value "\[secret\]"/);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /some-secret/);
});

test('values of a Secret are for each chart of a channel', async () => {
  await using scene = await openScene();
  const { hub, helm } = scene;
  const { version: _version, ...chart } = CHART;
  const entry = (version: string): object => ({ name: 'page', version, chart });
  await scene.secret('curlew-system/web', { 'values.yaml': 'token: some-secret' });
  await hub.client.create(`${ROOT}/channels`, hubChannel('stable', [entry('1.0.0')]));
  await hub.addon('page', { source: { channel: { name: 'stable' } }, valuesSecret: { name: 'web' } });
  const controller = scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await hub.becomes('page', 'oslo:1.0.0@1');
  assert.equal(helm.values(), [{}, { token: 'some-secret' }]);
  await hub.client.merge(`${ROOT}/channels/stable`, { spec: { addons: [entry('1.0.0'), entry('1.1.0')] } });
  await hub.becomes('page', 'oslo:1.1.0@2');
  await hub.condition('page', 'Available', 'True AllSucceeded');
  assert.equal(helm.values(), [{}, { token: 'some-secret' }]);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /some-secret/);
});

test('each cluster gets its own values of a ConfigMap and of a Secret, whose values are the last ones and are shown nowhere', async () => {
  await using scene = await openScene();
  const { hub, helm } = scene;
  const path = '/api/v1/namespaces/curlew-system/configmaps';
  const data = { 'oslo.page': 'site: north\ntoken: none', 'paris.page': 'site: south' };
  await hub.client.create(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'sites' }, data });
  await scene.secret('curlew-system/tokens', { 'oslo.values.yaml': 'token: some-secret', 'paris.values.yaml': '-' });
  await hub.addon('page', {
    source: { chart: CHART },
    valuesConfigMap: { name: 'sites', key: 'page', perCluster: true },
    valuesSecret: { name: 'tokens', perCluster: true },
  });
  const controller = scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  assert.equal(helm.values(), [{}, { site: 'north', token: 'some-secret' }]);
  helm.before((command) => {
    if (command === 'upgrade page') throw new Error('UPGRADE FAILED: "some-secret" in the north-west');
  });
  await hub.client.merge(`${path}/sites`, { data: { 'oslo.page': 'site: north-west' } });
  await eventually(async () => (await scene.state()).endsWith('"[secret]" in the north-west'));
  assert.equal(helm.values(), [{}, { site: 'north-west', token: 'some-secret' }]);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /some-secret/);
});

test('without its Secret, an add-on is invalid, and what is installed stays', async () => {
  await using scene = await openScene();
  const { hub, cluster } = scene;
  const problem = async (): Promise<string> => {
    const all = at(await hub.status('page'), 'conditions') as readonly JsonObject[] | undefined;
    const found = all?.find((one) => one['type'] === 'Degraded' && one['reason'] === 'Invalid');
    return textAt(found, 'message');
  };
  await scene.secret('curlew-system/web', { values: 'token: some-secret' });
  await hub.addon('page', { source: { chart: CHART }, valuesSecret: { name: 'web', key: 'values' } });
  const controller = scene.start();
  await eventually(async () => (await scene.state()) === 'Succeeded');
  await hub.client.remove('/api/v1/namespaces/curlew-system/secrets/web');
  await eventually(async () => (await problem()) === 'there is no Secret curlew-system/web');
  assert.equal([await hub.contents('page'), (await cluster.get(MAP)).status], ['oslo:1.0.0@1', 200]);
  await hub.client.remove(`${ROOT}/fleetaddons/page`);
  await eventually(async () => (await hub.client.get(`${ROOT}/fleetaddons/page`)).status === 404);
  assert.is((await cluster.get(MAP)).status, 404);
  assert.not.match([await shownBy(scene), ...controller.notes].join('\n'), /some-secret/);
});

test.run();
