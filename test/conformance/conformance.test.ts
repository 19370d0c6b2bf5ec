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
