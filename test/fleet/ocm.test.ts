/** Documents of Open Cluster Management in a fleet. */
import { readFleet, type ReadFleet } from '../../src/fleet/read.ts';
import { selects } from '../../src/fleet/rollout/groups.ts';
import { NO_AGENT } from '../../src/fleet/upstream/addon-template.ts';
import * as assert from '../support/assert.ts';
import { cluster, documents } from '../support/fleet-files.ts';
import {
  addOnTemplate,
  binding,
  clusterSet,
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

function nameIn(one: object, kind: string): string | undefined {
  const { kind: own, metadata } = one as { readonly kind: string; readonly metadata: { readonly name: string } };
  return own === kind ? metadata.name : undefined;
}

/** With the ManagedCluster of each cluster, and a binding and the template if they are used, unless they are given. */
function read(...all: readonly object[]): ReadFleet {
  return readHaving(new Map(), ...all);
}

function readHaving(having: ReadonlyMap<string, ReadonlySet<string>>, ...all: readonly object[]): ReadFleet {
  const given = new Set(all.map((one) => nameIn(one, 'ManagedCluster')));
  const managed = ['lyon', 'nice', 'paris'].filter((name) => !given.has(name)).map((name) => managedCluster(name));
  const has = (kind: string): boolean => all.some((one) => nameIn(one, kind) !== undefined);
  const bound = has('ManagedClusterSetBinding') || !has('Placement') ? [] : [binding()];
  const template = JSON.stringify(all).includes('"web-1"') ? [TEMPLATE] : [];
  const text = documents(...CLUSTERS, ...template, ...managed, ...bound, ...all);
  return readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text }], having);
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

const ALL = { predicates: [] };
const WEB = managementAddOn({ all: {} });

/** Names of the clusters that a placement chooses, or why that is not known. */
function placed(spec: object, ...more: readonly object[]): string {
  return placedBeside(new Map(), spec, ...more);
}

function placedBeside(has: ReadonlyMap<string, ReadonlySet<string>>, spec: object, ...more: readonly object[]): string {
  const fleet = readHaving(has, placement('all', spec), WEB, ...more);
  return fleet.addons[0]?.problem ?? chosen(fleet)['web'] ?? '';
}

test('a Placement chooses ManagedClusters of the sets that are bound in its namespace, and without one nothing begins', () => {
  const set = (name: string, value: string): object =>
    managedCluster(name, { 'cluster.open-cluster-management.io/clusterset': value });
  const sets = [set('lyon', 'edge'), set('nice', 'core')];
  const edge = clusterSet('edge');
  assert.is(placed(ALL, ...sets, edge, binding('edge')), 'lyon');
  assert.is(placed(ALL, ...sets, binding('default')), 'paris');
  assert.is(placed(ALL, ...sets, edge, binding('edge'), binding('default')), 'lyon paris');
  assert.is(placed({ clusterSets: ['edge'] }, ...sets, edge, binding('edge'), binding('default')), 'lyon');
  const byLabel = {
    clusterSelector: { selectorType: 'LabelSelector', labelSelector: { matchLabels: { env: 'prod' } } },
  };
  assert.is(placed(ALL, clusterSet('prod', byLabel), binding('prod')), 'lyon nice');
  assert.is(placed({ clusterSets: ['global'] }), 'lyon nice paris');
  const start = 'Placement fleet-ops/all:';
  assert.is(
    placed({ clusterSets: ['core'] }, edge, binding('edge')),
    `${start} none of its clusterSets is bound in namespace fleet-ops: core`,
  );
  assert.is(
    placed(ALL, binding('core')),
    `${start} there is no ManagedClusterSet core, which namespace fleet-ops binds`,
  );
  const elsewhere = { ...binding(), metadata: { name: 'global', namespace: 'other' } };
  assert.is(placed(ALL, elsewhere), `${start} namespace fleet-ops has no ManagedClusterSetBinding`);
  const text = documents(...CLUSTERS, TEMPLATE, binding(), managedCluster('nice'), placement('all', ALL), WEB);
  assert.equal(chosen(readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text }])), { web: 'nice' });
});

test('the set global, bound and named, is all clusters without a warning, whether the hub has made its object or not', () => {
  const labelSelector = {};
  const global = clusterSet('global', { clusterSelector: { selectorType: 'LabelSelector', labelSelector } });
  for (const more of [[], [global]]) {
    const fleet = read(placement('all', { clusterSets: ['global'] }), WEB, binding(), ...more);
    assert.equal([fleet.diagnostics, chosen(fleet)], [[], { web: 'lyon nice paris' }]);
  }
});

test('a Placement leaves out clusters with taints that it does not tolerate', () => {
  const tainted = (...taints: readonly object[]): object => ({ ...managedCluster('lyon'), spec: { taints } });
  const gpu = { key: 'gpu', value: 'yes', effect: 'NoSelect' };
  assert.is(placed(ALL, tainted(gpu)), 'nice paris');
  const tolerating = (...tolerations: readonly object[]): string => placed({ tolerations }, tainted(gpu));
  const whole = 'lyon nice paris';
  assert.is(tolerating({ key: 'gpu', operator: 'Exists' }), whole);
  assert.is(tolerating({ operator: 'Exists' }), whole);
  assert.is(tolerating({ key: 'gpu', value: 'yes', effect: 'NoSelect' }), whole);
  assert.is(tolerating({ key: 'gpu', value: 'no' }), 'nice paris');
  assert.is(tolerating({ key: 'gpu', operator: 'Exists', effect: 'NoSelectIfNew' }), 'nice paris');
  assert.match(tolerating({ key: 'gpu', operator: 'Exists', tolerationSeconds: 60 }), 'lyon has tolerationSeconds');
  assert.is(placed(ALL, tainted({ ...gpu, effect: 'PreferNoSelect' })), whole);
  const fresh = tainted({ ...gpu, effect: 'NoSelectIfNew' });
  assert.is(placed(ALL, fresh), 'nice paris');
  assert.is(placedBeside(new Map([['web', new Set(['lyon'])]]), ALL, fresh), whole);
});

test('of more clusters than numberOfClusters, those that were chosen before stay, then the name decides', () => {
  const has = (...names: readonly string[]) => new Map([['web', new Set(names)]]);
  assert.is(placed({ numberOfClusters: 2 }), 'lyon nice');
  assert.is(placedBeside(has('paris'), { numberOfClusters: 2 }), 'lyon paris');
  assert.is(placedBeside(has('paris', 'nice', 'lyon'), { numberOfClusters: 2 }), 'lyon nice');
  assert.is(placedBeside(has('paris'), { ...PROD, numberOfClusters: 1 }), 'lyon');
  assert.is(placed({ numberOfClusters: 0 }), '');
  const builtIn = (name: string) => ({ scoreCoordinate: { type: 'BuiltIn', builtIn: name }, weight: 1 });
  const by = (name: string, number: number) =>
    placed({ numberOfClusters: number, prioritizerPolicy: { mode: 'Exact', configurations: [builtIn(name)] } });
  assert.is(by('Steady', 2), 'lyon nice');
  assert.is(by('ResourceAllocatableMemory', 3), 'lyon nice paris');
  const scores = 'Placement fleet-ops/all: prioritizerPolicy chooses 2 of 3 clusters by scores, which are not computed';
  assert.is(by('ResourceAllocatableMemory', 2), scores);
});

test('a Placement that cannot be followed holds only what it decides about, and keeps the clusters that have it', () => {
  const cel = { predicates: [{ requiredClusterSelector: { celSelector: { celExpressions: ['true'] } } }] };
  const web = managementAddOn({ prod: {}, cel: {}, gone: {} });
  const has = new Map([['web-cel', new Set(['nice'])]]);
  const fleet = readHaving(has, placement('prod', PROD), placement('cel', cel), web);
  const problems = [
    'Placement fleet-ops/cel: a predicate has a celSelector, which is not evaluated',
    'there is no Placement fleet-ops/gone',
  ];
  assert.equal(
    fleet.addons.map(({ problem }) => problem),
    [undefined, ...problems],
  );
  assert.equal(chosen(fleet), { web: 'lyon', 'web-cel': 'nice', 'web-gone': '' });
  const warnings = ['web-cel', 'web-gone'].map((name, at) => `${name} stays as it is: ${problems[at] ?? ''}`);
  assert.equal(
    fleet.diagnostics.map(({ severity, message }) => `${severity} ${message}`),
    warnings.map((one) => `warning ${one}`),
  );
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
  const spec = { ...PROD, sortBy: 'Score', scoreRateLimit: '5m' };
  const hosted = { 'addon.open-cluster-management.io/hosting-cluster-name': 'lyon' };
  const registration = [{ type: 'KubeClient' }];
  const foreign = { group: 'example.com', resource: 'settings', name: 'all' };
  const all = [
    placement('prod', spec),
    addOnTemplate('web-2', [], { registration }, { executor: {}, manifestConfigs: [{}] }),
    deploymentConfig('proxy', { proxyConfig: { caBundle: 'LS0t' } }),
    managementAddOn(
      {
        prod: {
          configs: [foreign, templateOf('web-2'), configOf('proxy')],
          rolloutStrategy: { type: 'All', progressive: {} },
        },
      },
      { addOnConfiguration: {} },
    ),
    onCluster('nice', {}, hosted),
  ];
  assert.equal(
    found(...all).map((line) => line.replace('warning fleet/ignored: ', '')),
    [
      'sortBy has no effect: clusters are in the order of their names',
      'scoreRateLimit has no effect: there are no scores',
      `warning fleet/registration: it is not installed: ${NO_AGENT}`,
      'agentSpec.manifestConfigs has no effect: objects are applied by the server, and curlew knows when they are healthy',
      'agentSpec.executor has no effect: what the kubeconfig of a cluster may do counts',
      'proxyConfig.caBundle has no effect: mount the authority with an object of the template',
      'addOnConfiguration has no effect: supportedConfigs and defaultConfigs name configurations',
      'example.com/settings has no effect: only a program of the add-on reads it',
      'progressive has no effect: the type is All',
      'addon.open-cluster-management.io/hosting-cluster-name has no effect: an add-on runs on the cluster that it is for',
    ],
  );
});

test('what a hub shows in v1beta1 of a v1alpha1 add-on, and what it sets by itself, is read without a word', () => {
  const reserved = { ...templateOf('__reserved_no_default__'), resource: 'addondeploymentconfigs' };
  const defaultConfigs = [templateOf('web-1'), reserved];
  const annotations = { 'addon.open-cluster-management.io/v1alpha1-install-namespace': 'agents' };
  const placed = [
    placement('prod', { ...PROD, sortBy: 'ClusterName', scoreRateLimit: '1m' }),
    managementAddOn({ prod: {} }),
  ];
  assert.equal(found(...placed), []);
  const all = [
    managementAddOn({}, { defaultConfigs, installStrategy: { type: 'Manual' } }),
    onCluster('lyon', {}, annotations),
  ];
  assert.equal(found(...all), []);
  // The API server of a hub sets the one of v1alpha1 where nobody writes it: objects stay where their template has them.
  const own = onCluster('lyon', { installNamespace: 'open-cluster-management-agent-addon' });
  for (const one of [own, all[1] ?? {}])
    assert.equal(read(all[0] ?? {}, one).addons[0]?.fields.spec.config?.groups, []);
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
      'warning fleet/placement: web stays as it is: there is no Placement fleet-ops/prod',
      'error fleet/config: supportedConfigs of the add-on have no addon.open-cluster-management.io/addondeploymentconfigs',
    ],
  );
  assert.equal(found(placement('prod', PROD), managementAddOn({ prod: { configs: [templateOf('web-9')] } })), [
    'error fleet/config: there is no AddOnTemplate web-9',
  ]);
  assert.equal(found(placement('prod', PROD), managementAddOn({ prod: { configs: [configOf('a')] } })), [
    'error fleet/config: there is no AddOnDeploymentConfig fleet-ops/a',
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

test('what only the program of an add-on reads is no error: its configurations, clusters and placements', () => {
  const own = { group: 'example.com', resource: 'settings', namespace: 'ops', name: 'all' };
  const program = managementAddOn(
    { prod: { configs: [configOf('missing'), own] }, gone: {} },
    { supportedConfigs: [{ group: 'example.com', resource: 'settings' }], defaultConfigs: [], addOnConfiguration: {} },
  );
  const line = 'warning fleet/kind: web is left alone: it has no AddOnTemplate, so its content is a program of its own';
  assert.equal(found(program, onCluster('elsewhere', { configs: [configOf('missing')] })), [line]);
  const isManual = { defaultConfigs: [], installStrategy: { type: 'Manual' } };
  assert.equal(found(managementAddOn({}, isManual), onCluster('elsewhere', { configs: [templateOf('web-1')] })), [
    'error fleet/cluster: there is no Cluster elsewhere that gives access to it',
  ]);
});

test.run();
