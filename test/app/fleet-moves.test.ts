/** A fleet moves between a folder and a hub: its add-ons stay as they are on their cluster. */
import { readFile, writeFile } from 'node:fs/promises';
import { applyFleet } from '../../src/app/fleet-apply.ts';
import { digestOf } from '../../src/core/digest.ts';
import { openAgentScene } from '../support/agent-scene.ts';
import { at, textAt, type ApiClient } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { noReport } from '../support/context.ts';
import { addon, channel, cluster, documents } from '../support/fleet-files.ts';
import { openFleetScene } from '../support/fleet-scene.ts';
import { countedHelm, helmWithRepository, startHelm } from '../support/helm-stand-in.ts';
import { hubChannel, hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene } from '../support/hub-scene.ts';
import {
  addOnTemplate,
  binding,
  configOf,
  deploymentConfig,
  managedCluster,
  managementAddOn,
  placement,
  templateOf,
  stored,
} from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { CAPI_KINDS, createDefinitions, OCM_KINDS } from '../support/upstream-kinds.ts';
import { startServer } from '../support/web-server.ts';

const test = suite('app/fleet-moves', { timeoutMs: 240_000 });
const ROOT = '/apis/fleet.curlew.dev/v1alpha1';
const MAP = '/api/v1/namespaces/default/configmaps/page';
const RECORDS = '/api/v1/namespaces/kube-system/configmaps/curlew-addons';
const metadata = { name: 'page', namespace: 'default' };
const PAGE = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { version: '1' } };
const CHART = { repoURL: 'https://charts.example.com', name: 'page', version: '1.0.0', namespace: 'default' };
const HASH = digestOf(JSON.stringify(PAGE));

interface Written {
  /** Documents of the folder besides the FleetAddon, and objects of the hub. */
  readonly folder: readonly object[];
  readonly hub: (url: string) => readonly object[];
  readonly source: { readonly folder: object; readonly hub: (url: string) => object };
}

const entry = { name: 'page', version: '1.0.0' };
const fromChannel = { channel: { name: 'stable', addon: 'page' } };

/** The add-on `web`, by each kind of source that both have. */
const SOURCES: Readonly<Record<string, Written>> = {
  manifest: {
    folder: [],
    hub: () => [],
    source: { folder: { manifest: 'web.yaml' }, hub: (url) => ({ manifest: url, hash: HASH }) },
  },
  chart: { folder: [], hub: () => [], source: { folder: { chart: CHART }, hub: () => ({ chart: CHART }) } },
  'manifest of a channel': {
    folder: [channel('stable', { ...entry, manifest: 'web.yaml' })],
    hub: (url) => [hubChannel('stable', [{ ...entry, manifest: url, hash: HASH }])],
    source: { folder: fromChannel, hub: () => fromChannel },
  },
  'chart of a channel': {
    folder: [channel('stable', { ...entry, chart: { ...CHART, releaseName: 'web' } })],
    hub: () => [hubChannel('stable', [{ ...entry, chart: { ...CHART, version: undefined, releaseName: 'web' } }])],
    source: { folder: fromChannel, hub: () => fromChannel },
  },
};

async function keysOf(api: ApiClient): Promise<readonly string[]> {
  return Object.keys((at((await api.get(RECORDS)).body, 'data') ?? {}) as object);
}

/** Moves the record into the namespace of the release, where hubs of earlier versions had it. */
async function moveRecord(api: ApiClient): Promise<void> {
  const [key = ''] = await keysOf(api);
  const data = at((await api.get(RECORDS)).body, 'data') as Readonly<Record<string, string>>;
  const record = JSON.parse(data[key] ?? '') as object;
  await api.merge(RECORDS, {
    data: { [key]: null, 'default.web': JSON.stringify({ ...record, namespace: 'default' }) },
  });
}

/** A hub that delivers to the cluster `oslo` itself, with this kubeconfig in base64. */
async function pushTo(hub: ApiClient, value: string): Promise<void> {
  const spec = { access: { kubeconfigSecret: 'oslo-kubeconfig' } };
  await hub.create(`${ROOT}/namespaces/fleet-oslo/clusters`, hubCluster('oslo', { env: 'prod' }, spec));
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'oslo-kubeconfig' }, data: { value } };
  await hub.create('/api/v1/namespaces/fleet-oslo/secrets', secret);
}

for (const [kind, written] of Object.entries(SOURCES)) {
  for (const isOld of kind === 'chart' ? [false, true] : [false]) {
    const where = isOld ? ', with a record where earlier hubs had it' : '';
    test(`an add-on from a ${kind} moves from a folder to a hub and back, and its objects stay${where}`, async () => {
      const certificate = await makeCertificate();
      await using scene = await openFleetScene(['oslo']);
      const api = scene.api('oslo');
      await using stand = await startHelm(api, scene.box);
      const { program, runs } = await countedHelm(
        (await helmWithRepository(stand, scene.box, [PAGE])).program,
        scene.box,
      );
      await using web = await startServer(() => ({ status: 200, body: JSON.stringify(PAGE) }), { tls: certificate });
      const url = `${web.url.replace('127.0.0.1', 'localhost')}/page.yaml`;
      await scene.manifest('1', PAGE);
      await scene.fleet([...written.folder, addon('web', { source: written.source.folder })]);
      const apply = async () => (await scene.apply({ helm: program }, { env: { PATH: process.env['PATH'] } })).done;
      const results = async () => (await apply()).map(({ result, reason }) => `${result} ${reason}`.trim());
      assert.equal(await results(), ['done']);
      if (isOld) await moveRecord(api);
      const [uid, keys] = [textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)];
      const isSame = async (): Promise<void> => {
        assert.equal([textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)], [uid, keys]);
      };

      await using own = await startMemoryApiServer({ certificate });
      await using hub = await openHubScene(own.kubeconfig);
      await hub.client.create('/api/v1/namespaces', { metadata: { name: 'fleet-oslo' } });
      await pushTo(hub.client, await readFile(scene.box.at('oslo.conf'), 'base64'));
      for (const object of written.hub(url)) await hub.client.create(`${ROOT}/channels`, object);
      await hub.addon('web', { source: written.source.hub(url) });
      await writeFile(scene.box.at('ca.pem'), certificate.ca);
      const controller = hub.start({ helm: program, caFile: scene.box.at('ca.pem') });
      await hub.condition('web', 'Available', 'True AllSucceeded');
      await controller.stop();
      await isSame();

      assert.equal(await results(), ['done']);
      await isSame();
      assert.not.match((await runs()).join(' '), 'uninstall');
    });
  }
}

for (const [kind, source] of [
  ['manifest', 'manifest'],
  ['chart', { channel: { name: 'stable', addon: 'web' } }],
] as const) {
  test(`an add-on from a ${kind} moves from a folder to an agent of a hub and back, and its objects stay`, async () => {
    await using scene = await openAgentScene();
    const { box, here, helm } = scene;
    await writeFile(box.at('web.yaml'), JSON.stringify(PAGE));
    await writeFile(box.at('web.tgz'), JSON.stringify([PAGE]));
    const packed = { name: 'web', version: '1', chart: { package: 'web.tgz', namespace: 'default' } };
    const own = source === 'manifest' ? addon('web') : addon('web', { source });
    const all = [cluster('here', { env: 'prod' }), channel('stable', packed), own];
    await writeFile(box.at('fleet.yaml'), documents(...all));
    const context = { signal: new AbortController().signal, report: noReport, env: { PATH: process.env['PATH'] } };
    const request = { files: ['fleet.yaml'], helm: helm.program, timeout: 15_000, wait: 5000 };
    const apply = async () => (await applyFleet(request, { ...context, cwd: box.path })).done;
    assert.equal(
      (await apply()).map(({ act, result }) => `${act} ${result}`),
      ['install done'],
    );
    const present = async (): Promise<unknown> => [
      textAt((await here.get(MAP)).body, 'metadata.uid'),
      await keysOf(here),
    ];
    const before = await present();
    await scene.order(source === 'manifest' ? { source: scene.manifest('1') } : { source: scene.chart('1') });
    const agent = await scene.start();
    await scene.becomes('1 Succeeded');
    await agent.stop();
    assert.equal(await present(), before);
    assert.ok((await apply()).every(({ result }) => result === 'done'));
    assert.equal(await present(), before);
    assert.ok(!helm.commands.some((one) => one.startsWith('uninstall')));
  });
}

test('an add-on from a template moves from a folder to a hub and back, and its objects stay', async () => {
  const certificate = await makeCertificate();
  await using scene = await openFleetScene(['oslo']);
  const api = scene.api('oslo');
  const template = addOnTemplate('web-1', [PAGE]);
  const config = deploymentConfig('web', { agentInstallNamespace: 'default' });
  const placements = [placement('all'), binding(), managedCluster('oslo')];
  const web = managementAddOn({ all: {} }, { defaultConfigs: [templateOf('web-1'), configOf('web')] });
  await scene.fleet([template, config, ...placements, web]);
  const apply = async () => (await scene.apply()).done.map(({ act, result }) => `${act} ${result}`);
  assert.equal(await apply(), ['install done']);
  const present = async (): Promise<unknown> => [textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)];
  const before = await present();

  await using own = await startMemoryApiServer({ certificate });
  await using hub = await openHubScene(own.kubeconfig);
  await createDefinitions(hub.client, OCM_KINDS);
  for (const name of ['fleet-ops', 'fleet-oslo', 'oslo'])
    await hub.client.create('/api/v1/namespaces', { metadata: { name } });
  await pushTo(hub.client, await readFile(scene.box.at('oslo.conf'), 'base64'));
  const [addons, clusters] = ['addon', 'cluster'].map((group) => `/apis/${group}.open-cluster-management.io`);
  for (const [path, object] of [
    [`${addons}/v1alpha1/addontemplates`, template],
    [`${addons}/v1alpha1/namespaces/fleet-ops/addondeploymentconfigs`, config],
    [`${clusters}/v1/managedclusters`, managedCluster('oslo')],
    [`${clusters}/v1beta1/namespaces/fleet-ops/placements`, placement('all')],
    [`${clusters}/v1beta2/namespaces/fleet-ops/managedclustersetbindings`, binding()],
    [`${addons}/v1alpha1/clustermanagementaddons`, stored(web)],
  ] as const)
    assert.is((await hub.client.create(path, object)).status, 201, path);
  const controller = hub.start({ reconcile: [['clustermanagementaddons']] });
  await hub.condition('web', 'Available', 'True AllSucceeded');
  await controller.stop();
  assert.equal(await present(), before);
  assert.ok((await apply()).every((one) => one.endsWith('done')));
  assert.equal(await present(), before);
});

test('a HelmChartProxy moves from a folder to a hub with its Cluster of Cluster API and back, and its release stays', async () => {
  const certificate = await makeCertificate();
  await using scene = await openFleetScene(['oslo']);
  const api = scene.api('oslo');
  await using stand = await startHelm(api, scene.box);
  const { program, runs } = await countedHelm((await helmWithRepository(stand, scene.box, [PAGE])).program, scene.box);
  const labels = { env: 'prod' };
  const proxy = {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: { name: 'page', namespace: 'default' },
    spec: {
      clusterSelector: { matchLabels: labels },
      repoURL: 'https://charts.example.com',
      chartName: 'page',
      version: '1.0.0',
      releaseName: 'page',
    },
  };
  await scene.fleet([proxy]);
  const given = { env: { PATH: process.env['PATH'] } };
  const apply = async () =>
    (await scene.apply({ helm: program }, given)).done.map(({ act, result }) => `${act} ${result}`);
  assert.equal(await apply(), ['install done']);
  const present = async (): Promise<unknown> => [textAt((await api.get(MAP)).body, 'metadata.uid'), await keysOf(api)];
  const before = await present();

  await using own = await startMemoryApiServer({ certificate });
  await using hub = await openHubScene(own.kubeconfig);
  await createDefinitions(hub.client, CAPI_KINDS);
  const oslo = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', spec: {} };
  const metadata = { name: 'oslo', namespace: 'default', labels };
  await hub.client.create('/apis/cluster.x-k8s.io/v1beta1/namespaces/default/clusters', { ...oslo, metadata });
  await hub.client.create('/api/v1/namespaces/default/secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'cluster.x-k8s.io/secret',
    metadata: { name: 'oslo-kubeconfig', namespace: 'default' },
    data: { value: await readFile(scene.box.at('oslo.conf'), 'base64') },
  });
  const proxies = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies';
  await hub.client.create(proxies, proxy);
  const controller = hub.start({ helm: program, reconcile: [['helmchartproxies']] });
  await eventually(async () => {
    const found = at((await hub.client.get(`${proxies}/page`)).body, 'status.conditions');
    const ready = (Array.isArray(found) ? found.filter(isMap) : []).find((one) => one['type'] === 'Ready');
    return ready?.['status'] === 'True';
  });
  await controller.stop();
  assert.equal(await present(), before);
  assert.ok((await apply()).every((one) => one.endsWith('done')));
  assert.equal(await present(), before);
  assert.not.match((await runs()).join(' '), 'uninstall');
});

test.run();
