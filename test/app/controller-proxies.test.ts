/** HelmChartProxies in a hub, with the clusters of Cluster API: hub and clusters are API servers in this process, and helm a stand-in. */
import { readFile } from 'node:fs/promises';
import { openClusterApi } from '../../src/cluster/deliver/channel-cluster.ts';
import { Upstream } from '../../src/fleet/hub/run/upstream.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { helmWithRepository, startHelm, type HelmStandIn } from '../support/helm-stand-in.ts';
import { eventually, openHubScene, type HubScene, type RunningController } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree } from '../support/tree.ts';
import { CAPI_KINDS, createDefinitions, OCM_KINDS } from '../support/upstream-kinds.ts';

const test = suite('app/controller-proxies', { timeoutMs: 240_000 });
const certificate = await makeCertificate();
const FLEET = '/apis/fleet.curlew.dev/v1alpha1';
const PROXIES = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies';
const CLUSTERS = '/apis/cluster.x-k8s.io/v1beta1/namespaces/default/clusters';
const SECRETS = '/api/v1/namespaces/default/secrets';
const PAGE = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page' }, data: { version: '1' } };
const OSLO = {
  apiVersion: 'cluster.x-k8s.io/v1beta1',
  kind: 'Cluster',
  metadata: { name: 'oslo', namespace: 'default', labels: { cni: 'page' } },
  spec: {
    clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } },
    controlPlaneRef: {
      apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
      kind: 'KubeadmControlPlane',
      name: 'oslo-control-plane',
    },
  },
};

interface Scene extends AsyncDisposable {
  readonly hub: HubScene;
  readonly own: MemoryApiServer;
  readonly helm: HelmStandIn;
  readonly cluster: ApiClient;
  /** A file with what downloads were given. */
  readonly access: string;
  /** The stand-in of helm. */
  readonly program: string;
  readonly start: () => RunningController;
  readonly proxy: (spec?: object, metadata?: object) => Promise<void>;
  /** `True UpToDate` and so on, in the order of the status. */
  readonly conditions: (name?: string) => Promise<string>;
}

/** A hub with the cluster `oslo` of Cluster API, which has labels and a control plane. */
async function openScene(): Promise<Scene> {
  const box = await tree();
  const own = await startMemoryApiServer({ certificate });
  const server = await startMemoryApiServer({ certificate });
  const hub = await openHubScene(own.kubeconfig);
  const cluster = apiClient(server.kubeconfig);
  const helm = await startHelm(cluster, box);
  await createDefinitions(hub.client, CAPI_KINDS);
  const { program, access } = await helmWithRepository(helm, box, [PAGE]);
  await hub.client.create(CLUSTERS, OSLO);
  await hub.client.create('/apis/controlplane.cluster.x-k8s.io/v1beta1/namespaces/default/kubeadmcontrolplanes', {
    apiVersion: 'controlplane.cluster.x-k8s.io/v1beta1',
    kind: 'KubeadmControlPlane',
    metadata: { name: 'oslo-control-plane', namespace: 'default' },
    spec: { replicas: 3 },
  });
  const value = Buffer.from(server.kubeconfig).toString('base64');
  await hub.client.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'cluster.x-k8s.io/secret',
    metadata: { name: 'oslo-kubeconfig', namespace: 'default' },
    data: { value },
  });
  return {
    hub,
    own,
    helm,
    cluster,
    access,
    program,
    start: () => hub.start({ helm: program, reconcile: [['helmchartproxies']] }),
    proxy: async (spec = {}, metadata = {}) => {
      const selected = { clusterSelector: { matchLabels: { cni: 'page' } } };
      const chart = { repoURL: 'https://charts.example.com', chartName: 'page', version: '1.0.0' };
      const { status, body } = await hub.client.create(PROXIES, {
        apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
        kind: 'HelmChartProxy',
        metadata: { name: 'page', namespace: 'default', ...metadata },
        spec: { ...selected, ...chart, ...spec },
      });
      assert.is(status, 201, textAt(body, 'message'));
    },
    conditions: async (name = 'page') => {
      const found = at((await hub.client.get(`${PROXIES}/${name}`)).body, 'status.conditions');
      const all = Array.isArray(found) ? found.filter(isMap) : [];
      return all.map((one) => `${textAt(one, 'type')} ${textAt(one, 'status')} ${textAt(one, 'reason')}`).join(', ');
    },
    [Symbol.asyncDispose]: async () => {
      await hub[Symbol.asyncDispose]();
      for (const one of [helm, server, own, box]) await one[Symbol.asyncDispose]();
    },
  };
}

test('while the hub does not have a kind that is to be taken, nothing changes, and the kind is named', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  await scene.proxy();
  const names = ['helmchartproxies', 'clustermanagementaddons'] as const;
  const controller = hub.start({ helm: scene.program, reconcile: [names] });
  const text =
    'cannot take clustermanagementaddons: the server has no ClusterManagementAddOn of addon.open-cluster-management.io: install its definition, or leave clustermanagementaddons out of --reconcile';
  await eventually(() => controller.notes.some((one) => one.includes(text)));
  assert.is((await hub.client.get('/apis/fleet.curlew.dev/v1alpha1/fleetaddons/page')).status, 404);
  assert.is(controller.notes.filter((one) => one === 'leading the hub').length, 1);
  await controller.stop();

  await using box = await tree({ conf: scene.own.kubeconfig });
  const ended = new AbortController();
  const { signal } = ended;
  const { api } = await openClusterApi({ kubeconfig: 'conf' }, { signal, report: noReport, env: {}, cwd: box.path });
  let changes = 0;
  const upstream = await Upstream.open(api, names, {
    signal,
    onChange: () => (changes += 1),
    say: () => undefined,
    findNewest: async () => Promise.resolve('1.0.0'),
    askMs: 100,
  });
  const running = upstream.run(signal).catch(() => undefined);
  assert.is(upstream.definitions.length, 2);
  assert.is(upstream.problem, text);
  await createDefinitions(hub.client, OCM_KINDS);
  await eventually(() => upstream.definitions.length === 11 && upstream.problem === undefined);
  assert.ok(changes > 0);
  ended.abort();
  await running;
});

const READY = 'Ready True Ready, HelmReleaseProxiesReady True Ready, HelmReleaseProxySpecsUpToDate True UpToDate';

test('a HelmChartProxy reaches the clusters of its namespace, gets its status, and leaves them when it is deleted', async () => {
  await using scene = await openScene();
  const { hub, cluster, helm } = scene;
  const valuesTemplate =
    'replicas: {{ .ControlPlane.spec.replicas }}\ncidr: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}\n';
  const data = {
    'config.json': Buffer.from('logins ').toString('base64'),
    'ca.crt': Buffer.from('authorities ').toString('base64'),
  };
  const tlsConfig = { caSecret: { name: 'repository' }, insecureSkipTLSVerify: true };
  await scene.proxy({ valuesTemplate, credentials: { secret: { name: 'repository' } }, tlsConfig });
  const controller = scene.start();
  const state = async (): Promise<string> =>
    textAt((await hub.client.get(`${FLEET}/namespaces/fleet-oslo/clusteraddons/page`)).body, 'status.message');
  await eventually(async () => (await state()) === 'there is no Secret default/repository');
  // Before its cluster was there, nothing was to be done.
  await eventually(async () => (await scene.conditions()).startsWith('Ready False'));
  await hub.client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'repository' }, data });
  await eventually(async () => (await scene.conditions()) === READY);
  assert.is(await readFile(scene.access, 'utf8'), 'authorities logins --insecure-skip-tls-verify\n');
  const { body } = await hub.client.get(`${PROXIES}/page`);
  assert.equal(at(body, 'status.matchingClusters'), [
    { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', name: 'oslo', namespace: 'default' },
  ]);
  assert.is(at(body, 'status.observedGeneration'), 1);
  assert.is((await cluster.get('/api/v1/namespaces/default/configmaps/page')).status, 200);
  const values = at((await hub.client.get(`${FLEET}/namespaces/fleet-oslo/clusteraddons/page`)).body, 'spec.values');
  assert.equal(values, { replicas: 3, cidr: '10.1.0.0/16' });
  assert.is(await scene.hub.contents('page'), 'oslo:1.0.0@1');

  await hub.client.merge(`${PROXIES}/page`, { spec: { version: '1.0.1' } });
  await eventually(async () => at((await hub.client.get(`${PROXIES}/page`)).body, 'status.observedGeneration') === 2);
  await hub.becomes('page', 'oslo:1.0.1@2');
  await eventually(async () => (await scene.conditions()) === READY);
  const writes = scene.own.requests.filter((one) => /^(?:PATCH|POST|PUT)/.test(one) && !one.includes('leases')).length;
  await hub.client.merge(`${CLUSTERS}/oslo`, { metadata: { annotations: { note: 'nothing else' } } });
  await scene.proxy({ clusterSelector: { matchLabels: { cni: 'none' } } }, { name: 'other' });
  await eventually(async () => (await scene.conditions('other')) === READY);
  const more = scene.own.requests.filter((one) => /^(?:PATCH|POST|PUT)/.test(one) && !one.includes('leases')).length;
  // The change and the proxy of this test; its finalizer, FleetAddon, both statuses, some of them twice, and an event.
  assert.ok(more - writes <= 10, String(more - writes));

  await hub.client.remove(`${PROXIES}/page`);
  await eventually(async () => (await hub.client.get(`${PROXIES}/page`)).status === 404);
  assert.is((await hub.client.get(`${FLEET}/fleetaddons/page`)).status, 404);
  assert.is((await cluster.get('/api/v1/namespaces/default/configmaps/page')).status, 404);
  assert.equal(
    helm.commands.filter((one) => one.startsWith('uninstall')),
    ['uninstall page'],
  );
  await controller.stop();
});

test('the last Cluster that is gone takes its objects along, and one of its name is taken after it', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  await scene.proxy();
  // Nothing is made from it, and nothing waits for its deletion.
  await scene.proxy({ chartName: 7 }, { name: 'wrong' });
  const controller = scene.start();
  await hub.becomes('page', 'oslo:1.0.0@1');
  const own = `${FLEET}/namespaces/fleet-oslo/clusters/oslo`;
  const finalizers = async (path: string): Promise<unknown> =>
    at((await hub.client.get(path)).body, 'metadata.finalizers');
  await eventually(async () => (await scene.conditions()) === READY);
  assert.equal(await finalizers(own), ['fleet.curlew.dev/removal']);
  await eventually(async () => (await scene.conditions('wrong')).endsWith('HelmReleaseProxyCreationFailed'));
  assert.is(await finalizers(`${PROXIES}/wrong`), undefined);

  await hub.client.remove(`${CLUSTERS}/oslo`);
  await eventually(async () => (await hub.client.get(own)).status === 404);
  assert.is(await hub.contents('page'), '');
  await hub.client.create(CLUSTERS, OSLO);
  await eventually(async () => (await hub.contents('page')).startsWith('oslo:1.0.0'));
  await eventually(async () => (await scene.conditions()) === READY);

  await hub.client.remove(`${CLUSTERS}/oslo`);
  await hub.client.remove(`${PROXIES}/page`);
  await eventually(async () => (await hub.client.get(`${PROXIES}/page`)).status === 404);
  assert.is((await hub.client.get(`${FLEET}/fleetaddons/page`)).status, 404);
  await controller.stop();
});

test('HelmChartProxies that are deleted with their definition leave their add-ons as they are', async () => {
  await using scene = await openScene();
  const { hub, cluster } = scene;
  await scene.proxy();
  const controller = scene.start();
  await eventually(async () => (await scene.conditions()) === READY);
  const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/helmchartproxies.addons.cluster.x-k8s.io';
  // An API server holds it in this way while it deletes the objects.
  await hub.client.merge(definition, { metadata: { finalizers: ['customresourcecleanup.apiextensions.k8s.io'] } });
  await hub.client.remove(definition);
  await hub.client.remove(`${PROXIES}/page`);
  await eventually(() => controller.notes.some((one) => one.includes('nothing is removed from clusters')));
  const { status, body } = await hub.client.get(`${FLEET}/fleetaddons/page`);
  assert.equal([status, at(body, 'metadata.deletionTimestamp')], [200, undefined]);
  assert.is((await cluster.get('/api/v1/namespaces/default/configmaps/page')).status, 200);
  await controller.stop();
});

test.run();
