/** Documents of Open Cluster Management in a fleet. */
import { readFleet, type ReadFleet } from '../../src/fleet/read.ts';
import { selects } from '../../src/fleet/rollout/groups.ts';
import * as assert from '../support/assert.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import {
  addOnTemplate,
  configOf,
  decision,
  deploymentConfig,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
  templateOf,
} from '../support/ocm-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/ocm');

const MAP = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'page', namespace: 'default' } };
const TEMPLATE = addOnTemplate('web-1', [MAP]);
const CLUSTERS = [
  cluster('lyon', { env: 'prod' }),
  cluster('nice', { env: 'prod' }),
  cluster('paris', { env: 'test' }),
];
const PROD = { predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: 'prod' } } } }] };

function read(...all: readonly object[]): ReadFleet {
  return readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text: documents(...CLUSTERS, TEMPLATE, ...all) }]);
}

function found(...all: readonly object[]): readonly string[] {
  return read(...all).diagnostics.map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
}

/** Names of the clusters that each add-on selects. */
function chosen({ addons, clusters }: ReadFleet): Readonly<Record<string, string>> {
  const namesOf = ({ fields }: ReadFleet['addons'][number]): string =>
    clusters
      .filter(({ labels }) => selects(fields.spec.clusterSelector, labels))
      .map(({ name }) => name)
      .join(' ');
  return Object.fromEntries(addons.map((one) => [one.name, namesOf(one)]));
}

test('a placement that selects no cluster becomes a selector that a hub takes, and that no cluster has', () => {
  const none = { predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: 'none' } } } }] };
  const fleet = read(placement('none', none), managementAddOn({ none: {} }));
  const { clusterSelector } = fleet.addons[0]?.fields.spec ?? {};
  for (const { operator, values } of clusterSelector?.matchExpressions ?? [])
    assert.is(values !== undefined && values.length > 0, operator === 'In' || operator === 'NotIn');
  assert.ok(clusterSelector && !selects(clusterSelector, {}));
  assert.equal(chosen(fleet), { web: '' });
});

test('two placements that become one add-on, or none that can be named, are an error', () => {
  const twice = [
    { namespace: 'fleet-ops', name: 'prod' },
    ...['a', 'b'].map((namespace) => ({ namespace, name: 'canary' })),
  ];
  const placements = twice.map(({ namespace, name }) => ({ ...placement(name, PROD), metadata: { namespace, name } }));
  const placed = managementAddOn({}, { installStrategy: { type: 'Placements', placements: twice } });
  assert.ok(
    found(...placements, placed).includes('error fleet/placement: two placements become the add-on web-canary'),
  );
  const long = 'p'.repeat(50);
  const named = found(placement('prod', PROD), placement(long, PROD), managementAddOn({ prod: {}, [long]: {} }));
  assert.ok(named.includes(`error fleet/placement: no add-on can be named web-${long}`));
});

test('predicates of a Placement select by labels and by claims, and one of them is enough', () => {
  const inEurope = { claimSelector: { matchExpressions: [{ key: 'region', operator: 'In', values: ['eu'] }] } };
  const both = { predicates: [...PROD.predicates, { requiredClusterSelector: inEurope }] };
  const claimed = managedCluster('paris', { tier: '1' }, { region: 'eu' });
  const fleet = read(claimed, placement('all', both), managementAddOn({ all: {} }));
  assert.equal(fleet.diagnostics, []);
  assert.equal(chosen(fleet), { web: 'lyon nice paris' });
  assert.is(fleet.clusters.find(({ name }) => name === 'paris')?.labels['tier'], '1');
  const one = { requiredClusterSelector: { ...PROD.predicates[0]?.requiredClusterSelector, ...inEurope } };
  assert.equal(chosen(read(claimed, placement('all', { predicates: [one] }), managementAddOn({ all: {} }))), {
    web: '',
  });
});

test('a strategy has the decision groups of its Placement, and times as Go writes them', () => {
  const decisionGroups = [
    { groupName: 'canary', groupClusterSelector: { labelSelector: { matchLabels: { canary: 'true' } } } },
  ];
  const decisionStrategy = { groupStrategy: { decisionGroups, clustersPerDecisionGroup: '50%' } };
  const progressive = {
    mandatoryDecisionGroups: [{ groupName: 'canary' }, { groupIndex: 1 }],
    minSuccessTime: '1h30m',
    progressDeadline: '10m',
    maxFailures: '10%',
  };
  const rolloutStrategy = { type: 'Progressive', progressive };
  const fleet = read(
    managedCluster('nice', { canary: 'true' }),
    placement('prod', { ...PROD, decisionStrategy }),
    managementAddOn({ prod: { rolloutStrategy } }),
  );
  assert.equal(fleet.diagnostics, []);
  const selector = { matchExpressions: [{ key: 'fleet.curlew.dev/cluster', operator: 'In', values: ['nice'] }] };
  assert.equal(fleet.addons[0]?.fields.spec.rollout, {
    ...progressive,
    type: 'Progressive',
    groups: [{ name: 'canary', selector }],
    groupSize: '50%',
    maxConcurrency: '50%',
    minSuccessTime: '5400s',
  });
});

test('a time with a fraction has as many seconds as Go says', () => {
  const rolloutStrategy = { type: 'All', all: { minSuccessTime: '1.1h' } };
  const fleet = read(managedCluster('nice'), placement('prod', PROD), managementAddOn({ prod: { rolloutStrategy } }));
  assert.is(fleet.addons[0]?.fields.spec.rollout?.minSuccessTime, '3960s');
});

test('a PlacementDecision counts before its Placement, and each of its names must be a Cluster', () => {
  const all = [
    placement('prod', { numberOfClusters: 1 }),
    decision('prod', ['nice'], [1, '']),
    decision('prod', ['paris'], [0, 'canary']),
    managementAddOn({ prod: { rolloutStrategy: { type: 'ProgressivePerGroup' } } }),
  ];
  const fleet = read(...all);
  assert.equal(fleet.diagnostics, []);
  assert.equal(chosen(fleet), { web: 'nice paris' });
  assert.equal(
    fleet.addons[0]?.fields.spec.rollout?.groups?.map(({ name }) => name),
    ['canary', ''],
  );
  assert.equal(found(...all, decision('prod', ['oslo'], [2, ''])), [
    'error fleet/cluster: there is no Cluster oslo that gives access to it',
  ]);
});

test('a later placement has the cluster with its configuration and strategy, under a name of its own (OS7)', () => {
  const fleet = read(
    placement('prod', PROD),
    placement('south', {
      predicates: [{ requiredClusterSelector: { labelSelector: { matchLabels: { south: 'true' } } } }],
    }),
    managedCluster('nice', { south: 'true' }),
    deploymentConfig('a', { customizedVariables: [{ name: 'A', value: 'a' }] }),
    deploymentConfig('b', { customizedVariables: [{ name: 'A', value: 'b' }] }),
    managementAddOn({ prod: { configs: [configOf('a')] }, south: { configs: [configOf('b')] } }),
  );
  assert.equal(fleet.diagnostics, []);
  assert.equal(chosen(fleet), { web: 'lyon', 'web-south': 'nice' });
  assert.equal(new Set(fleet.addons.map(({ entry }) => entry?.name)), new Set(['web']));
});

test('people install an add-on without placements by ManagedClusterAddOns', () => {
  const manual = managementAddOn({}, { installStrategy: { type: 'Manual' } });
  assert.equal(chosen(read(manual, onCluster('paris'))), { web: 'paris' });
  assert.equal(found(manual, onCluster('oslo')), [
    'error fleet/cluster: there is no Cluster oslo that gives access to it',
  ]);
  const placed = [placement('prod', PROD), managementAddOn({ prod: {} }), onCluster('paris')];
  assert.equal(found(...placed), ['warning fleet/placement: no placement of web selects paris: it does not run there']);
});

test('each field without an equal is named once', () => {
  const spec = {
    ...PROD,
    clusterSets: ['default'],
    numberOfClusters: 3,
    prioritizerPolicy: { mode: 'Exact' },
    spreadPolicy: {},
    tolerations: [{ key: 'gpu', operator: 'Exists' }],
  };
  const cel = { predicates: [{ requiredClusterSelector: { celSelector: { celExpressions: ['true'] } } }] };
  const hosted = { 'addon.open-cluster-management.io/hosting-cluster-name': 'lyon' };
  const registration = [{ type: 'CustomSigner', customSigner: { signerName: 'example.com/signer' } }];
  const foreign = { group: 'example.com', resource: 'settings', name: 'all' };
  const all = [
    placement('prod', spec),
    placement('cel', cel),
    addOnTemplate('web-2', [], { registration }, { executor: {}, manifestConfigs: [{}] }),
    deploymentConfig('proxy', { proxyConfig: { caBundle: 'LS0t' } }),
    managementAddOn(
      { cel: {}, prod: { configs: [foreign], rolloutStrategy: { type: 'All', progressive: {} } } },
      { addOnConfiguration: {} },
    ),
    onCluster('nice', {}, hosted),
  ];
  assert.equal(
    found(...all).map((line) => line.replace('warning fleet/ignored: ', '')),
    [
      'numberOfClusters has no effect: every cluster that matches is selected',
      'prioritizerPolicy has no effect: no cluster is preferred to another one',
      'spreadPolicy has no effect: no cluster is preferred to another one',
      'tolerations has no effect: taints are not looked at',
      'clusterSets is compared with the label cluster.open-cluster-management.io/clusterset: a set with a selector of its own is not read',
      'a predicate with celSelector selects no cluster: CEL is not evaluated',
      'agentSpec.manifestConfigs has no effect: objects are applied by the server, and curlew knows when they are healthy',
      'agentSpec.executor has no effect: what the kubeconfig of a cluster may do counts',
      'registration has no effect: no hub signs certificates, and none is mounted: what needs one does not start',
      'proxyConfig.caBundle has no effect: mount the authority with an object of the template',
      'addOnConfiguration has no effect: supportedConfigs and defaultConfigs name configurations',
      'example.com/settings has no effect: only a program of the add-on reads it',
      'progressive has no effect: the type is All',
      'warning fleet/selector: no cluster has the labels that web selects',
      'addon.open-cluster-management.io/hosting-cluster-name has no effect: an add-on runs on the cluster that it is for',
    ],
  );
});

test('what a hub shows in v1beta1 of a v1alpha1 add-on, and what it sets by itself, is read without a word', () => {
  const reserved = { ...templateOf('__reserved_no_default__'), resource: 'addondeploymentconfigs' };
  const defaultConfigs = [templateOf('web-1'), reserved];
  const annotations = { 'addon.open-cluster-management.io/v1alpha1-install-namespace': 'agents' };
  const all = [
    placement('prod', { ...PROD, sortBy: 'ClusterName', scoreRateLimit: '1m' }),
    managementAddOn({}, { defaultConfigs, installStrategy: { type: 'Manual' } }),
    onCluster('lyon', {}, annotations),
  ];
  assert.equal(found(...all), []);
  assert.equal(
    read(...all).addons[0]?.fields.spec.config?.groups?.map(({ values }) => values['namespace']),
    ['agents'],
  );
});

test('a version that is not known is an error', () => {
  const apiVersion = 'addon.open-cluster-management.io/v1';
  const line =
    'error fleet/version: a ClusterManagementAddOn of addon.open-cluster-management.io/v1 cannot be read: its version must be v1alpha1 or v1beta1';
  assert.equal(found({ ...managementAddOn({}), apiVersion }), [line]);
});

test('what is not there, not supported or not a field is an error, and a program of its own is left alone', () => {
  const supportedConfigs = [
    { group: 'addon.open-cluster-management.io', resource: 'addontemplates', defaultConfig: { name: 'web-1' } },
  ];
  assert.equal(
    found(managementAddOn({ prod: { configs: [configOf('a')] } }, { supportedConfigs, defaultConfigs: [] })),
    [
      'error fleet/placement: there is no Placement fleet-ops/prod among the files',
      'error fleet/config: supportedConfigs of the add-on have no addon.open-cluster-management.io/addondeploymentconfigs',
    ],
  );
  assert.equal(found(placement('prod', PROD), managementAddOn({ prod: { configs: [templateOf('web-9')] } })), [
    'error fleet/config: there is no addontemplates web-9 among the files',
  ]);
  assert.equal(found(placement('prod', { predicate: [] })), [
    'error fleet/unknown-field: spec.predicate: unknown field',
  ]);
  const program = managementAddOn({ prod: {} }, { defaultConfigs: [] });
  assert.equal(found(placement('prod', PROD), program), [
    'warning fleet/kind: web is left alone: it has no AddOnTemplate, so its content is a program of its own',
  ]);
  assert.equal(read(placement('prod', PROD), program).addons, []);
});

test.run();
