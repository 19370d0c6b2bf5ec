/** Add-ons of Open Cluster Management in a hub: hub and clusters are API servers in this process. */
import { isDeepStrictEqual } from 'node:util';
import { NO_AGENT } from '../../src/fleet/upstream/addon-template.ts';
import { apiClient, at, textAt, type ApiClient } from '../support/api-client.ts';
import { isMap, type JsonObject } from '../support/api-server/fields.ts';
import { startMemoryApiServer, type MemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { binding, configOf, managedCluster, placement, stored, templateOf } from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { createDefinitions, OCM_KINDS } from '../support/upstream-kinds.ts';

const test = suite('app/controller-ocm', { timeoutMs: 240_000 });
const certificate = await makeCertificate();
const FLEET = '/apis/fleet.curlew.dev/v1alpha1';
const ADDON = '/apis/addon.open-cluster-management.io/v1alpha1';
const CLUSTER = '/apis/cluster.open-cluster-management.io';
const MAP = '/api/v1/namespaces/default/configmaps/page';

interface Scene extends AsyncDisposable {
  readonly hub: HubScene;
  readonly clusters: Readonly<Record<string, MemoryApiServer & { readonly client: ApiClient }>>;
  readonly create: (path: string, object: object) => Promise<void>;
  /** Status and reason of the condition Progressing of the add-on on a cluster. */
  readonly progress: (cluster: string) => Promise<string>;
  /** What a cluster has: the text of the add-on. */
  readonly text: (cluster: string) => Promise<string>;
}

/** A hub with two clusters, of which `oslo` is a canary, and the template `page-1`. */
async function openScene(): Promise<Scene> {
  const own = await startMemoryApiServer({ certificate });
  const hub = await openHubScene(own.kubeconfig);
  await createDefinitions(hub.client, OCM_KINDS);
  const clusters: Record<string, MemoryApiServer & { readonly client: ApiClient }> = {};
  const create = async (path: string, object: object): Promise<void> => {
    const { status, body } = await hub.client.create(path, object);
    assert.is(status, 201, textAt(body, 'message'));
  };
  await create('/api/v1/namespaces', { metadata: { name: 'fleet-ops' } });
  for (const name of ['oslo', 'paris']) {
    const server = await startMemoryApiServer({ certificate });
    clusters[name] = { ...server, client: apiClient(server.kubeconfig) };
    for (const namespace of [`fleet-${name}`, name])
      await create('/api/v1/namespaces', { metadata: { name: namespace } });
    const data = { value: Buffer.from(server.kubeconfig).toString('base64') };
    const metadata = { name: `${name}-kubeconfig` };
    await create(`/api/v1/namespaces/fleet-${name}/secrets`, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    const spec = { access: { kubeconfigSecret: `${name}-kubeconfig` } };
    await create(`${FLEET}/namespaces/fleet-${name}/clusters`, hubCluster(name, {}, spec));
    await create(
      `${CLUSTER}/v1/managedclusters`,
      managedCluster(name, { env: 'prod', ...(name === 'oslo' && { canary: 'yes' }) }),
    );
  }
  const manifests = [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'page', namespace: 'default' },
      data: { text: '{{TEXT}} {{CLUSTER_NAME}}' },
    },
  ];
  await create(`${ADDON}/addontemplates`, {
    apiVersion: 'addon.open-cluster-management.io/v1alpha1',
    kind: 'AddOnTemplate',
    metadata: { name: 'page-1' },
    spec: { addonName: 'page', agentSpec: { workload: { manifests } } },
  });
  await create(`${ADDON}/namespaces/fleet-ops/addondeploymentconfigs`, {
    apiVersion: 'addon.open-cluster-management.io/v1alpha1',
    kind: 'AddOnDeploymentConfig',
    metadata: { name: 'page', namespace: 'fleet-ops' },
    spec: { agentInstallNamespace: '', customizedVariables: [{ name: 'TEXT', value: 'one' }] },
  });
  return {
    hub,
    clusters,
    create,
    progress: async (cluster) => {
      const { body } = await hub.client.get(`${ADDON}/namespaces/${cluster}/managedclusteraddons/page`);
      const all = at(body, 'status.conditions');
      const found = (Array.isArray(all) ? all.filter(isMap) : []).find((one) => one['type'] === 'Progressing');
      return `${textAt(found, 'status')} ${textAt(found, 'reason')}`;
    },
    text: async (cluster) => textAt((await clusters[cluster]?.client.get(MAP))?.body, 'data.text'),
    [Symbol.asyncDispose]: async () => {
      await hub[Symbol.asyncDispose]();
      for (const one of [...Object.values(clusters), own]) await one[Symbol.asyncDispose]();
    },
  };
}

function addon(installStrategy: object): object {
  const defaultConfigs = [templateOf('page-1'), configOf('page')];
  return stored({
    kind: 'ClusterManagementAddOn',
    metadata: { name: 'page' },
    spec: { defaultConfigs, installStrategy },
  });
}

function first(found: unknown): JsonObject {
  const [one] = Array.isArray(found) ? found.filter(isMap) : [];
  return one ?? {};
}

test('an add-on of templates goes to the canary first, says how far it is in its own kinds, and leaves when it is deleted', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  const predicates = [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: 'prod' } } } }];
  const decisionGroups = [
    { groupName: 'canary', groupClusterSelector: { labelSelector: { matchLabels: { canary: 'yes' } } } },
  ];
  await scene.create(
    `${CLUSTER}/v1beta1/namespaces/fleet-ops/placements`,
    placement('prod', { predicates, decisionStrategy: { groupStrategy: { decisionGroups } } }),
  );
  await scene.create(`${CLUSTER}/v1beta2/namespaces/fleet-ops/managedclustersetbindings`, binding());
  const progressive = { mandatoryDecisionGroups: [{ groupName: 'canary' }] };
  const rolloutStrategy = { type: 'Progressive', progressive };
  await scene.create(
    `${ADDON}/clustermanagementaddons`,
    addon({ type: 'Placements', placements: [{ name: 'prod', namespace: 'fleet-ops', rolloutStrategy }] }),
  );
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  await eventually(async () => (await scene.progress('paris')) === 'False Completed');
  assert.equal([await scene.text('oslo'), await scene.text('paris')], ['one oslo', 'one paris']);
  const { body } = await hub.client.get(`${ADDON}/namespaces/oslo/managedclusteraddons/page`);
  const references = at(body, 'status.configReferences') as readonly JsonObject[];
  assert.equal(
    references.map((one) => [textAt(one, 'resource'), textAt(one, 'name')]),
    [
      ['addontemplates', 'page-1'],
      ['addondeploymentconfigs', 'page'],
    ],
  );
  for (const one of references)
    assert.is(textAt(one, 'lastAppliedConfig.specHash'), textAt(one, 'desiredConfig.specHash'));
  const hash = textAt(references[1], 'desiredConfig.specHash');
  const progression = async (): Promise<JsonObject> =>
    first(at((await hub.client.get(`${ADDON}/clustermanagementaddons/page`)).body, 'status.installProgressions'));
  await eventually(async () => textAt(await progression(), 'conditions.0.reason') === 'Completed');
  assert.is(textAt(await progression(), 'configReferences.1.lastKnownGoodConfig.specHash'), hash);

  const change = { spec: { customizedVariables: [{ name: 'TEXT', value: 'two' }] } };
  await hub.client.merge(`${ADDON}/namespaces/fleet-ops/addondeploymentconfigs/page`, change);
  await eventually(async () => (await scene.text('paris')) === 'two paris');
  await eventually(async () => (await scene.progress('paris')) === 'False Completed');

  await hub.client.remove(`${ADDON}/clustermanagementaddons/page`);
  await hub.order('page', 'approve', { removals: 2 });
  await eventually(async () => (await hub.client.get(`${ADDON}/clustermanagementaddons/page`)).status === 404);
  assert.equal([await scene.text('oslo'), await scene.text('paris')], ['', '']);
  await controller.stop();
});

test('people install an add-on by a ManagedClusterAddOn, whose own configuration counts, and a program of its own is left alone', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  await scene.create(`${ADDON}/namespaces/fleet-ops/addondeploymentconfigs`, {
    metadata: { name: 'own', namespace: 'fleet-ops' },
    spec: { agentInstallNamespace: '', customizedVariables: [{ name: 'TEXT', value: 'own' }] },
  });
  await scene.create(`${ADDON}/clustermanagementaddons`, addon({ type: 'Manual' }));
  await scene.create(`${ADDON}/clustermanagementaddons`, { metadata: { name: 'program' }, spec: {} });
  await scene.create(`${ADDON}/namespaces/oslo/managedclusteraddons`, {
    metadata: { name: 'page', namespace: 'oslo' },
    spec: { configs: [configOf('own')] },
  });
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  await eventually(async () => (await scene.progress('oslo')) === 'False Completed');
  assert.equal([await scene.text('oslo'), await scene.text('paris')], ['own oslo', '']);
  const { body } = await hub.client.get(`${ADDON}/clustermanagementaddons/program`);
  assert.equal([at(body, 'metadata.finalizers'), at(body, 'status')], [undefined, undefined]);
  const onOslo = (await hub.client.get(`${ADDON}/namespaces/oslo/managedclusteraddons/page`)).body;
  const registration = (at(onOslo, 'status.conditions') as readonly JsonObject[]).at(-1);
  assert.equal(
    ['type', 'status', 'reason'].map((key) => textAt(registration, key)),
    ['RegistrationApplied', 'True', 'SetPermissionApplied'],
  );
  await hub.client.remove(`${ADDON}/namespaces/oslo/managedclusteraddons/page`);
  await eventually(async () => (await scene.text('oslo')) === '');
  await controller.stop();
});

test('an object that leaves a template is deleted, unless it is to be an orphan', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
  const rule = { group: '', resource: 'configmaps', name: 'kept', namespace: 'default' };
  const deleteOption = { propagationPolicy: 'SelectivelyOrphan', selectivelyOrphans: { orphaningRules: [rule] } };
  const spec = (...names: readonly string[]) => {
    return { addonName: 'page', agentSpec: { deleteOption, workload: { manifests: names.map(map) } } };
  };
  const template = `${ADDON}/addontemplates/page-1`;
  await hub.client.merge(template, { spec: spec('page', 'gone', 'kept') });
  await scene.create(`${ADDON}/clustermanagementaddons`, addon({ type: 'Manual' }));
  await scene.create(`${ADDON}/namespaces/oslo/managedclusteraddons`, {
    apiVersion: 'addon.open-cluster-management.io/v1alpha1',
    kind: 'ManagedClusterAddOn',
    metadata: { name: 'page', namespace: 'oslo' },
    spec: {},
  });
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  const client = scene.clusters['oslo']?.client;
  const maps = async (): Promise<readonly unknown[]> =>
    Promise.all(['page', 'gone', 'kept'].map(async (name) => (await client?.get(MAP.replace('page', name)))?.status));
  await eventually(async () => (await maps()).join() === '200,200,200');
  await eventually(async () => (await scene.progress('oslo')) === 'False Completed');
  await hub.client.merge(template, { spec: spec('page') });
  await eventually(async () => (await maps()).join() === '200,404,200');
  await eventually(async () => (await scene.progress('oslo')) === 'False Completed');
  assert.equal(await maps(), [200, 404, 200]);
  await controller.stop();
});

test('a FleetAddon of a template may leave what that no longer has: prune: None', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
  const spec = (names: readonly string[], prune: string): object => {
    const agentSpec = { workload: { manifests: names.map(map) } };
    return { prune, config: { default: { templates: [{ addonName: 'web', agentSpec }] } } };
  };
  const names = async (): Promise<string> => {
    const { body } = (await scene.clusters['oslo']?.client.get('/api/v1/namespaces/default/configmaps')) ?? {};
    const items = at(body, 'items');
    return (Array.isArray(items) ? items : []).map((one) => textAt(one, 'metadata.name')).join(' ');
  };
  await hub.addon('web', { source: { template: 'web' }, ...spec(['a', 'b', 'c'], 'Auto') });
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  await hub.condition('web', 'Available', 'True AllSucceeded');
  assert.is(await names(), 'a b c');
  for (const [written, prune, expected] of [
    [['a', 'b'], 'Auto', 'a b'],
    [['a', 'd'], 'None', 'a b d'],
  ] as const) {
    await hub.change('web', { spec: spec(written, prune) });
    await eventually(async () => (await names()) === expected);
    await hub.condition('web', 'Available', 'True AllSucceeded');
  }
  const { body } = await hub.client.get(`${FLEET}/namespaces/fleet-oslo/clusteraddons/web`);
  assert.equal(at(body, 'status.orphans'), ['ConfigMap default/b']);
  await controller.stop();
});

test('by the rules of Open Cluster Management, a Deployment of a template is there with one of its pods', async () => {
  await using scene = await openScene();
  const { hub } = scene;
  const labels = { app: 'web' };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: {} } },
  };
  await scene.create(`${ADDON}/addontemplates`, {
    metadata: { name: 'web-1' },
    spec: { addonName: 'page', agentSpec: { workload: { manifests: [deployment] } } },
  });
  const page = {
    metadata: { name: 'page', annotations: { 'curlew.dev/compat': 'ocm' } },
    spec: { defaultConfigs: [templateOf('web-1')], installStrategy: { type: 'Manual' } },
  };
  await scene.create(`${ADDON}/clustermanagementaddons`, stored(page));
  const path = `${ADDON}/namespaces/oslo/managedclusteraddons`;
  await scene.create(path, { metadata: { name: 'page', namespace: 'oslo' }, spec: {} });
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  const oslo = scene.clusters['oslo'];
  assert.ok(oslo);
  const web = '/apis/apps/v1/namespaces/default/deployments/web';
  await eventually(async () => (await oslo.client.get(web)).status === 200);
  const observedGeneration = at((await oslo.client.get(web)).body, 'metadata.generation');
  const counts = { replicas: 3, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 };
  await oslo.client.merge(`${web}/status`, { status: { observedGeneration, ...counts } });
  await eventually(async () => (await scene.progress('oslo')) === 'False Completed');
  const available = first(at((await hub.client.get(`${path}/page`)).body, 'status.conditions'));
  assert.equal(
    ['type', 'status', 'reason'].map((key) => textAt(available, key)),
    ['Available', 'True', 'ProbeAvailable'],
  );
  await controller.stop();
});

test('a template that asks for certificates waits where there is no agent, is no failure, and its ManagedClusterAddOn says why', async () => {
  await using scene = await openScene();
  const { hub, clusters } = scene;
  const path = `${ADDON}/namespaces/oslo/managedclusteraddons`;
  await scene.create(`${ADDON}/addontemplates`, {
    metadata: { name: 'page-2' },
    spec: { addonName: 'page', agentSpec: {}, registration: [{ type: 'KubeClient' }] },
  });
  await scene.create(`${ADDON}/clustermanagementaddons`, addon({ type: 'Manual' }));
  const configs = [templateOf('page-2')];
  await scene.create(path, { metadata: { name: 'page', namespace: 'oslo' }, spec: { configs } });
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  await eventually(async () => (await scene.progress('oslo')) === 'False Registration');
  const conditions = at((await hub.client.get(`${path}/page`)).body, 'status.conditions');
  const why = `the configuration is not applied: ${NO_AGENT}`;
  const messages = (conditions as readonly JsonObject[]).map((one) => textAt(one, 'message'));
  assert.equal(messages.slice(0, 2), [why, why]);
  assert.match(messages[2] ?? '', /^no agent of the cluster is accepted/);
  // The status of the add-on follows that of its cluster.
  const counts = async (): Promise<unknown> =>
    at((await hub.client.get(`${FLEET}/fleetaddons/page`)).body, 'status.counts');
  await eventually(async () => isDeepStrictEqual(await counts(), { Skipped: 1 }));
  await controller.stop();
  assert.is((await clusters['oslo']?.client.get(MAP))?.status, 404);
});

test.run();
