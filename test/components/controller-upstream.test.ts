/** Objects of other programs on a real API server, taken by a controller with the rights that the manifests give. */
import { readFile, writeFile } from 'node:fs/promises';
import { hubManifests } from '../../src/fleet/hub/manifests.ts';
import { apiClient, at, textAt } from '../support/api-client.ts';
import { isMap } from '../support/api-server/fields.ts';
import { startMemoryApiServer } from '../support/api-server/server.ts';
import * as assert from '../support/assert.ts';
import { startCurlew } from '../support/curlew.ts';
import { hubCluster } from '../support/hub-objects.ts';
import { eventually, openHubScene, type HubScene } from '../support/hub-scene.ts';
import {
  addOnTemplate,
  binding,
  configOf,
  deploymentConfig,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
  stored,
  templateOf,
} from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';
import { makeCertificate } from '../support/tls.ts';
import { tree, type Tree } from '../support/tree.ts';
import { CAPI_KINDS, definitionsOf, OCM_KINDS } from '../support/upstream-kinds.ts';
import { API_SERVER_PROGRAMS, startApiServer, type ApiServer } from './support/api-server.ts';
import { createOpened } from './support/opened.ts';
import { cannotRun } from './support/programs.ts';

const test = suite('components/controller-upstream', { timeoutMs: 240_000 });
const reason = cannotRun(...API_SERVER_PROGRAMS);
const opened = createOpened();
const PROXY = '/apis/addons.cluster.x-k8s.io/v1alpha1/namespaces/default/helmchartproxies/page';
/** Clusters, of which the first two are canaries, one after the other. */
const CLUSTERS = ['canary-west', 'canary-east', 'berlin', 'athens'];
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
    await apply(
      ...hubManifests({ reconcile, push: ['paris', ...CLUSTERS] }),
      ...definitionsOf([...CAPI_KINDS, ...OCM_KINDS]),
    );
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

  test('groups of a placement follow each other, with the configuration of the add-on, the placement or the cluster', async () => {
    const begun: string[] = [];
    const texts = new Map<string, () => Promise<string>>();
    const certificate = await makeCertificate();
    await apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet-ops' } });
    for (const name of CLUSTERS) {
      const before = (request: string): void => {
        if (request.includes('/configmaps/hello') && !begun.includes(name)) begun.push(name);
      };
      const own = opened.keep(await startMemoryApiServer({ certificate, before }));
      const client = apiClient(own.kubeconfig);
      const path = '/api/v1/namespaces/default/configmaps/hello';
      texts.set(name, async () => textAt((await client.get(path)).body, 'data.text'));
      const metadata = { name: 'conf', namespace: `fleet-${name}` };
      const data = { value: Buffer.from(own.kubeconfig).toString('base64') };
      await apply(
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
        { apiVersion: 'v1', kind: 'Secret', metadata, data },
        hubCluster(name, {}, { access: { kubeconfigSecret: 'conf' } }),
        managedCluster(name, { group: name, tier: name.startsWith('canary') ? 'canary' : 'rest' }),
      );
    }
    const labeled = (matchLabels: object): object => ({ labelSelector: { matchLabels } });
    const tier = (name: string): object[] => [{ requiredClusterSelector: labeled({ tier: name }) }];
    const canaries = CLUSTERS.slice(0, 2);
    const decisionGroups = canaries.map((groupName) => {
      return { groupName, groupClusterSelector: labeled({ group: groupName }) };
    });
    const mandatoryDecisionGroups = canaries.map((groupName) => ({ groupName }));
    const config = (text: string): object =>
      deploymentConfig(text, { agentInstallNamespace: '', customizedVariables: [{ name: 'TEXT', value: text }] });
    const map = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'hello', namespace: 'default' },
      data: { text: '{{TEXT}} of {{CLUSTER_NAME}}' },
    };
    const placements = {
      canary: { rolloutStrategy: { type: 'Progressive', progressive: { mandatoryDecisionGroups } } },
      rest: { configs: [configOf('placement')] },
    };
    const add = managementAddOn(placements, { defaultConfigs: [templateOf('web-1'), configOf('default')] });
    await apply(
      binding(),
      placement('canary', { predicates: tier('canary'), decisionStrategy: { groupStrategy: { decisionGroups } } }),
      placement('rest', { predicates: tier('rest') }),
      addOnTemplate('web-1', [map]),
      ...['default', 'placement', 'cluster'].map(config),
      onCluster('athens', { configs: [configOf('cluster')] }),
      stored(add),
    );
    const own = (name: string): string => `${ADDON}/namespaces/${name}/managedclusteraddons/web`;
    await eventually(async () => {
      const reached = await Promise.all(CLUSTERS.map(async (name) => condition(own(name), 'Progressing')));
      return reached.every((one) => one === 'False Completed');
    });
    assert.equal(
      begun.filter((name) => canaries.includes(name)),
      canaries,
    );
    const expected = { 'canary-west': 'default', 'canary-east': 'default', berlin: 'placement', athens: 'cluster' };
    for (const [name, level] of Object.entries(expected)) {
      assert.is(await texts.get(name)?.(), `${level} of ${name}`);
      const { body } = await hub.client.get(own(name));
      assert.is(textAt(body, 'status.configReferences.1.lastAppliedConfig.name'), level, name);
    }
    // Objects that the controller has created, and its server completes, change nothing that is delivered.
    assert.is(await hub.contents('web'), 'canary-east:@1 canary-west:@1');
    await eventually(async () => {
      const { body } = await hub.client.get(`${ADDON}/clustermanagementaddons/web`);
      return [0, 1].every(
        (entry) => textAt(body, `status.installProgressions.${entry}.conditions.0.reason`) === 'Completed',
      );
    });
    const found = (await hub.client.get(`${ADDON}/clustermanagementaddons/web`)).body;
    assert.is(textAt(found, 'status.defaultconfigReferences.1.desiredConfig.name'), 'default');
  });
} else {
  test.skip('objects of other programs on an API server', reason);
}

test.run();
