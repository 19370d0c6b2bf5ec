/** Objects of other programs on a real API server, taken by a controller with the rights that the manifests give. */
import { readFile, writeFile } from 'node:fs/promises';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { at, textAt } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { CAPI_KINDS, definitionsOf, OCM_KINDS } from '../support/upstream-kinds.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/controller-upstream', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const PROXY = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies/page';
const ADDON = '/apis/addon.open-cluster-management.io/v1alpha1';

if (reason === undefined) {
  let box: Tree;
  let server: ApiServer;
  let hub: HubScene;

  /** Status and reason of a condition of an object. */
  const condition = async (path: string, type: string): Promise<string> => {
    const all = at((await hub.client.get(path)).body, 'status.conditions');
    const found = (Array.isArray(all) ? all.filter(isMap) : []).find((one) => one['type'] === type);
    return `${textAt(found, 'status')} ${textAt(found, 'reason')}`;
  };
  const apply = async (...objects: readonly object[]): Promise<string> =>
    server.kubectl(['apply', '-f', '-'], objects.map((one) => JSON.stringify(one)).join('\n---\n'));

  test.before(async () => {
    box = opened.keep(await tree());
    server = opened.keep(await startApiServer(box.at('server')));
    const reconcile = ['helmchartproxies', 'clustermanagementaddons'] as const;
    await apply(...hubManifests({ reconcile, push: ['paris'] }), ...definitionsOf([...CAPI_KINDS, ...OCM_KINDS]));
    const admin = await readFile(server.kubeconfig, 'utf8');
    hub = opened.keep(await openHubScene(admin));
    const token = await server.kubectl(['create', 'token', 'curlew-controller', '-n', 'curlew-system']);
    const conf = JSON.parse(admin) as { readonly users: readonly object[] };
    const users = [{ name: 'admin', user: { token: token.trim() } }];
    await writeFile(box.at('controller.conf'), JSON.stringify({ ...conf, users }));
    // The hub itself is also the cluster: what is delivered is a ConfigMap.
    const data = { value: Buffer.from(admin).toString('base64') };
    const secret = (name: string, namespace: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `${name}-kubeconfig`, namespace },
      data,
    });
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paris' } };
    await apply(namespace, secret('oslo', 'default'), secret('paris', 'fleet-paris'));
    await apply(hubCluster('paris', {}, { access: { kubeconfigSecret: 'paris-kubeconfig' } }));
    const one = startCurlew(
      ['controller', '--kubeconfig', box.at('controller.conf'), '--reconcile', reconcile.join()],
      { cwd: box.path },
    );
    opened.keep({
      [Symbol.asyncDispose]: async () => {
        one.kill('SIGKILL');
        await one;
      },
    });
  });
  test.after(opened.close);

  test('a HelmChartProxy gets the clusters of Cluster API, and says what holds it', async () => {
    await apply(
      {
        apiVersion: 'cluster.x-k8s.io/v1beta1',
        kind: 'Cluster',
        metadata: { name: 'oslo', namespace: 'default', labels: { cni: 'page' } },
        spec: { clusterNetwork: { pods: { cidrBlocks: ['10.1.0.0/16'] } } },
      },
      {
        apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
        kind: 'HelmChartProxy',
        metadata: { name: 'page', namespace: 'default' },
        spec: {
          clusterSelector: { matchLabels: { cni: 'page' } },
          repoURL: 'https://charts.example.com',
          chartName: 'page',
          version: '1.0.0',
          valuesTemplate: 'replicas: {{ .ControlPlane.spec.replicas }}',
        },
      },
    );
    await eventually(async () => {
      return (await condition(PROXY, 'HelmReleaseProxySpecsUpToDate')) === 'False ValueParsingFailed';
    });
    const { body } = await hub.client.get(PROXY);
    assert.is(textAt(body, 'status.matchingClusters.0.name'), 'oslo');
    assert.match(textAt(body, 'status.conditions.0.message'), /^oslo: cannot render the values/);
    await server.kubectl(['delete', 'helmchartproxy', 'page', '--timeout=60s']);
    assert.is((await hub.client.get('/apis/fleet.curlew.dev/v1alpha1/fleetaddons/page')).status, 404);
    await server.kubectl(['delete', 'clusters.cluster.x-k8s.io', 'oslo']);
    await eventually(async () => {
      return (
        (await hub.client.get('/apis/fleet.curlew.dev/v1alpha1/namespaces/fleet-oslo/clusters/oslo')).status === 404
      );
    });
  });

  test('an add-on of templates is applied, and its ManagedClusterAddOn says so', async () => {
    const data = { text: '{{CLUSTER_NAME}}' };
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' }, data };
    const group = 'addon.open-cluster-management.io';
    const metadata = { name: 'page', namespace: 'paris' };
    await apply(
      {
        apiVersion: 'cluster.open-cluster-management.io/v1',
        kind: 'ManagedCluster',
        metadata: { name: 'paris' },
        spec: { hubAcceptsClient: true },
      },
      {
        apiVersion: `${group}/v1alpha1`,
        kind: 'AddOnTemplate',
        metadata: { name: 'page-1' },
        spec: { addonName: 'page', agentSpec: { workload: { manifests: [map] } } },
      },
      {
        apiVersion: `${group}/v1alpha1`,
        kind: 'ClusterManagementAddOn',
        metadata: { name: 'page' },
        spec: {
          supportedConfigs: [{ group, resource: 'addontemplates', defaultConfig: { name: 'page-1' } }],
          installStrategy: { type: 'Manual' },
        },
      },
      { apiVersion: `${group}/v1alpha1`, kind: 'ManagedClusterAddOn', metadata, spec: {} },
    );
    const own = `${ADDON}/namespaces/paris/managedclusteraddons/page`;
    await eventually(async () => (await condition(own, 'Progressing')) === 'False Completed');
    assert.is(textAt((await hub.client.get('/api/v1/namespaces/default/configmaps/page')).body, 'data.text'), 'paris');
    const { body } = await hub.client.get(own);
    const hash = textAt(body, 'status.configReferences.0.desiredConfig.specHash');
    assert.match(hash, /^[0-9a-f]{64}$/);
    assert.is(textAt(body, 'status.configReferences.0.lastAppliedConfig.specHash'), hash);
    await server.kubectl(['delete', 'clustermanagementaddon', 'page', '--timeout=60s']);
    assert.is((await hub.client.get('/api/v1/namespaces/default/configmaps/page')).status, 404);
  });
} else {
  test.skip('objects of other programs on an API server', reason);
}

test.run();
