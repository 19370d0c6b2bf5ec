import * as fc from 'fast-check';
import type { FleetAddon } from '../../../src/fleet/rollout/fleet.ts';
import type { State, Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('rollout, properties');

const size = fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom('1%', '25%', '50%', '100%'));
const strategy: fc.Arbitrary<Strategy> = fc.record(
  {
    type: fc.constantFrom('All', 'Progressive', 'ProgressivePerGroup'),
    groups: fc.constant(['canary', 'early'].map(ringGroup)),
    groupSize: size,
    mandatoryDecisionGroups: fc.constantFrom([], [{ groupName: 'canary' }], [{ groupIndex: 0 }]),
    maxConcurrency: size,
    maxFailures: size,
    minSuccessTime: fc.constantFrom('0s', '5m'),
    onFailure: fc.constantFrom('Stop', 'Rollback'),
    maxRemovals: size,
  },
  { requiredKeys: ['groups'] },
);

/** What happens between two steps, each on the cluster of that number. */
const event = fc.record({
  at: fc.nat(11),
  what: fc.constantFrom(
    'Succeeded',
    'Failed',
    'Progressing',
    'stale',
    'offline',
    'online',
    'deselect',
    'select',
    'gone',
    'release',
    'wait',
    'delete',
  ),
});
type Event = typeof event extends fc.Arbitrary<infer One> ? One : never;

const RINGS = ['canary', 'early', 'late', 'none'];
const SELECTED = { matchExpressions: [{ key: 'ring', operator: 'NotIn', values: ['none'] }] } as const;

function begin(rollout: Strategy, more: Partial<FleetAddon> = {}): TestFleet {
  const clusters = Array.from({ length: 12 }, (_, at) => cluster(`c${at}`, { labels: { ring: RINGS[at % 3] ?? '' } }));
  const addons = [addon('net', { rollout, clusterSelector: SELECTED, ...more }), addon('app', { dependsOn: ['net'] })];
  return new TestFleet(clusters, ...addons);
}

function happen(world: TestFleet, { at, what }: Event): void {
  const name = `c${at}`;
  world.now += 60;
  const { now: since } = world;
  if (what === 'Succeeded' || what === 'Failed' || what === 'Progressing') world.report(what, name);
  else if (what === 'stale') {
    world.records = world.records.map((record) => {
      const status = {
        applied: { revision: record.spec.revision - 1, hash: 'old' },
        state: 'Succeeded' as State,
        since,
      };
      return record.cluster === name ? { ...record, status } : record;
    });
  } else if (what === 'offline' || what === 'online')
    world.changeCluster(name, { available: what === 'online', since });
  else if (what === 'deselect') world.changeCluster(name, { labels: { ring: 'none' } });
  else if (what === 'select') world.changeCluster(name, { labels: { ring: RINGS[at % 3] ?? '' } });
  else if (what === 'gone') world.clusters = world.clusters.filter((one) => one.name !== name);
  else if (what === 'release') world.release('net', `1.0.${since}`);
  else if (what === 'delete') world.change('app', { deleting: true });
  else world.now += 600;
}

const story = fc.tuple(strategy, fc.array(event, { maxLength: 40 }));

test('once its writes are made, the same state needs no more', () => {
  const property = fc.property(story, ([rollout, events]) => {
    const world = begin(rollout);
    for (const one of events) {
      world.step();
      const { put, drop, status, released } = world.preview();
      assert.equal([put, drop, status, released], [[], [], [], []]);
      happen(world, one);
    }
  });
  fc.assert(property, cases(25));
});

test('no more clusters are under way than the strategy allows, and revisions only grow', () => {
  const property = fc.property(story, ([rollout, events]) => {
    const world = begin(rollout);
    for (const one of events) {
      const before = new Map(world.records.map(({ addon: of, cluster: on, spec }) => [`${of}/${on}`, spec.revision]));
      const { put } = world.preview();
      for (const { addon: of, cluster: on, spec } of put) assert.ok(spec.revision > (before.get(`${of}/${on}`) ?? 0));
      const held = world.preview();
      const busy = new Set(world.status('net')?.batch);
      world.step();
      const after = world.status('net')?.batch ?? [];
      const started = held.put.filter(({ addon: of, cluster: on }) => of === 'net' && !busy.has(on));
      const { maxConcurrency } = rollout;
      if (typeof maxConcurrency === 'number' && started.length > 0) assert.ok(after.length <= maxConcurrency);
      happen(world, one);
    }
  });
  fc.assert(property, cases(25));
});

test('a state of another revision counts as none', () => {
  const property = fc.property(story, ([rollout, events]) => {
    const world = begin(rollout);
    for (const one of events) {
      world.step();
      const { records } = world;
      world.records = records.map(({ status, ...record }) => {
        const counts =
          status?.applied.revision === record.spec.revision && status.applied.hash === record.spec.specHash;
        return counts ? { ...record, status } : record;
      });
      const without = world.preview();
      world.records = records;
      assert.equal(world.preview(), without);
      happen(world, one);
    }
  });
  fc.assert(property, cases(20));
});

test('a list that failed or is empty deletes nothing', () => {
  const property = fc.property(story, fc.boolean(), ([rollout, events], isEmpty) => {
    const world = begin({ ...rollout, maxRemovals: '100%' });
    for (const one of events) {
      world.step();
      happen(world, one);
    }
    if (isEmpty) world.clusters = [];
    else world.complete = false;
    const { put, drop } = world.preview();
    if (world.records.length > 0) assert.equal([put, drop], [[], []]);
  });
  fc.assert(property, cases(20));
});

test('an offline cluster holds no other: the rest begin as if it were not selected', () => {
  const property = fc.property(strategy, fc.nat(11), (given, at) => {
    const rollout: Strategy = { ...given, maxConcurrency: 3, maxFailures: 0, groupSize: '100%' };
    const offline = begin(rollout);
    offline.changeCluster(`c${at}`, { available: false });
    const without = begin(rollout);
    without.clusters = without.clusters.filter(({ name }) => name !== `c${at}`);
    for (let round = 0; round < 20; round += 1) {
      assert.equal(offline.begin(), without.begin());
      for (const world of [offline, without]) {
        world.report('Succeeded', ...world.clusters.filter(({ available }) => available).map(({ name }) => name));
        world.now += 600;
      }
    }
    assert.is(without.records.length, 22);
  });
  fc.assert(property, cases(20));
});

test.run();
