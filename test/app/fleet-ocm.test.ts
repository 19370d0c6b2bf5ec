/** Documents of Open Cluster Management, whose clusters are API servers of the tests. */
import { readFile, writeFile } from 'node:fs/promises';
import { NO_AGENT } from '../../src/fleet/upstream/addon-template.ts';
import type { ApiClient } from '../support/api-client.ts';
import { textAt } from '../support/api-client.ts';
import * as assert from '../support/assert.ts';
import { documents } from '../support/fleet-files.ts';
import { BAD, doneIn, openFleetScene, statesIn } from '../support/fleet-scene.ts';
import {
  addOnTemplate,
  binding,
  configOf,
  deploymentConfig,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
  templateOf,
} from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('app/fleet-ocm');
const NAMES = ['lyon', 'nice', 'paris'];
const CANARY = { nice: { canary: 'true' } };
const DECISIONS = {
  predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: 'prod' } } } }],
  decisionStrategy: {
    groupStrategy: {
      decisionGroups: [
        { groupName: 'canary', groupClusterSelector: { labelSelector: { matchLabels: { canary: 'true' } } } },
      ],
    },
  },
};
const placed = (...names: readonly string[]): readonly object[] => {
  return [placement('prod', DECISIONS), binding(), ...names.map((name) => managedCluster(name))];
};
const CANARY_FIRST = {
  rolloutStrategy: { type: 'Progressive', progressive: { mandatoryDecisionGroups: [{ groupName: 'canary' }] } },
};
const PAGE = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'page', namespace: 'default' },
  data: {
    version: '{{VERSION}}',
    from: '{{CLUSTER_NAME}} in {{INSTALL_NAMESPACE}}',
    kept: '{{ .Values.x }}{{MISSING}}',
  },
};
const MAP = '/api/v1/namespaces/default/configmaps/page';

function version(name: string, value: string, more: object = {}): object {
  return deploymentConfig(name, {
    agentInstallNamespace: 'default',
    customizedVariables: [{ name: 'VERSION', value }],
    ...more,
  });
}

async function dataOf(api: ApiClient): Promise<readonly string[]> {
  const { body } = await api.get(MAP);
  return ['version', 'from', 'kept'].map((key) => textAt(body, `data.${key}`) ?? '');
}

test('a template goes to the first decision group, then to the next; a bad one stops at the canary, and a good one goes on', async () => {
  await using scene = await openFleetScene(NAMES);
  const apply = async (...documents: readonly object[]) => {
    const base = { defaultConfigs: [templateOf('web-1'), configOf('web')] };
    await scene.fleet([...placed(...NAMES), managementAddOn({ prod: CANARY_FIRST }, base), ...documents], CANARY);
    return scene.apply();
  };
  const template = addOnTemplate('web-1', [PAGE]);
  assert.equal(doneIn(await apply(template, version('web', '1'))), ['nice web install done']);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done', 'paris web install done']);
  assert.equal(await dataOf(scene.api('paris')), ['1', 'paris in default', '{{ .Values.x }}']);
  assert.equal(doneIn(await scene.apply()), []);
  const bad = await apply(addOnTemplate('web-1', [PAGE, BAD]), version('web', '2'));
  assert.equal(doneIn(bad), ['nice web update failed']);
  assert.equal(doneIn(await scene.apply()), []);
  assert.equal(statesIn(await scene.plan()), [
    'lyon ToApply wait Stopped',
    'nice Failed none',
    'paris ToApply wait Stopped',
  ]);
  assert.is(await scene.versions(), '1 1 1');
  // A changed configuration spreads like a changed template.
  assert.equal(doneIn(await apply(template, version('web', '3'))), ['nice web update done']);
  assert.is(await scene.versions(), '1 3 1');
  assert.equal(doneIn(await scene.apply()), ['lyon web update done', 'paris web update done']);
});

test('the configuration of one cluster wins over that of its placement, and pods have what it says', async () => {
  await using scene = await openFleetScene(['lyon', 'nice']);
  const container = { name: 'web', image: 'quay.io/example/web:1' };
  const labels = { app: 'web' };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'elsewhere' },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { initContainers: [container], containers: [container] } },
    },
  };
  await scene.fleet([
    ...placed('lyon', 'nice'),
    addOnTemplate('web-1', [PAGE, deployment]),
    version('all', '1'),
    version('edge', '2', {
      nodePlacement: { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'edge', operator: 'Exists' }] },
      registries: [{ source: 'quay.io/example', mirror: 'registry.lan/mirror' }],
      proxyConfig: { httpsProxy: 'http://proxy.lan:3128' },
      resourceRequirements: [
        { containerID: '*:*:*', resources: { requests: { cpu: '1m' } } },
        { containerID: 'deployments:web:*', resources: { requests: { cpu: '2m' } } },
      ],
    }),
    managementAddOn({ prod: { configs: [configOf('all')] } }),
    onCluster('nice', { configs: [configOf('edge')] }),
  ]);
  assert.equal(
    doneIn(await scene.apply({ wait: 1000 })).map((line) => line.split(' ')[0]),
    ['lyon', 'nice'],
  );
  assert.is(await scene.versions(), '1 2');
  const { body } = await scene.api('nice').get('/apis/apps/v1/namespaces/default/deployments/web');
  const spec = (body as { readonly spec: { readonly template: { readonly spec: object } } }).spec.template.spec;
  const env = {
    CLUSTER_NAME: 'nice',
    INSTALL_NAMESPACE: 'default',
    HTTPS_PROXY: 'http://proxy.lan:3128',
    https_proxy: 'http://proxy.lan:3128',
  };
  const mirrored = { name: 'web', image: 'registry.lan/mirror/web:1' };
  assert.equal(spec, {
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'edge', operator: 'Exists' }],
    initContainers: [mirrored],
    containers: [
      {
        ...mirrored,
        env: Object.entries(env).map(([name, value]) => ({ name, value })),
        resources: { requests: { cpu: '2m' } },
      },
    ],
  });
});

test('the namespace of an add-on is created, also where its template brings it, and others may be there after it', async () => {
  await using scene = await openFleetScene(['lyon']);
  const brought = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'any', labels: { team: 'web' } } };
  const write = async (labels: object, ...objects: readonly object[]): Promise<void> => {
    const base = { defaultConfigs: [templateOf('web-1'), configOf('web')] };
    const config = version('web', '1', { agentInstallNamespace: 'agents' });
    const template = addOnTemplate('web-1', [PAGE, ...objects]);
    await scene.fleet([...placed('lyon'), template, config, managementAddOn({ prod: {} }, base)], { lyon: labels });
  };
  const namespace = async () => scene.api('lyon').get('/api/v1/namespaces/agents');
  await write({});
  await scene.plan();
  assert.is((await namespace()).status, 404);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
  assert.is((await scene.api('lyon').get(MAP.replace('default', 'agents'))).status, 200);
  await write({ env: 'test' });
  assert.equal(doneIn(await scene.apply()), ['lyon web remove done']);
  assert.is((await namespace()).status, 200);
  await write({}, brought);
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
  assert.is(textAt((await namespace()).body, 'metadata.labels.team'), 'web');
});

test('a template that asks for certificates of a hub is held, since a folder has none', async () => {
  await using scene = await openFleetScene(['lyon']);
  const template = addOnTemplate('web-1', [PAGE], { registration: [{ type: 'KubeClient' }] });
  await scene.fleet([...placed('lyon'), template, managementAddOn({ prod: {} })]);
  for (const { targets } of [await scene.plan(), await scene.apply()])
    assert.equal(
      targets.map(({ state, now, reason, message }) => [state, now, reason, message]),
      [['ToApply', 'wait', 'Content', NO_AGENT]],
    );
  assert.equal(doneIn(await scene.apply()), []);
  assert.is((await scene.api('lyon').get(MAP)).status, 404);
});

test('a kubeconfig comes from the Secret of Cluster API among the files', async () => {
  await using scene = await openFleetScene(['lyon']);
  const text = await readFile(scene.box.at('lyon.conf'), 'utf8');
  const metadata = { name: 'lyon', namespace: 'default', labels: { env: 'prod' } };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'lyon-kubeconfig', namespace: 'default' },
    type: 'cluster.x-k8s.io/secret',
    data: { value: Buffer.from(text).toString('base64') },
  };
  const capi = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Cluster', metadata, spec: {} };
  const all = [...placed('lyon'), addOnTemplate('web-1', [PAGE]), managementAddOn({ prod: {} })];
  await writeFile(scene.box.at('fleet.yaml'), documents(capi, secret, ...all));
  assert.equal(doneIn(await scene.apply()), ['lyon web install done']);
  assert.is((await scene.api('lyon').get(MAP)).status, 200);
});

test('a hook ends well before anything is removed, what is to be an orphan stays, and a failed hook blocks (OS2, OS4, OS5)', async () => {
  await using scene = await openFleetScene(['lyon', 'nice']);
  const marked = (name: string, mark: string) => {
    return { name, namespace: 'default', annotations: { [`addon.open-cluster-management.io/${mark}`]: '' } };
  };
  const container = { name: 'clean', image: 'registry.lan/clean:1' };
  const job = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: marked('clean', 'addon-pre-delete'),
    spec: { template: { spec: { restartPolicy: 'Never', containers: [container] } } },
  };
  const kept = { ...PAGE, metadata: marked('kept', 'deletion-orphan') };
  const write = async (labels: object) =>
    scene.fleet([...placed('lyon', 'nice'), addOnTemplate('web-1', [PAGE, job, kept]), managementAddOn({ prod: {} })], {
      nice: labels,
    });
  const JOBS = '/apis/batch/v1/namespaces/default/jobs/clean';
  const hookIs = async (type: string) => {
    const conditions = [{ type, status: 'True', reason: type, message: type }];
    await scene.api('nice').merge(`${JOBS}/status`, { status: { conditions } });
  };
  await write({});
  await scene.apply();
  assert.is((await scene.api('nice').get(JOBS)).status, 404);
  await write({ env: 'test' });
  assert.equal(doneIn(await scene.apply({ wait: 500 })), ['nice web remove failed']);
  assert.is((await scene.api('nice').get(JOBS)).status, 200);
  await hookIs('Failed');
  const failed = await scene.apply({ wait: 500 });
  assert.equal(doneIn(failed), ['nice web remove failed']);
  assert.match(failed.done[0]?.reason ?? '', /Failed/);
  assert.is((await scene.api('nice').get(MAP)).status, 200);
  await scene.api('nice').remove(JOBS);
  await scene.apply({ wait: 500 });
  await hookIs('Complete');
  assert.equal(doneIn(await scene.apply({ wait: 500 })), ['nice web remove done']);
  const left = [MAP, JOBS, MAP.replace('page', 'kept')].map(async (path) => (await scene.api('nice').get(path)).status);
  assert.equal(await Promise.all(left), [404, 404, 200]);
  assert.is((await scene.api('lyon').get(MAP)).status, 200);
});

test.run();
