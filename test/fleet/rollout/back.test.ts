/** Rollbacks that fail, and what is said about them. */
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, ring, TestFleet, CANARY, CLUSTERS, canaryFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/back');

const ROLLBACK: Strategy = { ...CANARY, onFailure: 'Rollback' };

test('what fails when it goes back is said with its cluster until it is healthy, and is tried again on order', () => {
  const world = canaryFleet(ROLLBACK);
  world.settle();
  world.release('net', '2.0.0');
  world.step();
  world.report('Failed', 'w1', 'w2');
  assert.equal(world.begin(), ['w1', 'w2']);
  const gone = 'it has gone back to what was known as good: group canary: 2 failed, and 0 may: w1: no such kind';
  assert.is(world.status('net')?.stopped, gone);
  world.report('Failed', 'w1', 'w2');
  assert.equal(world.begin(), []);
  const failed =
    'going back to what was known as good failed on w1 and 1 more: no such kind; remove the cause, then retry the add-on';
  assert.is(world.status('net')?.stopped, failed);
  assert.is(world.why('w1'), `Stopped: ${failed}`);
  assert.equal(world.status('net')?.counts, { Failed: 2, ToApply: 4 });
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['w1', 'w2']);
  assert.is(world.spec('w1')?.version, '1.0.0');
  world.report('Succeeded', 'w1', 'w2');
  world.step();
  assert.is(world.status('net')?.stopped, gone);
});

test('a cluster that had failed before the rollout has not failed by going back', () => {
  const world = canaryFleet(ROLLBACK);
  world.settle();
  world.report('Failed', 's1');
  world.now += 10;
  world.release('net', '2.0.0');
  world.step();
  world.report('Failed', 'w1');
  world.step();
  world.report('Succeeded', 'w1', 'w2');
  world.step();
  assert.match(world.status('net')?.stopped ?? '', /^it has gone back/);
});

test('a first content that failed has not gone back, and waits like all others when it is to change', () => {
  const config = { groups: [{ selector: { matchLabels: { site: 'x' } }, values: { mtu: 1 } }] };
  const world = new TestFleet(CLUSTERS, addon('net', { rollout: ROLLBACK, config }));
  world.settle();
  world.release('net', '2.0.0');
  world.clusters.push(...ring('canary', 'w0'));
  assert.equal(world.begin(), ['w0', 'w1']);
  world.report('Failed', 'w0');
  assert.equal(world.begin(), ['w1']);
  world.report('Succeeded', 'w1');
  world.changeCluster('w0', { labels: { ring: 'canary', site: 'x' } });
  const gone = 'it has gone back to what was known as good: group canary: 1 failed, and 0 may: w0: no such kind';
  const check = (): void => {
    assert.equal(world.begin(), []);
    assert.equal([world.status('net')?.stopped, world.why('w0')], [gone, `Stopped: ${gone}`]);
    assert.is(world.status('net')?.counts['Failed'], undefined);
  };
  check();
  world.now += 10;
  world.order('net', { retry: world.now });
  check();
});

test('what an earlier revision failed with is not why a later one goes back', () => {
  const world = canaryFleet({ ...ROLLBACK, progressDeadline: '1m' });
  world.settle();
  world.report('Failed', 'w1');
  world.now += 10;
  world.release('net', '2.0.0');
  world.step();
  world.now += 120;
  world.step();
  assert.match(world.status('net')?.stopped ?? '', /^it has gone back/);
  assert.not.match(world.status('net')?.stopped ?? '', 'no such kind');
});

test('by the rules of Open Cluster Management, too, what has gone back stays there until the add-on changes', () => {
  const rollout: Strategy = { type: 'Progressive', maxConcurrency: 3 };
  const versions = (world: TestFleet) => CLUSTERS.map(({ name }) => world.spec(name)?.version).join(' ');
  const ordered = new TestFleet(CLUSTERS, addon('net', { rollout, compat: 'ocm' }));
  ordered.settle();
  ordered.release('net', '2.0.0');
  ordered.settle();
  ordered.order('net', { rollback: ordered.now });
  ordered.settle();
  assert.is(versions(ordered), '1.0.0 1.0.0 1.0.0 1.0.0 1.0.0 1.0.0');
  assert.is(ordered.why('w1'), 'Stopped: it has gone back to what was known as good');

  const failing = new TestFleet(
    CLUSTERS,
    addon('net', { rollout: { ...rollout, onFailure: 'Rollback' }, compat: 'ocm' }),
  );
  failing.settle();
  failing.release('net', '2.0.0');
  failing.step();
  failing.report('Failed', 's1');
  failing.settle();
  assert.is(versions(failing), '1.0.0 1.0.0 1.0.0 1.0.0 1.0.0 1.0.0');
  assert.match(failing.status('net')?.stopped ?? '', /^it has gone back .*: s1: no such kind$/);
  failing.release('net', '3.0.0');
  failing.settle();
  assert.is(versions(failing), '3.0.0 3.0.0 3.0.0 3.0.0 3.0.0 3.0.0');
});

test.run();
