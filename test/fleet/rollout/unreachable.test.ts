/** Clusters that do not answer: from the beginning, or since something began there. */
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { ringGroup, CANARY, canaryFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/unreachable');

test('an offline cluster waits alone, uses up no budget, and catches up in one step', () => {
  const world = canaryFleet();
  world.changeCluster('w1', { available: false, since: world.now - 100 });
  assert.equal(world.begin(), ['w2']);
  assert.is(world.why('w1'), 'Unreachable: the cluster does not answer');
  assert.is(world.status('net')?.waiting.find(({ cluster: on }) => on === 'w1')?.since, world.now - 100);
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), ['s1', 's2']);
  world.release('net', '1.1.0');
  world.settle();
  world.release('net', '1.2.0');
  world.settle();
  world.changeCluster('w1', { available: true, since: world.now });
  assert.equal(world.begin(), ['w1']);
  assert.is(world.spec('w1')?.version, '1.2.0');
});

test('a group of canaries that do not answer holds the later ones until one succeeds or a person approves', () => {
  const world = canaryFleet();
  for (const name of ['w1', 'w2']) world.changeCluster(name, { available: false, since: world.now });
  const silent = 'the cluster does not answer';
  const held = (first: string): string =>
    `Unproven: no cluster of group canary has it yet (w1: ${first}; w2: ${silent}): let one of them take it, or approve group canary`;
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), held(silent));
  world.changeCluster('w1', { paused: true });
  assert.is(world.why('s1'), held('the cluster is paused'));
  world.order('net', { groups: ['canary'], at: world.now - 60 });
  assert.equal(world.begin(), []);
  assert.match(
    world.why('s1') ?? '',
    /, or approve group canary; the approval of \S+Z is older than this rollout, .*: approve again$/,
  );
  world.change('net', { lapsed: { at: world.now, groups: ['canary'] } });
  assert.equal(world.begin(), []);
  assert.match(
    world.why('s1') ?? '',
    /, or approve group canary; the approval of \S+Z was for another content: approve again$/,
  );
  world.change('net', { lapsed: { at: world.now, groups: ['other'] } });
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), held('the cluster is paused'));
  world.now += 10;
  world.order('net', { groups: ['canary'] });
  assert.equal(world.begin(), ['s1', 's2']);
  world.report('Succeeded', 's1', 's2');
  world.release('net', '1.1.0');
  assert.equal(world.begin(), []);
  world.changeCluster('w2', { available: true, since: world.now });
  assert.equal(world.begin(), ['w2']);
  assert.is(world.why('s1'), 'Group: group canary is not done');
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), ['s1', 's2']);
});

test('a canary that goes offline has succeeded only if its success had lasted long enough', () => {
  const world = canaryFleet({ ...CANARY, minSuccessTime: '5m' });
  world.changeCluster('w1', { available: false, since: world.now });
  assert.equal(world.begin(), ['w2']);
  world.report('Succeeded', 'w2');
  world.now += 60;
  world.changeCluster('w2', { available: false, since: world.now });
  world.now += 600;
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Group: group canary is not done');
  world.changeCluster('w2', { available: true, since: world.now });
  world.now += 300;
  world.changeCluster('w2', { available: false, since: world.now });
  assert.equal(world.begin(), ['s1', 's2']);
});

test('canaries that are cut into several groups prove a version together', () => {
  const world = canaryFleet({ ...CANARY, groupSize: 1, groups: [ringGroup('canary')] });
  world.changeCluster('w1', { available: false });
  assert.equal(world.begin(), ['w2']);
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), ['s1', 's2']);
});

test('what ceases to answer in the middle of its attempt keeps its place until the deadline, and then has failed', () => {
  const world = canaryFleet();
  world.step();
  world.changeCluster('w1', { available: false, since: world.now });
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Group: group canary is not done');
  assert.equal(world.status('net')?.counts, { Unreachable: 1, Succeeded: 1, ToApply: 4 });
  assert.is(world.preview().recheckAfter, 1800);
  world.now += 1800;
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Stopped: group canary: 1 failed, and 0 may');
  world.changeCluster('w1', { available: true, since: world.now });
  assert.equal(world.begin(), []);
  world.report('Succeeded', 'w1');
  assert.equal(world.begin(), ['s1', 's2']);
});

test('an update that makes each cluster unreachable reaches only as many as are updated at once', () => {
  const times = { minSuccessTime: '10m', progressDeadline: '20m' };
  const rollout: Strategy = { type: 'Progressive', maxConcurrency: 1, maxFailures: 0, ...times };
  const world = canaryFleet(rollout);
  world.settle();
  world.release('net', '1.1.0');
  assert.equal(world.begin(), ['s1']);
  world.report('Succeeded', 's1');
  world.now += 300;
  world.changeCluster('s1', { available: false, since: world.now });
  world.now += 1199;
  assert.equal(world.begin(), []);
  assert.is(world.why('s2'), 'Batch: the batch is full');
  world.now += 1;
  assert.equal(world.begin(), []);
  assert.is(world.why('s2'), 'Stopped: the rest: 1 failed, and 0 may');
});

test('what could not be reported is not late, and what was reported before counts', () => {
  const rollout = { type: 'Progressive', maxConcurrency: 2, maxFailures: 0, onFailure: 'Rollback' } as const;
  const world = canaryFleet({ ...rollout, progressDeadline: '30m' });
  assert.equal(world.begin(), ['s1', 's2']);
  world.report('Succeeded', 's1');
  world.now += 2400;
  world.heardSince = world.now;
  assert.equal(world.begin(), ['s3']);
  assert.equal(world.status('net')?.counts, { Succeeded: 1, Progressing: 2, ToApply: 3 });
  world.now += 1800;
  assert.equal(world.begin(), []);
  assert.match(
    world.why('s4') ?? '',
    /^Stopped: it has gone back to what was known as good: .+ failed, and 0 may: s\d$/,
  );
});

test('a failure counts although its cluster ceases to answer later', () => {
  const world = canaryFleet({ type: 'Progressive', maxConcurrency: 1, maxFailures: 0 });
  assert.equal(world.begin(), ['s1']);
  world.report('Failed', 's1');
  world.now += 60;
  world.changeCluster('s1', { available: false, since: world.now });
  assert.equal(world.begin(), []);
  assert.is(world.why('s2'), 'Stopped: the rest: 1 failed, and 0 may');
});

test('a time far ahead of now, by the clock of a site, says nothing: soak, deadline and removal end', () => {
  const ahead = 1e9;
  const soaking = canaryFleet({ type: 'Progressive', maxConcurrency: 1, minSuccessTime: '5m' });
  soaking.changeCluster('s1', { since: soaking.now + ahead });
  assert.equal(soaking.begin(), ['s1']);
  soaking.report('Succeeded', 's1');
  soaking.now += 300;
  assert.equal(soaking.begin(), ['s2']);
  const late = canaryFleet({ type: 'Progressive', maxConcurrency: 1, maxFailures: 0, progressDeadline: '30m' });
  assert.equal(late.begin(), ['s1']);
  late.changeCluster('s1', { available: false, since: late.now + ahead });
  assert.equal(late.begin(), []);
  late.now += 1800;
  assert.equal(late.begin(), []);
  assert.is(late.why('s2'), 'Stopped: the rest: 1 failed, and 0 may');
  const removed = canaryFleet({ type: 'All' }, { remove: { timeout: '10m' } });
  removed.settle();
  removed.changeCluster('s1', { deleting: removed.now, available: false, since: removed.now + ahead });
  assert.equal(removed.step().drop, []);
  removed.now += 600;
  assert.equal(removed.step().drop, [{ cluster: 's1', addon: 'net', reason: 'ClusterGone' }]);
});

test('a time a little ahead counts as now: a soak lasts longer, and is not cut short', () => {
  const world = canaryFleet({ type: 'Progressive', maxConcurrency: 1, minSuccessTime: '5m' });
  world.changeCluster('s1', { since: world.now + 660 });
  assert.equal(world.begin(), ['s1']);
  world.report('Succeeded', 's1');
  world.now += 600;
  assert.equal(world.begin(), []);
  world.now += 360;
  assert.equal(world.begin(), ['s2']);
});

test.run();
