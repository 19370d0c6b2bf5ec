/** Passes of a controller over a hub in memory. */
import { conditionsIn } from '../../../src/fleet/hub/foreign-objects.ts';
import { passHub } from '../../../src/fleet/hub/run/hub-pass.ts';
import type { Values } from '../../../src/fleet/rollout/fleet.ts';
import type { JsonObject } from '../../support/api-server/fields.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubChannel, hubChart, hubCluster, hubClusterAddon } from '../../support/hub-objects.ts';
import { answering, change, contents, NOW, pass, report } from '../../support/hub-passes.ts';
import {
  addOnTemplate,
  binding,
  clusterSet,
  configOf,
  decision,
  managedCluster,
  managementAddOn,
  onCluster,
  placement,
  templateOf,
} from '../../support/ocm-files.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/pass');
const oslo = answering('oslo', 'v1.34.1');

test('a definition that drops a field of a status is named once, and an idle pass writes nothing', async () => {
  await using memory = await openMemoryHub([oslo, hubAddon('web')], (object) => {
    const { conditions: all, ...status } = (object['status'] ?? {}) as { readonly conditions?: readonly object[] };
    const kept = all?.map((one) => ({ ...one, observedGeneration: undefined }));
    return object['kind'] === 'FleetAddon' && kept !== undefined
      ? (JSON.parse(JSON.stringify({ ...object, status: { ...status, conditions: kept } })) as JsonObject)
      : object;
  });
  const { hub, writes, notes } = memory;
  for (const at of [0, 1]) await passHub(hub, NOW + at);
  const before = writes.length;
  for (const at of [2, 3]) assert.is((await passHub(hub, NOW + at)).isDecided, true);
  assert.equal(writes.slice(before), []);
  assert.equal(
    notes.filter((one) => one.includes('outdated')),
    [
      'the CustomResourceDefinition fleetaddons.fleet.curlew.dev is outdated: it does not keep status.conditions.observedGeneration; curlew hub manifests | kubectl apply -f - updates it',
    ],
  );
});

test('a definition that drops a required field of a status does not restart a rollout', async () => {
  for (const dropped of ['reasons', 'reached', 'counts']) {
    await using memory = await openMemoryHub([oslo, hubAddon('web')], (object) => {
      const { [dropped]: _dropped, ...status } = (object['status'] ?? {}) as JsonObject;
      return object['kind'] === 'FleetAddon' && 'status' in object ? { ...object, status } : object;
    });
    const { hub, writes } = memory;
    for (const at of [0, 1, 2]) await passHub(hub, NOW + at);
    const before = writes.length;
    for (const at of [60, 120]) assert.is((await passHub(hub, NOW + at)).isDecided, true);
    assert.equal(writes.slice(before), [], dropped);
    assert.is(hub.addons.get({ name: 'web' })?.addon.status?.since, NOW, dropped);
  }
});

test('where no canary can prove a version, the conditions name the group that a person may approve, and an approval that is void', async () => {
  const groups = [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }];
  const rollout = { type: 'Progressive', groups, mandatoryDecisionGroups: [{ groupName: 'canary' }] };
  const web = hubAddon('web', { rollout }) as { readonly metadata: object };
  const order = JSON.stringify({ generation: 7, at: '2026-01-02T03:04:05Z', groups: ['canary'] });
  const metadata = { ...web.metadata, annotations: { 'fleet.curlew.dev/approve': order } };
  const canary = hubCluster('bergen', { env: 'prod', ring: 'canary' });
  await using memory = await openMemoryHub([oslo, canary, { ...web, metadata }]);
  await passHub(memory.hub, NOW);
  const found = memory.hub.addons.get({ name: 'web' })?.conditions.find(({ type }) => type === 'Progressing');
  const lapsed = 'the approval of 2026-01-02T03:04:05Z was for another content: approve again';
  assert.is(
    found?.message,
    `0 of 2 clusters have it; no cluster of group canary has it yet (bergen: the cluster does not answer): let one of them take it, or approve group canary; ${lapsed}`,
  );
});

test('the conditions name what a person may approve although many clusters wait for something else', async () => {
  const rollout = { groups: [{ name: 'prod', selector: {} }], approval: ['prod'] };
  const paused = Array.from({ length: 25 }, (_, at) => hubCluster(`a${at}`, { env: 'prod' }, { paused: true }));
  await using memory = await openMemoryHub([oslo, ...paused, hubAddon('web', { rollout })]);
  await passHub(memory.hub, NOW);
  const web = () => memory.hub.addons.get({ name: 'web' });
  assert.equal([web()?.addon.status?.waiting.length, web()?.addon.status?.reasons], [20, { Approval: 1, Paused: 25 }]);
  const message = "0 of 26 clusters have it; group prod waits for a person's approval";
  assert.is(web()?.conditions.find(({ type }) => type === 'Progressing')?.message, message);
  const before = memory.writes.length;
  await passHub(memory.hub, NOW + 1);
  assert.equal(memory.writes.slice(before), []);
});

test('a cluster that was rebuilt gets a lower version than its record has once a person approves it', async () => {
  const web = hubAddon('web') as { readonly metadata: object };
  const record = hubClusterAddon('web', 'oslo', { source: hubChart('2.0.0') });
  const order = JSON.stringify({ generation: 1, at: '2026-01-02T03:04:05Z', downgrade: true });
  const found: (readonly unknown[])[] = [];
  for (const annotations of [{}, { 'fleet.curlew.dev/approve': order }]) {
    await using memory = await openMemoryHub([oslo, record, { ...web, metadata: { ...web.metadata, annotations } }]);
    // An order may come before the rollout that it is about.
    await passHub(memory.hub, Date.parse('2026-01-02T03:04:05Z') / 1000);
    const available = memory.hub.addons.get({ name: 'web' })?.conditions.find(({ type }) => type === 'Available');
    found.push([memory.hub.clusterAddons.values()[0]?.record?.spec.version, available?.message]);
  }
  const asked =
    '0 of 1 clusters have it; 1.2.3 is lower than the installed 2.0.0: approve the downgrade if it is meant';
  assert.equal(found, [
    ['2.0.0', asked],
    ['1.2.3', '0 of 1 clusters have it'],
  ]);
});

test('a PlacementDecision decides without a spec, which schedulers do not write', async () => {
  const own = [managedCluster('oslo', { env: 'prod' }), managementAddOn({ all: {} }), addOnTemplate('web-1', [])];
  await using memory = await openMemoryHub([oslo, ...own, placement('all'), decision('all', ['oslo'], [0, ''])]);
  for (const at of [0, 1]) await passHub(memory.hub, NOW + at);
  assert.equal(
    memory.hub.clusterAddons.values().map((one) => one?.record?.cluster),
    ['oslo'],
  );
});

test('a Placement that is seen for the first time waits for its scheduler, and is evaluated if none runs', async () => {
  const predicates = [{ requiredClusterSelector: { labelSelector: { matchLabels: { env: 'prod' } } } }];
  const own = [managedCluster('oslo', { env: 'prod' }), managementAddOn({ all: {} }), addOnTemplate('web-1', [])];
  await using memory = await openMemoryHub([oslo, ...own, binding(), placement('all', { predicates })]);
  const { hub, writes, notes } = memory;
  const first = await passHub(hub, NOW);
  assert.equal([writes, first.nextMs], [[], 10_000]);
  assert.is(notes.includes('ClusterManagementAddOn web: Placement fleet-ops/all has no PlacementDecision yet'), true);
  for (const at of [9, 10, 11]) await passHub(hub, NOW + at);
  assert.equal(
    hub.clusterAddons.values().map((one) => one?.record?.cluster),
    ['oslo'],
  );
});

test('a Placement that is missing holds only itself, in a condition and one event, and other clusters than ManagedClusters get nothing', async () => {
  const decided = [placement('all'), decision('all', ['oslo'], [0, ''])];
  const nice = answering('nice', 'v1.34.1');
  const web = managementAddOn({ all: {}, gone: {} });
  const own = [managedCluster('oslo', { env: 'prod' }), addOnTemplate('web-1', [])];
  await using memory = await openMemoryHub([oslo, nice, ...own, ...decided, web]);
  const { hub, writes, objects } = memory;
  await pass(memory, 0, 1, 2);
  assert.match(contents(memory), /^oslo:/);
  assert.equal(
    hub.addons.values().map(({ addon: { name } }) => name),
    ['web'],
  );
  const stored = objects().find((one) => (one as Values)['kind'] === 'ClusterManagementAddOn') as Values;
  const { installProgressions } = stored['status'] as { readonly installProgressions: readonly Values[] };
  const [, gone = {}] = installProgressions;
  const [progressing] = gone['conditions'] as readonly Values[];
  const { status, reason, message } = progressing ?? {};
  const missing = 'there is no Placement fleet-ops/gone';
  assert.equal([status, reason, message], ['False', 'PlacementNotFollowed', missing]);
  const before = writes.length;
  assert.is(writes.filter((one) => one.includes('/events/') || one.endsWith('/events')).length >= 1, true);
  assert.is(memory.notes.filter((one) => one === `web: PlacementNotFollowed: ${missing}`).length, 1);
  await pass(memory, 60, 120);
  assert.equal(writes.slice(before), []);
});

test('a hub without a scheduler chooses from ManagedClusters that are bound, and keeps those that it has chosen', async () => {
  const names = ['lyon', 'nice', 'oslo'];
  const clusters = names.map((name) => answering(name, 'v1.34.1'));
  const managed = ['nice', 'oslo'].map((name) => managedCluster(name));
  const chosen = placement('all', { numberOfClusters: 1 });
  const own = [...clusters, ...managed, addOnTemplate('web-1', []), binding(), chosen, managementAddOn({ all: {} })];
  await using memory = await openMemoryHub(own);
  await pass(memory, 0, 11, 12);
  assert.match(contents(memory), /^nice:@1$/);
  const before = hubClusterAddon('web', 'oslo', { source: { template: 'web' }, identity: 'addon:kube-system/web' });
  await using known = await openMemoryHub([...own, before]);
  await pass(known, 0, 11, 12);
  assert.match(contents(known), /^oslo:/);
});

test('a HelmChartProxy without a version gets the newest one by the rules of its provider, and nothing before it is known', async () => {
  const proxy = {
    apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
    kind: 'HelmChartProxy',
    metadata: { name: 'page', namespace: 'default', annotations: { 'curlew.dev/compat': 'caaph' } },
    spec: { clusterSelector: {}, repoURL: 'https://charts.example.com', chartName: 'page' },
  };
  let find: (version: string) => void = () => undefined;
  const found = new Promise<string>((done) => (find = done));
  await using memory = await openMemoryHub([proxy], undefined, async () => found);
  const made = (): unknown => {
    const addon = memory.objects().find((one) => (one as Values)['kind'] === 'FleetAddon') as Values | undefined;
    return addon && (addon['spec'] as { readonly source: { readonly chart: Values } }).source.chart['version'];
  };
  await pass(memory, 0, 1);
  assert.is(made(), undefined);
  assert.ok(memory.notes.includes('HelmChartProxy default/page: its newest version is asked for'));
  find('1.0.0');
  await found;
  await pass(memory, 2, 3);
  assert.is(made(), '1.0.0');
});

test('a configuration that is missing or refused holds an add-on, with the reason in its conditions and in one event', async () => {
  const admin = { type: 'CurrentCluster', currentCluster: { clusterRoleName: 'cluster-admin' } };
  const registration = [{ type: 'KubeClient', kubeClient: { hubPermissions: [admin] } }];
  const refused = addOnTemplate('web-1', [], { registration });
  const has = { managed: managedCluster('oslo'), decided: decision('all', ['oslo'], [0, '']), all: placement('all') };
  const own = [oslo, has.managed, has.decided, has.all];
  const missing = 'there is no AddOnDeploymentConfig fleet-ops/gone';
  const noAdmin = /^AddOnTemplate web-1 cannot be used: .*another role than cluster-admin: no add-on gets a whole hub$/;
  const [template, managed] = [addOnTemplate('web-1', []), managementAddOn({ all: { configs: [configOf('gone')] } })];
  for (const [expected, ...wrong] of [
    [missing, template, managed],
    ['there is no AddOnTemplate web-1', managementAddOn({ all: {} })],
    [noAdmin, refused, managementAddOn({ all: {} })],
    [
      `ManagedClusterAddOn oslo/web: ${missing}`,
      template,
      managementAddOn({ all: {} }),
      onCluster('oslo', { configs: [configOf('gone')] }),
    ],
  ] as const) {
    await using first = await openMemoryHub([...own, template, managementAddOn({ all: {} })]);
    await pass(first, 0, 1, 2);
    const made = contents(first);
    const names = wrong.map((one) => (one as Values)['kind']);
    const replaced = ['AddOnTemplate', 'ClusterManagementAddOn', ...names];
    const others = first.objects().filter((one) => !replaced.includes((one as Values)['kind']));
    await using memory = await openMemoryHub([...others, ...wrong]);
    await pass(memory, 3, 4);
    const stored = (kind: string): Values =>
      (memory.objects().find((one) => (one as Values)['kind'] === kind) as Values)['status'] as Values;
    const [installed] = stored('ClusterManagementAddOn')['installProgressions'] as readonly Values[];
    for (const status of [installed, stored('ManagedClusterAddOn')]) {
      const found = conditionsIn(status).find(({ type }) => type === 'Progressing');
      assert.equal([found?.status, found?.reason], ['False', 'ConfigurationNotFollowed']);
      assert.match(found?.message ?? '', expected);
    }
    const events = memory.notes.filter((one) => one.startsWith('web: ConfigurationNotFollowed: '));
    assert.equal([events.length, contents(memory)], [1, made]);
    const before = memory.writes.length;
    await pass(memory, 60);
    assert.equal(memory.writes.slice(before), []);
  }
});

test('the clusters that wait take at most 8 KiB of a status, which says how many more there are', async () => {
  const [fine, wrong] = ['>=1.30.0', '√'.repeat(500)].map((kubernetesVersion) => {
    const { version, ...chart } = hubChart().chart;
    return hubChannel('stable', [{ name: 'web', version, kubernetesVersion, chart }]);
  });
  assert.ok(fine && wrong);
  const names = Array.from({ length: 30 }, (_, at) => `site-${at}`);
  const sites = names.map((name) => answering(name, 'v1.34.1'));
  await using memory = await openMemoryHub([
    fine,
    hubAddon('web', { source: { channel: { name: 'stable' } } }),
    ...sites,
  ]);
  await pass(memory, 0);
  await change(memory, wrong);
  await pass(memory, 1);
  const status = memory.hub.addons.get({ name: 'web' })?.status as JsonObject;
  const { waiting, moreWaiting } = status as { readonly waiting: readonly object[]; readonly moreWaiting: number };
  const bytes = Buffer.byteLength(JSON.stringify(waiting));
  assert.equal([bytes > 6000, bytes < 8300, waiting.length + moreWaiting], [true, true, 30]);
  const before = memory.writes.length;
  await pass(memory, 2, 3);
  assert.equal(memory.writes.slice(before), []);
  await change(memory, fine);
  await pass(memory, 4);
  assert.not.match(JSON.stringify(memory.hub.addons.get({ name: 'web' })?.status), 'moreWaiting');
});

test('the status of an add-on has at most 12 KiB with long names and many failures, and counts all that wait', async () => {
  const nameOf = (at: number): string => `site-${at}-${'long-'.repeat(11)}`.slice(0, 57) + 'x';
  const sites = Array.from({ length: 300 }, (_, at) => answering(nameOf(at), 'v1.34.1'));
  const rollout = { type: 'Progressive', maxConcurrency: 100, maxFailures: '100%' };
  await using memory = await openMemoryHub([hubAddon('web', { rollout }), ...sites]);
  await pass(memory, 0);
  const begun = memory.hub.clusterAddons.values().flatMap((one) => one?.record?.cluster ?? []);
  await report(memory, 'Failed', 0, ...begun.slice(0, 60));
  await pass(memory, 1);
  const status = memory.hub.addons.get({ name: 'web' })?.status as {
    readonly failed: { readonly clusters: object };
    readonly reasons: Readonly<Record<string, number>>;
    readonly batch: readonly string[];
    readonly waiting: readonly object[];
    readonly moreWaiting: number;
  };
  const bytes = Buffer.byteLength(JSON.stringify(status));
  assert.equal([bytes > 11_000, bytes <= 12_288], [true, true], String(bytes));
  assert.equal(
    [Object.keys(status.failed.clusters).length, status.reasons, status.waiting.length + status.moreWaiting],
    [60, { Batch: 140 }, 140],
  );
  assert.ok(status.batch.length > 20);
  const before = memory.writes.length;
  await pass(memory, 2);
  assert.equal(memory.writes.slice(before), []);
});

test('an add-on of a hub without clusters says that there are none, and is no failure', async () => {
  await using memory = await openMemoryHub([hubAddon('web')]);
  await pass(memory, 0);
  const conditions = memory.hub.addons.get({ name: 'web' })?.conditions ?? [];
  assert.equal(
    conditions.map(({ type, status, reason, message = '' }) => `${type} ${status} ${reason}: ${message}`),
    [
      'Available False NoClusters: 0 of 0 clusters have it',
      'Progressing False NoClusters: 0 of 0 clusters have it',
      'Degraded False AsExpected: 0 clusters have failed',
    ],
  );
  assert.equal(memory.hub.clusterAddons.values(), []);
});

test('a Placement of the set global chooses all clusters of a hub without a note, whether the hub has made its object or not', async () => {
  const all = { clusterSelector: { selectorType: 'LabelSelector', labelSelector: {} } };
  const own = [managedCluster('oslo'), addOnTemplate('web-1', []), placement('all', { clusterSets: ['global'] })];
  for (const more of [[], [clusterSet('global', all)]]) {
    await using memory = await openMemoryHub([oslo, ...own, binding(), managementAddOn({ all: {} }), ...more]);
    for (const at of [0, 9, 10, 11]) await passHub(memory.hub, NOW + at);
    assert.match(contents(memory), /^oslo:/);
    assert.not.match(memory.notes.join('\n'), /global|ClusterSet/);
  }
});

test('a configuration of a kind that an add-on does not support is named, and what was made of the add-on stays', async () => {
  const own = [managedCluster('oslo', { env: 'prod' }), addOnTemplate('web-1', []), placement('all')];
  const decided = decision('all', ['oslo'], [0, '']);
  await using first = await openMemoryHub([oslo, ...own, decided, managementAddOn({ all: {} })]);
  await pass(first, 0, 1);
  const made = contents(first);
  assert.match(made, /^oslo:/);
  const { name: _name, ...kind } = templateOf('web-1');
  const supportedConfigs = [{ ...kind, defaultConfig: { name: 'web-1' } }];
  const wrong = managementAddOn({ all: { configs: [configOf('a')] } }, { supportedConfigs, defaultConfigs: [] });
  const others = first.objects().filter((one) => (one as JsonObject)['kind'] !== 'ClusterManagementAddOn');
  await using memory = await openMemoryHub([...others, wrong]);
  for (const at of [2, 20]) await passHub(memory.hub, NOW + at);
  assert.is(contents(memory), made);
  const what = 'supportedConfigs of the add-on have no addon.open-cluster-management.io/addondeploymentconfigs';
  assert.ok(memory.notes.includes(`ClusterManagementAddOn web: ${what}`), memory.notes.join('\n'));
});

test('failures of which the names have no room in a status are counted in it, and the budget decides', async () => {
  const names = Array.from({ length: 90 }, (_, at) => `site-${at}-${'x'.repeat(57)}`.slice(0, 57));
  const groups = [{ name: 'y'.repeat(63), selector: { matchLabels: { env: 'prod' } } }];
  const rollout = { type: 'Progressive', groups, maxConcurrency: 80, maxFailures: '100%' };
  const sites = names.map((name) => answering(name, 'v1.34.1'));
  await using memory = await openMemoryHub([hubAddon('web', { rollout }), ...sites]);
  await pass(memory, 0);
  await report(memory, 'Failed', 0, ...names);
  await pass(memory, 1);
  const status = memory.hub.addons.get({ name: 'web' })?.status as {
    readonly failed: { readonly clusters: object; readonly more: number };
    readonly stopped?: string;
  };
  const named = Object.keys(status.failed.clusters).length;
  assert.equal([named > 25, named + status.failed.more], [true, 80]);
  assert.equal([status.stopped, contents(memory).split(' ').length], [undefined, 90]);
  const bytes = Buffer.byteLength(JSON.stringify(status));
  assert.ok(bytes <= 12_288, String(bytes));
  const before = memory.writes.length;
  await pass(memory, 2, 3);
  assert.equal(memory.writes.slice(before), []);
});

test.run();
