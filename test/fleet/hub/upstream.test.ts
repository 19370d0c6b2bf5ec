/** What a controller makes of objects of other programs. */
import { readCapiCluster } from '../../../src/fleet/hub/capi.ts';
import { proxyStatus, readProxy } from '../../../src/fleet/hub/helm-proxies.ts';
import { readFleetAddon, readClusterAddon, type HubAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import {
  managementStatus,
  configsIn,
  fleetOf,
  onClusterStatus,
  readOcmObject,
  type OcmObject,
} from '../../../src/fleet/hub/ocm.ts';
import { groupBy } from '../../../src/core/group-by.ts';
import { Upstream } from '../../../src/fleet/hub/run/upstream.ts';
import { FOREIGN_KINDS } from '../../../src/fleet/upstream/foreign-kinds.ts';
import type { KubeApi } from '../../../src/cluster/kube/api.ts';
import { until } from '../../support/appears.ts';
import type { Reply } from '../../../src/fleet/fleet.ts';
import type { ClusterAddon } from '../../../src/fleet/rollout/fleet.ts';
import type { State } from '../../../src/fleet/rollout/strategy.ts';
import { jobOrReport } from '../../../src/fleet/hub/push.ts';
import { at, textAt } from '../../support/api-client.ts';
import type { JsonObject } from '../../support/api-server/fields.ts';
import * as assert from '../../support/assert.ts';
import { hubAddon, hubClusterAddon } from '../../support/hub-objects.ts';
import { addOnTemplate, binding, decision, managementAddOn, onCluster, placement } from '../../support/ocm-files.ts';
import { noRepository } from '../../support/hub-memory.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/upstream');

/** An object as an API server returns it. */
function live(object: object, generation = 1): Live {
  const { metadata, ...others } = object as { readonly metadata: { readonly name: string } };
  const base = { labels: {}, annotations: {}, finalizers: [], uid: 'u', resourceVersion: '1', generation };
  return { ...others, metadata: { ...base, ...metadata } };
}

test('a Cluster refers only to objects of the providers of Cluster API, next to it', () => {
  const read = (controlPlaneRef: object): unknown =>
    readCapiCluster(
      live({
        apiVersion: 'cluster.x-k8s.io/v1beta1',
        kind: 'Cluster',
        metadata: { name: 'oslo', namespace: 'a' },
        spec: { controlPlaneRef },
      }),
    ).references;
  const kind = 'Secret';
  const name = 'b-kubeconfig';
  for (const apiVersion of ['v1', '/v1', '', 'apps/v1', 'x.controlplane.cluster.x-k8s.io/v1'])
    assert.equal(read({ apiVersion, kind, name, namespace: 'b' }), [], apiVersion);
  assert.equal(read({ apiGroup: '', kind, name }), []);
  const group = 'controlplane.cluster.x-k8s.io';
  const expected = [{ root: 'ControlPlane', group, kind: 'KubeadmControlPlane', namespace: 'a', name: 'oslo' }];
  const own = { kind: 'KubeadmControlPlane', name: 'oslo' };
  assert.equal(read({ ...own, apiVersion: `${group}/v1beta1`, namespace: 'b' }), expected);
  assert.equal(read({ ...own, apiGroup: group }), expected);
});

function proxyOf(spec: object = {}): ReturnType<typeof readProxy> {
  const chart = { repoURL: 'https://charts.example.com', chartName: 'page', version: '1.0.0' };
  return readProxy(
    live({
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name: 'page', namespace: 'a' },
      spec: { clusterSelector: {}, ...chart, ...spec },
    }),
  );
}

test('a HelmChartProxy uses only Secrets of its namespace', () => {
  const foreign = { name: 'logins', namespace: 'b' };
  const expected = 'Secret b/logins is not in its namespace: only those of a are used for it';
  assert.is(proxyOf({ credentials: { secret: foreign } }).made, expected);
  assert.is(proxyOf({ tlsConfig: { caSecret: foreign } }).made, expected);
  for (const secret of [{ name: 'logins' }, { name: 'logins', namespace: 'a' }]) {
    const { made } = proxyOf({ credentials: { secret } });
    const spec = typeof made === 'string' ? {} : made.spec;
    assert.equal(at(spec as JsonObject, 'source.chart.credentials.secret'), { name: 'logins', namespace: 'a' });
  }
});

/** A FleetAddon in its second generation, all of whose clusters have succeeded with the generation `of`. */
function succeeded(of: number): HubAddon {
  const status = {
    observedGeneration: of,
    revision: 'r',
    since: '2026-01-02T03:04:05Z',
    reached: 0,
    rolledBack: false,
    counts: { Succeeded: 2 },
    reasons: {},
    batch: [],
    waiting: [],
    conditions: [],
  };
  return readFleetAddon(live({ ...hubAddon('page'), status }, 2));
}

test('what has succeeded before a change is not said of the change', () => {
  const states = (of: number): unknown => {
    const { conditions } = proxyStatus(proxyOf(), succeeded(of), { clusters: [], now: 0 });
    return (conditions as readonly JsonObject[]).map((one) => textAt(one, 'status'));
  };
  assert.equal(states(1), ['False', 'False', 'False']);
  assert.equal(states(2), ['True', 'True', 'True']);

  const own = readOcmObject(live(managementAddOn({ all: {} })));
  const template = readOcmObject(live(addOnTemplate('web-1', [])));
  const good = (of: number): unknown => {
    const status = managementStatus(own, { addons: [succeeded(of)], configs: configsIn([own, template]), now: 0 });
    return at(status as JsonObject, 'installProgressions.0.configReferences.0.lastKnownGoodConfig.name');
  };
  assert.equal([good(1), good(2)], [undefined, 'web-1']);
});

test('another owner is named with what takes over from it', () => {
  const record = {
    owner: 'channel:stable',
    namespace: 'web',
    addon: 'web',
    release: { namespace: 'web', name: 'web' },
  };
  const facts = { annotations: new Map(), records: new Map([['web/web', record]]), installer: new Set<string>() };
  const own = readClusterAddon(live(hubClusterAddon('web', 'oslo')))?.record;
  const why = (from?: string): unknown => {
    const addon = readFleetAddon(live(hubAddon('web')));
    const origin = from === undefined ? undefined : { from, hash: '' };
    const need = own && jobOrReport(own, { facts } as unknown as Reply, { ...addon, origin }, { now: 0 });
    return need !== undefined && 'message' in need ? need.message : need;
  };
  const belongs = 'it belongs to channel:stable';
  assert.is(why(), `${belongs}: adopt: true in the spec of FleetAddon web takes it over`);
  const annotation = 'the annotation curlew.dev/compat: caaph of HelmChartProxy a/web takes it over';
  assert.is(why('HelmChartProxy a/web'), `${belongs}: ${annotation}`);
  assert.is(why('ClusterManagementAddOn web'), `${belongs}: remove it there first`);
});

test('while a scheduler has not decided about a Placement, the add-ons with it stay as they are', () => {
  const of = (...more: readonly object[]): readonly OcmObject[] =>
    [managementAddOn({ all: {} }), addOnTemplate('web-1', []), placement('all'), binding(), ...more].map((one) =>
      readOcmObject(live(one)),
    );
  const from = 'ClusterManagementAddOn web';
  const problemWith = (...more: readonly object[]): unknown => fleetOf(of(...more), []).addons.get(from)?.[0]?.problem;
  assert.is(problemWith(), undefined);
  const other = [placement('other'), decision('other', [], [0, ''])];
  assert.is(problemWith(...other), 'Placement fleet-ops/all: it has no PlacementDecision yet');
  assert.is(problemWith(...other, decision('all', [], [0, ''])), undefined);
  assert.is(problemWith(placement('other'), decision('all', [], [0, ''])), undefined);
  const message = 'No valid ManagedClusterSets found';
  const refused = {
    ...placement('all'),
    status: { conditions: [{ type: 'PlacementSatisfied', status: 'False', message }] },
  };
  for (const [why, ...own] of [
    ['namespace fleet-ops has no ManagedClusterSetBinding', placement('all')],
    [message, refused, binding()],
  ] as const) {
    const all = [managementAddOn({ all: {} }), addOnTemplate('web-1', []), ...other, ...own];
    const [made] =
      fleetOf(
        all.map((one) => readOcmObject(live(one))),
        [],
      ).addons.get(from) ?? [];
    assert.is(made?.problem, `Placement fleet-ops/all: it has no PlacementDecision yet: ${why}`);
  }
  const reason = 'AllDecisionsScheduled';
  const lastTransitionTime = '2026-01-02T03:04:05Z';
  const found = [{ type: 'PlacementSatisfied', status: 'True', reason, lastTransitionTime }];
  const scheduled = { ...placement('other'), status: { conditions: found } };
  assert.is(problemWith(scheduled), 'Placement fleet-ops/all: it has no PlacementDecision yet');
});

/** A server that has these versions of the add-on kinds, the preferred one first, and those of the other kinds. */
function serverOf(versions: readonly string[]): { readonly api: KubeApi; readonly paths: readonly string[] } {
  const paths: string[] = [];
  const groups = groupBy(FOREIGN_KINDS.clustermanagementaddons, ({ group }) => group);
  const items = [...groups].map(([group, kinds]) => ({
    metadata: { name: group },
    versions: (group.startsWith('addon.') ? versions : ['v1', 'v1beta1']).map((version) => ({
      version,
      resources: kinds.map(({ kind, plural }) => ({
        resource: plural,
        responseKind: { kind },
        scope: 'Namespaced',
        verbs: ['list'],
      })),
    })),
  }));
  const ask: KubeApi['ask'] = async ({ path }) => {
    paths.push(path);
    const root = path === '/apis' || path === '/api';
    const list = { metadata: { resourceVersion: '1' }, items: [] };
    const value = root ? { kind: 'APIGroupDiscoveryList', items: path === '/apis' ? items : [] } : list;
    return Promise.resolve({ kind: 'answer', value, bytes: 0 });
  };
  return { api: { ask, follow: async () => new Promise(() => undefined) } as unknown as KubeApi, paths };
}

test('add-ons of Open Cluster Management are read in the version in which they are stored, or in the only one', async () => {
  for (const [served, asked] of [
    [['v1beta1', 'v1alpha1'], 'v1alpha1'],
    [['v1beta1'], 'v1beta1'],
  ] as const) {
    const { api, paths } = serverOf(served);
    const stop = new AbortController();
    const { signal } = stop;
    const upstream = await Upstream.open(api, ['clustermanagementaddons'], {
      signal,
      onChange: () => undefined,
      findNewest: noRepository,
      say: () => undefined,
    });
    void upstream.run(signal).catch(() => undefined);
    await until(() => upstream.problem === undefined);
    stop.abort();
    const read = paths.flatMap((path) => /^\/apis\/addon[^/]*\/([^/]+)\//.exec(path)?.[1] ?? []);
    assert.equal([...new Set(read)], [asked]);
  }
});

test('add-ons of Open Cluster Management in a version that is not known are not taken, and that is said', async () => {
  const { api } = serverOf(['v1', 'v2']);
  const { signal } = new AbortController();
  const options = { signal, onChange: () => undefined, findNewest: noRepository, say: () => undefined };
  const { problem } = await Upstream.open(api, ['clustermanagementaddons'], options);
  const what = 'ClusterManagementAddOn of addon.open-cluster-management.io only as v1, v2, not as v1alpha1 or v1beta1';
  assert.is(
    problem,
    `cannot take clustermanagementaddons: the server has ${what}: use a curlew that knows it, or leave clustermanagementaddons out of --reconcile`,
  );
});

test('in v1beta1, a type without a default is no configuration of an add-on', () => {
  const config = { group: 'addon.open-cluster-management.io', resource: 'addontemplates', name: 'web-1' };
  const without = { ...config, resource: 'addondeploymentconfigs', name: '__reserved_no_default__' };
  const written = { ...managementAddOn({}), spec: { defaultConfigs: [config, without] } };
  const [addon, template] = [written, addOnTemplate('web-1', [])].map((one) => readOcmObject(live(one)));
  assert.ok(addon && template);
  assert.equal([...fleetOf([addon, template], []).problems], []);
  const status = managementStatus(addon, { addons: [], configs: configsIn([addon, template]), now: 0 });
  assert.equal(
    (status['defaultConfigReferences'] as readonly object[]).map((one) => textAt(one as JsonObject, 'resource')),
    ['addontemplates'],
  );
});

const contentOf = (specHash: string) => ({ source: {}, values: {}, specHash });

/** A ClusterAddon with the content `web-1`, and what is reported of it. */
function recordOf(state: State | undefined, action: 'Install' | 'Remove' = 'Install'): ClusterAddon {
  const spec = { ...contentOf('web-1'), revision: 1, identity: 'addon:web', action, startedAt: 0 };
  const status = state && { applied: { revision: 1, hash: 'web-1' }, state, since: 0 };
  return { cluster: 'oslo', addon: 'web', spec, ...(status && { status }) };
}

test('an add-on is available by its last delivery, also while a newer configuration waits for its turn', () => {
  const addon = readOcmObject(live(managementAddOn({})));
  const conditionsOf = (record: ClusterAddon, { wanted = 'web-1', isHeard = true, before = [] as object[] } = {}) => {
    const value = { ...onCluster('oslo'), status: { conditions: before } };
    const own = readOcmObject(live(value));
    const around = { addon, at: 0, content: contentOf(wanted), isHeard, configs: configsIn([]), now: 0 };
    const { conditions } = onClusterStatus(own, { ...around, record });
    return (conditions as readonly JsonObject[]).map((one) =>
      ['type', 'status', 'reason'].map((key) => textAt(one, key)).join(' '),
    );
  };
  const available = 'Available True ProbeAvailable';
  assert.equal(conditionsOf(recordOf('Succeeded')), [available, 'Progressing False Completed']);
  assert.equal(conditionsOf(recordOf('Succeeded'), { wanted: 'web-2' }), [
    available,
    'Progressing False WaitingForCanary',
  ]);
  assert.equal(conditionsOf(recordOf(undefined)), ['Available Unknown WorkNotApplied', 'Progressing True Progressing']);
  assert.equal(conditionsOf(recordOf('Failed')), ['Available False WorkNotApplied', 'Progressing False Failed']);
  assert.equal(conditionsOf(recordOf('Removing', 'Remove')), [
    'Available Unknown WorkNotFound',
    'Progressing False WaitingForCanary',
  ]);
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const before = [
    { type: 'Available', status: 'Unknown', reason: 'ManagedClusterLeaseUpdateStopped', lastTransitionTime },
  ];
  assert.equal(conditionsOf(recordOf('Succeeded'), { isHeard: false, before }), [
    'Available Unknown ManagedClusterLeaseUpdateStopped',
    'Progressing False Completed',
  ]);
});

test('while a delivery is tried again, the conditions of a ManagedClusterAddOn say why', () => {
  const message = 'cannot apply web: namespace x does not exist';
  const record = recordOf('Progressing');
  const status = record.status && { ...record.status, message };
  const around = { at: 0, content: contentOf('web-1'), isHeard: true, configs: configsIn([]), now: 0 };
  const [addon, own] = [managementAddOn({}), onCluster('oslo')].map((one) => readOcmObject(live(one)));
  assert.ok(addon && own && status);
  const { conditions } = onClusterStatus(own, { ...around, addon, record: { ...record, status } });
  assert.equal(
    (conditions as readonly JsonObject[]).map((one) => textAt(one, 'message')),
    [0, 1].map(() => `the configuration is being applied: ${message}`),
  );
});

test('a status of Open Cluster Management has the fields of its version, and keeps what was applied before', () => {
  const template = readOcmObject(live(addOnTemplate('web-1', [])));
  const config = { group: 'addon.open-cluster-management.io', resource: 'addontemplates', name: 'web-1' };
  const group = 'addon.open-cluster-management.io';
  for (const [version, field] of [
    ['v1alpha1', 'defaultconfigReferences'],
    ['v1beta1', 'defaultConfigReferences'],
  ] as const) {
    const apiVersion = `${group}/${version}`;
    const spec =
      version === 'v1beta1'
        ? { defaultConfigs: [config] }
        : { supportedConfigs: [{ group, resource: config.resource, defaultConfig: { name: config.name } }] };
    const addon = readOcmObject(live({ apiVersion, kind: 'ClusterManagementAddOn', metadata: { name: 'web' }, spec }));
    const configs = configsIn([addon, template]);
    const status = managementStatus(addon, { addons: [], configs, now: 0 });
    assert.equal(Object.keys(status), [field]);
    const statusWith = (wanted: string, stored?: object): JsonObject => {
      const metadata = { name: 'web', namespace: 'oslo' };
      const own = readOcmObject(live({ apiVersion, kind: 'ManagedClusterAddOn', metadata, status: stored }));
      const around = { addon, at: 0, content: contentOf(wanted), isHeard: true, configs, now: 0 };
      return onClusterStatus(own, { ...around, record: recordOf('Succeeded') }) as JsonObject;
    };
    const applied = statusWith('web-1');
    assert.is('name' in (at(applied, 'configReferences.0') as object), version === 'v1alpha1', version);
    const old = {
      configReferences: [
        { ...(at(applied, 'configReferences.0') as object), lastAppliedConfig: { name: 'web-1', specHash: 'old' } },
      ],
    };
    assert.is(textAt(statusWith('web-2', old), 'configReferences.0.lastAppliedConfig.specHash'), 'old', version);
  }
});

test.run();
