import { readFile } from 'node:fs/promises';
import { readFleet, type ReadFleet } from '../../src/fleet/read.ts';
import * as assert from '../support/assert.ts';
import { addon, channel, chart, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/read');
const PARIS = cluster('paris', { env: 'prod', site: 'a' });
const LYON = cluster('lyon', { env: 'prod' });

function read(...all: readonly object[]): ReadFleet {
  return readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text: documents(...all) }]);
}

function found(...all: readonly object[]): readonly string[] {
  return read(...all).diagnostics.map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
}

test('clusters, add-ons and channels are read, and other documents are left alone', () => {
  const web = addon('web', {
    source: { channel: { name: 'stable' } },
    rollout: { maxConcurrency: '25%', maxFailures: 1 },
  });
  const stable = channel('stable', { name: 'web', version: '1.0.0', manifest: 'web.yaml' });
  const own = documents(PARIS, LYON, web, addon('dns', { dependsOn: ['web'], source: { chart: chart('dns') } }));
  const fleet = readFleet([
    { path: 'fleet/stable.yaml', folder: 'fleet', text: documents(stable) },
    { path: 'fleet/sites/all.yaml', folder: 'fleet', text: own },
    { path: 'fleet/broken.yaml', folder: 'fleet', text: 'kind: Config\n\tbroken: [' },
  ]);
  assert.equal(fleet.diagnostics, []);
  assert.equal(
    fleet.clusters.map(({ name, kubeconfig }) => `${name} ${kubeconfig}`),
    ['paris fleet/sites/paris.conf', 'lyon fleet/sites/lyon.conf'],
  );
  assert.equal(
    fleet.addons.map(({ name, entry }) => [name, entry?.source?.type]),
    [
      ['web', undefined],
      ['dns', 'chart'],
    ],
  );
  assert.equal([...fleet.channels.keys()], ['stable']);
});

test('a machine with a containerRuntime, as earlier files may have it, is read without it, with a warning', () => {
  const machine = { name: 'p1', role: 'control-plane', containerRuntime: { name: 'containerd', version: '2.2.6' } };
  const old = { ...PARIS, spec: { access: { kubeconfig: 'paris.conf' }, machines: [machine] } };
  assert.equal(found(old), ['warning fleet/no-effect: containerRuntime has no effect']);
  assert.equal(read(old).clusters[0]?.fields.spec.machines, [{ name: 'p1', role: 'control-plane' }]);
});

test('a manifest that has a label of this group, or a document of it inside, is left alone', () => {
  const labels = { 'fleet.curlew.dev/addon': 'web' };
  const template = { apiVersion: 'v1', kind: 'Template', items: [{ ...PARIS, kind: 'Other' }] };
  assert.equal(found(PARIS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { labels } }, template), []);
  assert.equal(found({ ...template, kind: 'List' }), [
    'error fleet/kind: fleet.curlew.dev/v1alpha1 has no such kind in a folder',
  ]);
});

test('a channel among other documents has its own lines, and is there once', () => {
  const text = (name: string, more = ''): string =>
    `apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nmetadata: {name: ${name}}\nspec: {addons: []}\n${more}`;
  const file = { path: 'all.yaml', folder: '.', text: [text('a'), text('b', 'size: 3\n'), text('a')].join('---\n') };
  assert.equal(
    readFleet([file]).diagnostics.map(({ place, message }) => `${place.line}: ${message}`),
    ['10: "size" is not a field', '11: channel a is already in all.yaml'],
  );
});

test('the example of docs/fleets.md is a fleet without a mistake', async () => {
  const [, text = ''] = /```yaml\n([^]*?)```/.exec(await readFile('docs/fleets.md', 'utf8')) ?? [];
  const { clusters, addons, diagnostics } = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
  assert.equal([clusters.length, addons.length, diagnostics], [1, 1, []]);
});

test('a mistake has the place of its field, with a hint', () => {
  const text = `apiVersion: fleet.curlew.dev/v1alpha1
kind: Cluster
metadata: {name: paris}
spec:
  acess: {kubeconfig: paris.conf}
  access: {kubeconfig: paris.conf}
`;
  const [first, ...more] = readFleet([{ path: 'paris.yaml', folder: '.', text }]).diagnostics;
  assert.equal(more, []);
  assert.equal(first, {
    code: 'fleet/unknown-field',
    severity: 'error',
    message: 'spec.acess: unknown field',
    place: { file: 'paris.yaml', line: 5, column: 3, length: 5 },
    hint: 'did you mean "access"?',
  });
});

const selector = { matchLabels: { site: 'a' } };
const canary = { name: 'canary', selector };
const mandatoryDecisionGroups = [{ groupName: 'canary' }];

for (const [title, all, wanted] of [
  [
    'another version of the API',
    [{ ...PARIS, apiVersion: 'fleet.curlew.dev/v1' }],
    'error fleet/value: apiVersion must be fleet.curlew.dev/v1alpha1',
  ],
  [
    'an unknown kind',
    [{ ...PARIS, kind: 'Clusters' }],
    'error fleet/kind: fleet.curlew.dev/v1alpha1 has no such kind in a folder',
  ],
  ['no kubeconfig', [cluster('paris', {}, { access: {} })], 'error fleet/value: spec.access.kubeconfig: missing'],
  [
    'a kubeconfig outside the folder',
    [cluster('paris', {}, { access: { kubeconfig: '../admin.conf' } })],
    'error fleet/outside: spec.access.kubeconfig must be a path in the folder fleet',
  ],
  [
    'an absolute kubeconfig',
    [cluster('paris', {}, { access: { kubeconfig: '/etc/admin.conf' } })],
    'error fleet/outside: spec.access.kubeconfig must be a path in the folder fleet',
  ],
  [
    'a manifest outside the folder',
    [PARIS, addon('web', { source: { manifest: '../web.yaml' } })],
    'error fleet/outside: spec.source.manifest must be a path in the folder fleet',
  ],
  [
    'a manifest of a channel outside the folder',
    [PARIS, channel('stable', { name: 'dns', version: '1.0.0', manifest: '/etc/hostname' })],
    'error fleet/outside: the file of dns must be in the folder fleet',
  ],
  [
    'a label that is a number',
    [cluster('paris', { size: 3 })],
    'error fleet/value: metadata.labels.size must be a text',
  ],
  [
    'a window that does not exist',
    [cluster('paris', {}, { windows: [{ cron: '99 1 * * *', duration: '2h' }] })],
    'error fleet/window: cannot read the window: "99" is not a minute',
  ],
  [
    'a wrong size',
    [PARIS, addon('web', { rollout: { maxConcurrency: 'half' } })],
    'error fleet/value: spec.rollout.maxConcurrency must be a number such as 3, or a percentage such as 25%',
  ],
  [
    'a wrong time',
    [PARIS, addon('web', { rollout: { progressDeadline: 'soon' } })],
    'error fleet/value: spec.rollout.progressDeadline must be a time such as 90s, 10m or 2h',
  ],
  [
    'values of a ConfigMap',
    [PARIS, addon('web', { valuesConfigMap: { name: 'web', perCluster: true } })],
    'error fleet/secret: a folder has no ConfigMaps: valuesConfigMap is for a hub',
  ],
  [
    'values of a Secret',
    [PARIS, addon('web', { valuesSecret: { name: 'web' } })],
    'error fleet/secret: a folder has no Secrets: valuesSecret is for a hub',
  ],
  ['no source', [PARIS, addon('web', { source: {} })], 'error fleet/source: nothing says what to deliver'],
  [
    'two sources',
    [PARIS, addon('web', { source: { manifest: 'a.yaml', chart: chart('web') } })],
    'error fleet/source: manifest and chart exclude each other',
  ],
  [
    'a chart without a repository',
    [PARIS, addon('web', { source: { chart: { name: 'web', version: '1.2.3' } } })],
    'error fleet/source: spec.source.chart must have one of repoURL, oci',
  ],
  [
    'a name that each object of JavaScript has',
    [cluster('constructor', { env: 'prod' })],
    'error fleet/name: no cluster can have the name constructor',
  ],
  ['two clusters of one name', [PARIS, PARIS], 'error fleet/duplicate: cluster paris is already in fleet/all.yaml:5'],
  [
    'two add-ons of one name',
    [PARIS, addon('web'), addon('web')],
    'error fleet/duplicate: add-on web is already in fleet/all.yaml:22',
  ],
  [
    'a selector that matches nothing',
    [PARIS, addon('web', { clusterSelector: { matchLabels: { env: 'test' } } })],
    'warning fleet/selector: no cluster has the labels that web selects',
  ],
  [
    'an empty selector',
    [PARIS, addon('web', { clusterSelector: {} })],
    'error fleet/selector: an empty selector would select every cluster, also those that come later',
  ],
  [
    'In without values',
    [PARIS, addon('web', { clusterSelector: { matchExpressions: [{ key: 'env', operator: 'In' }] } })],
    'error fleet/selector: In needs values',
  ],
  [
    'Exists with values',
    [
      PARIS,
      addon('web', { clusterSelector: { matchExpressions: [{ key: 'env', operator: 'Exists', values: ['a'] }] } }),
    ],
    'error fleet/selector: Exists takes no values',
  ],
  [
    'a mandatory group that does not exist',
    [PARIS, addon('web', { rollout: { mandatoryDecisionGroups } })],
    'error fleet/group: there is no group canary',
  ],
  [
    'a mandatory group without a cluster',
    [LYON, addon('web', { rollout: { groups: [canary], mandatoryDecisionGroups } })],
    'error fleet/group: no selected cluster is in the mandatory group canary',
  ],
  [
    'an approval of a group that does not exist',
    [PARIS, addon('web', { rollout: { approval: ['canary'] } })],
    'error fleet/group: there is no group canary',
  ],
  [
    'one release on one cluster',
    [
      PARIS,
      addon('a', { source: { chart: { ...chart('web'), releaseName: 'web' } } }),
      addon('b', { source: { chart: { ...chart('web'), releaseName: 'web' } } }),
    ],
    'error fleet/identity: a in fleet/all.yaml:22 has the same release:kube-system/web on paris',
  ],
  [
    'an unknown dependency',
    [PARIS, addon('web', { dependsOn: ['dns'] })],
    'error fleet/dependency: there is no add-on dns',
  ],
  [
    'a circle',
    [PARIS, addon('a', { dependsOn: ['c'] }), addon('b', { dependsOn: ['a'] }), addon('c', { dependsOn: ['b'] })],
    'error fleet/circle: these depend on each other: a -> c -> b -> a',
  ],
  [
    'an unknown channel',
    [PARIS, addon('web', { source: { channel: { name: 'stable' } } })],
    'error fleet/channel: there is no channel stable',
  ],
] as const) {
  test(`${title} is one finding`, () => assert.equal(found(...all), [wanted]));
}

test('a canary that is there, and a group with an approval, are no findings', () => {
  const rollout = { type: 'Progressive', groups: [canary], mandatoryDecisionGroups, approval: ['canary'] };
  assert.equal(found(PARIS, LYON, addon('web', { rollout })), []);
});

test.run();
