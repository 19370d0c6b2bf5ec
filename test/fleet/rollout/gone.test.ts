/** Clusters that go in the middle of a rollout. */
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, ring, ringGroup, TestFleet, CANARY, CLUSTERS, canaryFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/gone');

test('a stop stays although the cluster that failed is deleted, until a retry or a change of the add-on', () => {
  for (const how of ['gone', 'deleted', 'deselected']) {
    const world = canaryFleet(CANARY, { clusterSelector: { matchExpressions: [{ key: 'ring', operator: 'Exists' }] } });
    world.changeCluster('w2', { labels: { ring: 'shop' } });
    world.step();
    world.report('Failed', 'w1');
    assert.equal(world.begin(), [], how);
    if (how === 'gone') world.clusters = world.clusters.filter(({ name }) => name !== 'w1');
    else world.changeCluster('w1', how === 'deleted' ? { deleting: world.now } : { labels: {} });
    assert.equal(world.begin(), how === 'gone' ? [] : ['Remove w1'], how);
    world.report('Succeeded', 'w1');
    world.step();
    assert.equal(world.begin(), [], how);
    const why =
      'group canary: 1 failed, and 0 may; 1 of these clusters is gone or has not succeeded since: retry the add-on, or change it';
    assert.is(world.why('s1'), `Stopped: ${why}`, how);
    world.now += 10;
    if (how === 'gone') world.release('net', '1.1.0');
    else world.order('net', { retry: world.now });
    assert.equal(world.begin(), ['s1', 's2'], how);
  }
});

test('a failure counts until its cluster has succeeded or a retry is ordered, also if something else is to be installed there', () => {
  const valuesTemplate = 'site: {{ .Cluster.labels.site }}\n';
  for (const more of [{ paused: true }, { available: false, since: 1_000_000 }, {}]) {
    const world = new TestFleet(
      [...ring('canary', 'w1'), ...ring('shop', 's1', 's2')].map((one) => ({
        ...one,
        labels: { ...one.labels, site: 'x' },
      })),
      addon('net', { rollout: CANARY, valuesTemplate }),
    );
    world.settle();
    world.release('net', '2.0.0');
    assert.equal(world.begin(), ['w1']);
    world.report('Failed', 'w1');
    assert.equal(world.begin(), []);
    world.changeCluster('w1', { ...more, labels: { ring: 'canary', site: 'y' } });
    assert.equal(world.begin(), []);
    assert.equal(world.begin(), []);
    const why = 'group canary: 1 failed, and 0 may; 1 of these clusters is gone or has not succeeded since';
    assert.is(world.why('s1'), `Stopped: ${why}: retry the add-on, or change it`);
    world.changeCluster('w1', { paused: false, available: true });
    world.now += 10;
    world.order('net', { retry: world.now });
    assert.equal(world.begin(), ['w1']);
    world.report('Succeeded', 'w1');
    assert.equal(world.begin(), ['s1', 's2']);
    assert.is(world.status('net')?.failed, undefined);
  }
});

test('a failure counts although its cluster goes and is created again under its name, once for a percentage', () => {
  for (const maxFailures of [0, '25%']) {
    const world = new TestFleet(
      ring('shop', 'a', 'b', 'c', 'd'),
      addon('net', { rollout: { type: 'Progressive', maxConcurrency: 2, maxFailures } }),
    );
    world.settle();
    world.release('net', '2.0.0');
    assert.equal(world.begin(), ['a', 'b']);
    world.report('Failed', ...(maxFailures === 0 ? ['a'] : ['a', 'b']));
    world.report('Succeeded', ...(maxFailures === 0 ? ['b'] : []));
    assert.equal(world.begin(), []);
    const [old, ...others] = world.clusters;
    world.clusters = others;
    world.step();
    world.clusters = [...(old === undefined ? [] : [old]), ...others];
    assert.equal(world.begin(), []);
    assert.equal(Object.keys(world.status('net')?.failed?.clusters ?? {}), maxFailures === 0 ? ['a'] : ['a', 'b']);
    world.now += 10;
    world.order('net', { retry: world.now });
    assert.equal(world.begin(), maxFailures === 0 ? ['a', 'c'] : ['a', 'b']);
  }
});

test('a cluster that failed and is selected again during its removal waits like the others', () => {
  const world = canaryFleet(CANARY, { clusterSelector: { matchExpressions: [{ key: 'ring', operator: 'Exists' }] } });
  world.settle();
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['w1', 'w2']);
  world.report('Succeeded', 'w2');
  world.report('Failed', 'w1');
  assert.equal(world.begin(), []);
  world.changeCluster('w1', { labels: {} });
  assert.equal(world.begin(), ['Remove w1']);
  world.changeCluster('w1', { labels: { ring: 'canary' } });
  assert.equal(world.begin(), []);
  assert.match(world.why('w1') ?? '', /^Stopped: group canary: 1 failed, and 0 may; 1 of these clusters is gone or /);
  world.report('Succeeded', 'w1');
  assert.equal(world.begin(), []);
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['w1']);
});

test('failures on clusters that are deleted one after the other use up the budget, and one order to retry is for those before it', () => {
  const world = new TestFleet(
    ring('shop', 'a', 'b', 'c', 'd', 'e'),
    addon('net', { rollout: { type: 'Progressive', maxConcurrency: 1, maxFailures: 1 } }),
  );
  const leave = (name: string): void => {
    world.clusters = world.clusters.filter((one) => one.name !== name);
  };
  assert.equal(world.begin(), ['a']);
  world.report('Failed', 'a');
  assert.equal(world.begin(), ['b']);
  leave('a');
  world.report('Failed', 'b');
  assert.equal(world.begin(), []);
  leave('b');
  assert.equal(world.begin(), []);
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['c']);
  world.report('Failed', 'c');
  assert.equal(world.begin(), ['d']);
  leave('c');
  world.report('Failed', 'd');
  assert.equal(world.begin(), []);
  assert.is(
    world.why('e'),
    'Stopped: the rest: 2 failed, and 1 may; 1 of these clusters is gone or has not succeeded since: retry the add-on, or change it',
  );
});

test('a group whose clusters go leaves the stages after it as they are', () => {
  const rollout: Strategy = {
    type: 'ProgressivePerGroup',
    groups: [ringGroup('canary'), ringGroup('early'), ringGroup('shop')],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
    maxConcurrency: 1,
  };
  const world = new TestFleet(
    [...ring('canary', 'w1'), ...ring('early', 'e1', 'e2'), ...ring('shop', 's1')],
    addon('net', { rollout }),
  );
  world.settle();
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['w1']);
  world.report('Succeeded', 'w1');
  assert.equal(world.begin(), ['e1']);
  world.clusters = world.clusters.filter(({ name }) => name !== 'w1');
  world.report('Succeeded', 'e1');
  assert.equal(world.begin(), ['e2']);
  assert.is(world.why('s1'), 'Group: group early is not done');
});

test('a part of a mandatory group that is cut by size is not passed over because clusters of the part before it go', () => {
  const world = canaryFleet({ ...CANARY, groups: [{ ...ringGroup('canary'), size: 1 }] });
  world.step();
  world.report('Succeeded', 'w1');
  assert.equal(world.begin(), ['w2']);
  world.report('Failed', 'w2');
  world.step();
  world.clusters = world.clusters.filter(({ name }) => name !== 'w1');
  world.order('net', { retry: world.now + 1 });
  assert.equal(world.begin(), ['w2']);
});

test('a mandatory group that is named by its index stays it when the clusters of a group before it go', () => {
  const groups = [ringGroup('first'), ringGroup('canary'), ringGroup('shop')];
  const world = new TestFleet(
    [...ring('first', 'f1'), ...CLUSTERS],
    addon('net', { rollout: { ...CANARY, groups, mandatoryDecisionGroups: [{ groupIndex: 1 }] } }),
  );
  assert.equal(world.begin(), ['w1', 'w2']);
  world.clusters = world.clusters.filter(({ name }) => name !== 'f1');
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Group: group canary is not done');
});

/** `count` clusters with long names, all of which begin at once. */
function crowd(count: number, rollout: Strategy): TestFleet {
  const names = Array.from({ length: count }, (_, at) => `${'x'.repeat(50)}${at + 100}`);
  const clusterSelector = ringGroup('shop').selector;
  const world = new TestFleet(ring('shop', ...names), addon('net', { rollout, clusterSelector }));
  world.settle();
  world.release('net', '2.0.0');
  return world;
}

test('failures beyond those that are kept by name are decided by the budget, and no more than it allows go back', () => {
  for (const [maxFailures, isWithin] of [
    ['50%', true],
    [79, false],
  ] as const) {
    const rollout = { type: 'Progressive', maxConcurrency: 90, maxFailures, onFailure: 'Rollback' } as const;
    const world = crowd(200, rollout);
    const begun = world.begin();
    world.report('Failed', ...begun.slice(0, 80));
    world.report('Succeeded', ...begun.slice(80));
    assert.is(world.begin().length, isWithin ? 90 : 80);
    assert.is(world.status('net')?.rolledBack, !isWithin);
    const { clusters = {}, more = 0 } = world.status('net')?.failed ?? {};
    if (isWithin) assert.equal([more > 0, Object.keys(clusters).length + more], [true, 80]);
  }
});

test('a failure that is not kept by name counts until a retry once its cluster goes, and its cluster leaves like others', () => {
  const world = crowd(200, { type: 'Progressive', maxConcurrency: 90, maxFailures: 80, maxRemovals: '100%' });
  const failed = world.begin().slice(0, 80);
  world.report('Failed', ...failed);
  world.report('Succeeded', ...(world.status('net')?.batch ?? []).filter((name) => !failed.includes(name)));
  const next = world.begin();
  const { more = 0 } = world.status('net')?.failed ?? {};
  const [named, unnamed] = [failed.slice(0, 80 - more), failed.slice(80 - more)];
  const [one = ''] = named;
  world.report('Failed', next[0] ?? '');
  assert.equal(world.begin(), []);
  assert.is(world.why(world.clusters.at(-1)?.name ?? ''), 'Stopped: the rest: 81 failed, and 80 may');
  const leaving = [one, ...unnamed];
  for (const name of leaving) world.changeCluster(name, { labels: {} });
  assert.equal(
    world.begin(),
    leaving.map((name) => `Remove ${name}`),
  );
  world.report('Succeeded', ...leaving);
  world.step();
  assert.equal(world.begin(), []);
  assert.match(
    world.why(world.clusters.at(-1)?.name ?? '') ?? '',
    /^Stopped: the rest: 8\d failed, and 80 may; \d+ of these clusters are gone or have not succeeded since: retry/,
  );
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.ok(world.begin().length > 0);
  assert.is(world.status('net')?.failed, undefined);
});

test('as many failures as are kept by name are decided by their budget', () => {
  const names = Array.from({ length: 130 }, (_, at) => `c${at + 1}`);
  const rollout: Strategy = { type: 'Progressive', maxConcurrency: 100, maxFailures: '90%' };
  const world = new TestFleet(ring('shop', ...names), addon('net', { rollout }));
  world.report('Failed', ...world.begin());
  assert.is(world.begin().length, 30);
});

test.run();
