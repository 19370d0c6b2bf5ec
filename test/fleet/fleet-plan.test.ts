import { recordKey, type AddonRecord, type Revision } from '../../src/cluster/channel/record.ts';
import type { Look } from '../../src/fleet/fleet.ts';
import { driftIn } from '../../src/fleet/drift.ts';
import { observedOf } from '../../src/fleet/observe.ts';
import { planFleet, type PlannedFleet } from '../../src/fleet/fleet-plan.ts';
import { readFleet } from '../../src/fleet/read.ts';
import { NO_ORDERS, NO_STATE } from '../../src/fleet/state.ts';
import { step } from '../../src/fleet/rollout/step.ts';
import * as assert from '../support/assert.ts';
import { addon, channel, chart, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/fleet-plan');
const NOW = 1_800_000_000;
const CLUSTERS = ['paris', 'lyon'].map((name) => cluster(name, { env: 'prod' }));

type Answers = Readonly<Record<string, readonly AddonRecord[] | undefined>>;

/** The fleet of these documents, whose clusters answer with these records; undefined: not at all. */
function observed(all: readonly object[], answers: Answers, hash = 'a', kubernetes = 'v1.31.2') {
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text: documents(...all) }]);
  assert.equal(fleet.diagnostics, []);
  const looks = new Map(
    Object.entries(answers).map(([name, records]): [string, Look] => {
      if (records === undefined) return [name, { problem: 'refused' }];
      const facts = {
        installer: new Set<string>(),
        annotations: new Map(),
        records: new Map(records.map((one) => [one.addon, one])),
      };
      return [name, { server: `https://${name}`, kubernetes, facts, warnings: [] }];
    }),
  );
  return observedOf(fleet, looks, () => hash, { now: NOW, state: NO_STATE, orders: NO_ORDERS });
}

function record(name: string, more: Partial<AddonRecord> & { readonly applied: Revision }): AddonRecord {
  const since = new Date((NOW - 7200) * 1000).toISOString();
  const fields = { addon: name, namespace: 'kube-system', owner: `fleet:${name}`, reason: '', history: [] };
  return { ...fields, state: 'Succeeded', since, desired: more.applied, ...more };
}

function lines({ targets }: PlannedFleet): readonly string[] {
  return targets.map(({ cluster: where, addon: name, state, now, reason = '' }) =>
    `${where} ${name} ${state} ${now} ${reason}`.trim(),
  );
}

/** What a record says after the first step of this add-on on paris. */
function appliedBy(all: readonly object[], hash?: string): Revision {
  const [first] = step(observed(all, { paris: [] }, hash), NOW).put;
  return { id: first?.spec.specHash ?? '' };
}

test('a template of a HelmChartProxy sees clusters of Cluster API and of curlew (HS1), and foreign releases survive (HS5)', () => {
  const valuesTemplate =
    'name: {{ .Cluster.metadata.name }}-{{ .Cluster.name }}\npools:' +
    '{{ range .Cluster.spec.clusterNetwork.pods.cidrBlocks }}\n- cidr: {{ . }}{{ end }}';
  const selector = { matchLabels: { env: 'prod' } };
  const spec = { clusterSelector: selector, chartName: 'cni', repoURL: 'https://charts.example.com', version: '1.0.0' };
  const clusterNetwork = { pods: { cidrBlocks: ['192.168.0.0/16', '10.0.0.0/16'] } };
  const metadata = { name: 'lyon', labels: { env: 'prod' } };
  const all = (labels: object) => [
    cluster('paris', labels, { networks: { pods: '10.1.0.0/16' } }),
    { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', metadata, spec: { clusterNetwork } },
    {
      apiVersion: 'addons.cluster.x-k8s.io/v1alpha1',
      kind: 'HelmChartProxy',
      metadata: { name: 'net' },
      spec: { ...spec, valuesTemplate },
    },
  ];
  const foreign = record('foreign', { applied: { id: 'x' }, owner: 'team-b' });
  const { put } = step(observed(all({ env: 'prod' }), { paris: [foreign], lyon: [] }), NOW);
  assert.equal(
    put.map((one) => [one.cluster, one.spec.identity, one.spec.values]),
    [
      [
        'lyon',
        'release:default/net',
        { name: 'lyon-lyon', pools: [{ cidr: '192.168.0.0/16' }, { cidr: '10.0.0.0/16' }] },
      ],
      ['paris', 'release:default/net', { name: 'paris-paris', pools: [{ cidr: '10.1.0.0/16' }] }],
    ],
  );
  const own = record('net', { applied: { id: put[1]?.spec.specHash ?? '' } });
  const left = planFleet(observed(all({}), { paris: [foreign, own], lyon: [] }), NOW);
  assert.equal(lines(left), ['lyon net ToApply install', 'paris net ToApply remove']);
});

test('a cluster whose record has the content is settled, and any other content is an update', () => {
  const all = [...CLUSTERS, addon('web')];
  const paris = [record('web', { applied: appliedBy(all) })];
  assert.equal(lines(planFleet(observed(all, { paris, lyon: [] }), NOW)), [
    'lyon web ToApply install',
    'paris web Succeeded none',
  ]);
  assert.equal(lines(planFleet(observed(all, { paris, lyon: [] }, 'b'), NOW)), [
    'lyon web ToApply install',
    'paris web ToApply update',
  ]);
});

test('what was interrupted continues, what has failed does not, and the record says why', () => {
  const all = [...CLUSTERS, addon('web', { rollout: { progressDeadline: 'None' } })];
  const applied = appliedBy(all);
  const paris = [record('web', { applied, state: 'Failed', reason: 'Deployment web: no image' })];
  const lyon = [record('web', { applied, state: 'Progressing', reason: 'the last run was interrupted' })];
  const reasonOf = (name: string): string => (name === 'paris' ? paris : lyon)[0]?.reason ?? '';
  const { targets } = planFleet(observed(all, { paris, lyon }), NOW, reasonOf);
  assert.equal(
    targets.map(({ state, now, message }) => [state, now, message]),
    [
      ['Progressing', 'continue', 'the last run was interrupted'],
      ['Failed', 'none', 'Deployment web: no image'],
    ],
  );
});

test('a cluster that does not answer waits, and holds no other', () => {
  const all = [...CLUSTERS, addon('web', { rollout: { type: 'Progressive', maxConcurrency: 1 } })];
  assert.equal(lines(planFleet(observed(all, { lyon: undefined, paris: [] }), NOW)), [
    'lyon web Unreachable wait Unreachable',
    'paris web ToApply install',
  ]);
});

test('an order to go back that does not count yet is said once, and no cluster waits for it', () => {
  const all = [...CLUSTERS, addon('web')];
  const records = [record('web', { applied: appliedBy(all) })];
  const seen = observed(all, { paris: records, lyon: records });
  const orders = { generation: 1, at: NOW + 3600, rollback: NOW + 3600 };
  const plan = planFleet({ ...seen, addons: seen.addons.map((one) => ({ ...one, orders })) }, NOW);
  assert.equal(lines(plan), ['lyon web Succeeded none', 'paris web Succeeded none']);
  assert.equal(plan.unheeded.length, 1);
  assert.match(plan.unheeded[0] ?? '', /^web: the order to go back of 2027-01-15T09:00:00Z counts from then on/);
});

test('what is in another record is named as its owner, also by its release', () => {
  const all = [...CLUSTERS, addon('web', { source: { chart: { ...chart('web'), releaseName: 'site' } } })];
  const release = { name: 'site', namespace: 'kube-system' };
  const paris = [record('other', { owner: 'channel:stable', applied: {}, release })];
  const { targets } = planFleet(observed(all, { paris, lyon: [] }), NOW);
  assert.equal(
    targets.map(({ now, wanted, message }) => [now, wanted, message]),
    [
      ['install', '1.2.3', undefined],
      ['wait', '1.2.3', 'it belongs to channel:stable'],
    ],
  );
});

test('an add-on that is in no file any more stays', () => {
  const all = [...CLUSTERS, addon('web')];
  const { detached } = planFleet(observed(all, { paris: [record('old', { applied: { id: 'x' } })], lyon: [] }), NOW);
  assert.equal(detached, [{ cluster: 'paris', addon: 'old' }]);
});

test('a cluster that is no longer selected loses the add-on, and paused ones keep it', () => {
  const before = [...CLUSTERS, addon('web')];
  const paris = [record('web', { applied: appliedBy(before) })];
  for (const [paused, wanted] of [
    [false, 'paris web ToApply remove'],
    [true, 'paris web ToApply wait Paused'],
  ] as const) {
    const all = [cluster('paris', {}, { paused }), CLUSTERS[1] ?? {}, addon('web')];
    assert.equal(lines(planFleet(observed(all, { paris, lyon: [] }), NOW)).at(-1), wanted);
  }
});

test('an add-on of a channel gets the entry for the Kubernetes of each cluster, wherever the folder is', () => {
  const source = { channel: { name: 'stable' } };
  const entries = [
    { name: 'web', version: '1.0.0', kubernetesVersion: '<1.31.0', manifest: 'a.yaml' },
    { name: 'web', version: '2.0.0', kubernetesVersion: '>=1.31.0', manifest: 'b.yaml' },
  ];
  const text = documents(...CLUSTERS, addon('web', { source }));
  const hashes = ['.', 'some/where'].map((folder) => {
    const files = [
      { path: `${folder}/stable.yaml`, folder, text: documents(channel('stable', ...entries)) },
      { path: `${folder}/fleet.yaml`, folder, text },
    ];
    const looks = ['v1.30.1', 'v1.31.2'].map((kubernetes, at): readonly [string, Look] => {
      const facts = { installer: new Set<string>(), annotations: new Map(), records: new Map() };
      return [at === 0 ? 'lyon' : 'paris', { server: '', kubernetes, facts, warnings: [] }];
    });
    const known = { now: NOW, state: NO_STATE, orders: NO_ORDERS };
    const seen = observedOf(readFleet(files), new Map(looks), () => 'a', known);
    assert.equal(
      planFleet(seen, NOW).targets.map(({ cluster: where, wanted }) => `${where} ${wanted}`),
      ['lyon 1.0.0', 'paris 2.0.0'],
    );
    return step(seen, NOW).put.map(({ spec }) => spec.specHash);
  });
  assert.equal(hashes[0], hashes[1]);
});

test('a mandatory group comes first, and the others wait for it', () => {
  const rollout = {
    type: 'Progressive',
    groups: [{ name: 'canary', selector: { matchLabels: { canary: 'true' } } }],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
  };
  const canary = cluster('nice', { env: 'prod', canary: 'true' });
  const all = [...CLUSTERS, canary, addon('web', { rollout })];
  assert.equal(lines(planFleet(observed(all, { paris: [], lyon: [], nice: [] }), NOW)), [
    'lyon web ToApply wait Group',
    'nice web ToApply install',
    'paris web ToApply wait Group',
  ]);
});

test('what another add-on of the fleet does to the release that it takes over is no change by others', () => {
  const fleet = readFleet([
    { path: 'fleet.yaml', folder: '.', text: documents(...CLUSTERS, addon('old'), addon('web')) },
  ]);
  const live = new Map(
    ['old', 'web'].map((name) => [recordKey('kube-system', name), { missing: [], changed: ['ConfigMap a'] }]),
  );
  const release = { namespace: 'default', name: 'web' };
  const said = (all: readonly AddonRecord[]): readonly string[] => {
    const facts = {
      installer: new Set<string>(),
      annotations: new Map(),
      records: new Map(all.map((one) => [one.addon, one])),
    };
    return driftIn(fleet, new Map([['paris', { server: '', kubernetes: '', facts, live, warnings: [] }]])).warnings;
  };
  const old = record('old', { applied: { id: 'a' }, release });
  assert.equal(said([old]), ['paris: old was changed by others: ConfigMap a']);
  assert.equal(said([old, record('web', { applied: { id: 'b' }, release })]), []);
});

test.run();
