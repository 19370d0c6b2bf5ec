import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import * as conformance from '../../src/conformance/conformance.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('conformance');

interface Vector {
  readonly id: string;
  readonly fn?: string;
  readonly in: unknown;
  readonly out: unknown;
}
type Run = (input: unknown) => unknown;

const SUITES = [
  'channels/kops-channels',
  'channels/native-planner',
  'rollout/cluster-addons',
  'rollout/ocm-basics',
  'rollout/ocm-rollout',
  'machine/machines',
];
/** Groups of machines that are replaced by others, updates in place of such, and rules for drains: curlew has none of these. */
const LEFT_OUT = /^(?:mdPercent|mdStep|inPlaceCovers) |^drainPlan M8[013]$/;
for (const name of SUITES) {
  const text = await readFile(join(import.meta.dirname, '../fixtures', `${name}.yaml`), 'utf8');
  const { fn, vectors } = parse(text) as { readonly fn?: string; readonly vectors: readonly Vector[] };
  for (const vector of vectors) {
    const run = vector.fn ?? fn ?? '';
    if (LEFT_OUT.test(`${run} ${vector.id}`)) continue;
    test(`${vector.id}: ${run}`, () => {
      const functions = conformance as unknown as Readonly<Record<string, Run | undefined>>;
      assert.equal(functions[run]?.(vector.in), vector.out);
    });
  }
}

interface Scenario {
  readonly id: string;
  readonly records?: readonly { readonly ready: boolean }[];
  readonly expectConditions?: Readonly<Record<string, string>>;
}
const scenarios = await Promise.all(
  ['cluster-addons', 'ocm'].map(async (name) => {
    const text = await readFile(join(import.meta.dirname, `../fixtures/rollout/${name}-scenarios.yaml`), 'utf8');
    return (parse(text) as { readonly scenarios: readonly Scenario[] }).scenarios;
  }),
);
for (const { id, records = [], expectConditions } of scenarios.flat()) {
  if (expectConditions === undefined) continue;
  test(`${id}: proxyConditions`, () => {
    assert.equal(
      { ...conformance.proxyConditions({ releases: records }), ...expectConditions },
      conformance.proxyConditions({ releases: records }),
    );
  });
}

const metadata = (name: string, mark: string) => ({
  name,
  annotations: { [`addon.open-cluster-management.io/${mark}`]: '' },
});
const JOB = { apiVersion: 'batch/v1', kind: 'Job', metadata: metadata('clean', 'addon-pre-delete') };
const DEPLOYMENT = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' } };

test('OS2: while a hook runs, what is deployed stays', () => {
  const removal = (hook: 'running' | 'complete') => conformance.templateRemoval({ manifests: [JOB, DEPLOYMENT], hook });
  assert.equal(removal('running'), { applied: ['Job/clean'], deleted: [], kept: ['Deployment/web'] });
  assert.equal(removal('complete'), { applied: ['Job/clean'], deleted: ['Deployment/web', 'Job/clean'], kept: [] });
});

const PROXY = { chartName: 'calico', repoURL: 'https://charts.example.com', version: '2' };
const before = (cluster: string) => ({ ...PROXY, cluster, version: '1', generated: true, installed: true });

test('a HelmChartProxy leaves clusters alone that are paused or being deleted, and goes on with others', () => {
  const clusters = ['a', 'b', 'c', 'd'].map((name) => ({ name, selected: true }));
  const [a = clusters[0], b = clusters[0], ...others] = clusters;
  assert.ok(a && b);
  const input = { spec: PROXY, clusters: [{ ...a, paused: true }, { ...b, deleting: true }, ...others] };
  assert.equal(conformance.hcp(input), ['create:c', 'create:d']);
  const releases = clusters.map(({ name }) => before(name));
  assert.equal(conformance.hcp({ ...input, releases }), ['update:c', 'update:d']);
  const paused = { ...input, spec: { ...PROXY, paused: true } };
  assert.equal(conformance.hcp(paused), []);
});

test('another chart is another release by the rules of the provider, and natively an upgrade', () => {
  const clusters = [{ name: 'a', selected: true }];
  for (const other of [{ repoURL: 'https://other.example.com' }, { chartName: 'tigera' }]) {
    const input = { spec: { ...PROXY, ...other }, clusters, releases: [before('a')] };
    assert.equal(conformance.hcp(input), ['reinstall:a']);
    assert.equal(conformance.hcp(input, 'native'), ['update:a']);
  }
});

test('a release that does not exist is installed', () => {
  assert.is(conformance.hrp({ release: null, desired: { version: '1', values: 'a' } }), 'install');
});

test('a placement that does not exist selects no cluster', () => {
  const placements = [{ clusters: ['c1'] }, null];
  assert.equal(conformance.installDiff({ type: 'Placements', placements, existing: ['c1', 'c9'] }), {
    create: [],
    delete: ['c9'],
  });
});

test('without the age of a Lease, nothing is known of its component', () => {
  assert.is(conformance.lease({ ageSeconds: null }), 'Unknown');
});

test('machines that are not healthy go before those that are only old', () => {
  const machines = [
    { name: 'a', ageDays: 800 },
    { name: 'b', ageDays: 400 },
    { name: 'c', nodeHealthy: false },
    { name: 'd', hasNode: false, ageDays: 900 },
    { name: 'e', updating: true },
  ];
  const order = { order: 'Oldest', count: 5, machines } as const;
  assert.equal(conformance.deletionOrder(order), ['e', 'c', 'd', 'a', 'b']);
  const controlPlanes = [
    { name: 'a', zone: 'z1', ageDays: 9, outdated: true },
    { name: 'b', zone: 'z1', ageDays: 7, outdated: true },
    { name: 'c', zone: 'z2', ageDays: 5, outdated: true, healthy: false },
  ];
  assert.is(conformance.kcpPick({ machines: controlPlanes }), 'c');
});

test('OS5: an object that is to be an orphan stays', () => {
  const kept = { ...DEPLOYMENT, metadata: metadata('data', 'deletion-orphan') };
  assert.equal(conformance.templateRemoval({ manifests: [kept, DEPLOYMENT] }), {
    applied: [],
    deleted: ['Deployment/web'],
    kept: ['Deployment/data'],
  });
});

test('OS7: a cluster in two placements has the configuration of the later one', () => {
  assert.equal(
    conformance.lastPlacement({
      placements: [
        ['a', 'b'],
        ['b', 'c'],
      ],
    }),
    [['a'], ['b', 'c']],
  );
});

test('an upgrade that no version of the add-on follows is a gap', () => {
  const entries = [{ version: '1.0.0', kubernetesVersion: '<1.31.0' }];
  const kubernetes = ['v1.30.0', 'v1.31.0'];
  assert.equal(conformance.planAddons({ installed: '1.0.0', kubernetes, entries }), { error: 'gap at v1.31.0' });
});

test('natively a wildcard can be excluded, and what kops ignores is not a range', () => {
  const natively = (range: string) => conformance.rangeMatch({ range, kubernetesVersion: 'v1.5.0' }, 'native');
  assert.equal(natively('!=1.2.x'), { matches: true });
  assert.equal(natively('1.4.0 - 1.6.0'), { matches: false, warning: true });
});

test('a cluster that is given as timed out counts as a failure, and is not reported again', () => {
  const given = (maxFailures: number) =>
    conformance.rollout({
      strategy: {
        type: 'Progressive',
        maxConcurrency: 1,
        maxFailures,
        mandatoryDecisionGroups: [{ groupName: 'canary' }],
      },
      groups: { canary: ['a1'], _1: ['b1', 'b2', 'b3'] },
      existing: { a1: 'Succeeded', b1: 'TimeOut' },
    });
  assert.equal(given(0), { rollout: [], timeout: [], breach: true });
  assert.equal(given(1), { rollout: ['b2:ToApply'], timeout: [], breach: false });
});

test.run();
