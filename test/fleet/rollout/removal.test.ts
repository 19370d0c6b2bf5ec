import { step } from '../../../src/fleet/rollout/step.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ring, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/removal');

const NAMES = Array.from({ length: 20 }, (_, at) => `c${at + 1}`);
const SHOP = { matchLabels: { ring: 'shop' } };

function installed(more = {}, names: readonly string[] = NAMES): TestFleet {
  const world = new TestFleet(ring('shop', ...names), addon('net', { clusterSelector: SHOP, ...more }));
  world.settle();
  return world;
}

function deselect(world: TestFleet, ...names: readonly string[]): void {
  for (const name of names) world.changeCluster(name, { labels: {} });
}

test('a cluster that is no longer selected loses the add-on, and then its record', () => {
  const world = installed();
  deselect(world, 'c3');
  assert.equal(world.begin(), ['Remove c3']);
  assert.is(world.spec('c3')?.revision, 2);
  assert.equal(world.step().drop, []);
  world.report('Succeeded', 'c3');
  assert.equal(world.step().drop, [{ cluster: 'c3', addon: 'net', reason: 'Removed' }]);
  assert.equal(world.preview().put, []);
});

test('a removal that says what it has left is not called one that removed it', () => {
  const world = installed();
  deselect(world, 'c3');
  world.begin();
  world.report('Succeeded', 'c3');
  world.records = world.records.map((one) => {
    return one.cluster === 'c3' && one.status ? { ...one, status: { ...one.status, reason: 'Orphaned' } } : one;
  });
  assert.equal(world.step().drop, [{ cluster: 'c3', addon: 'net', reason: 'Orphaned' }]);
});

test('more removals at once than a tenth wait for the approval of exactly so many', () => {
  const world = installed({ rollout: { type: 'Progressive', maxConcurrency: 2 } });
  deselect(world, 'c1', 'c2', 'c3');
  assert.equal(world.begin(), []);
  assert.is(world.why('c1'), 'Removals: 3 removals at once, and 2 may: approve 3');
  world.order('net', { removals: 3, at: 1 });
  assert.match(
    world.why('c1') ?? '',
    /: approve 3; the approval of 1970-01-01T00:00:01Z is older than .*: approve again$/,
  );
  world.now += 10;
  world.order('net', { removals: 3 });
  assert.equal(world.begin(), ['Remove c1', 'Remove c2']);
  world.report('Succeeded', 'c1', 'c2');
  deselect(world, 'c4', 'c5', 'c6');
  assert.equal(world.begin(), []);
  assert.is(world.why('c3'), 'Removals: 4 removals at once, and 2 may: approve 4');
  world.changeCluster('c4', { labels: { ring: 'shop' } });
  world.changeCluster('c5', { labels: { ring: 'shop' } });
  world.changeCluster('c6', { labels: { ring: 'shop' } });
  assert.equal(world.begin(), ['Remove c3']);
});

test('a list that failed, is partial or is empty deletes nothing', () => {
  const world = installed({ rollout: { maxRemovals: '100%' } });
  const { clusters } = world;
  world.complete = false;
  world.clusters = [];
  assert.equal(world.preview(), { put: [], drop: [], status: [], released: [], left: [], detached: [] });
  world.complete = true;
  assert.equal(world.preview().drop, []);
  // All are known to have gone: then they are no list that failed.
  assert.is(step({ ...world.observed(), emptied: true }, world.now).drop.length, 20);
  world.clusters = clusters;
  world.addons = [];
  assert.equal(world.preview().put, []);
  assert.is(world.preview().detached.length, 20);
});

test('records of clusters that are gone are dropped, but not many at once', () => {
  const world = installed();
  world.clusters = world.clusters.slice(0, 10);
  assert.equal(world.step().drop, []);
  assert.is(world.why('c11'), 'Removals: 10 removals at once, and 2 may: approve 10');
  world.now += 10;
  world.order('net', { removals: 10 });
  assert.is(world.step().drop.length, 10);
});

test('a deleted cluster has left when the removals of its add-ons are over, and gets no other', () => {
  const world = installed();
  world.addons.push(addon('late', { clusterSelector: SHOP }));
  world.changeCluster('c3', { deleting: world.now });
  assert.ok(!world.begin('late').includes('c3'));
  assert.is(world.spec('c3', 'net')?.action, 'Remove');
  assert.equal(world.step().left, []);
  world.report('Failed', 'c3');
  assert.equal(world.step().drop, []);
  world.change('net', { remove: { onFailure: 'Orphan' } });
  assert.equal(world.step().drop, [{ cluster: 'c3', addon: 'net', reason: 'Orphaned' }]);
  assert.equal(world.step().left, ['c3']);
});

test('a deleted cluster waits for no group, approval or failure of a rollout, and takes no place in it', () => {
  const world = new TestFleet([...ring('canary', 'w'), ...ring('shop', 'a', 'b', 'c')], addon('net'));
  world.settle();
  const mandatoryDecisionGroups = [{ groupName: 'canary' }];
  const groups = ['canary', 'shop'].map(ringGroup);
  const rollout = {
    type: 'Progressive',
    groups,
    mandatoryDecisionGroups,
    approval: ['shop'],
    maxConcurrency: 1,
  } as const;
  world.change('net', { rollout });
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['w']);
  world.report('Failed', 'w');
  world.step();
  world.changeCluster('a', { deleting: world.now });
  assert.equal(world.begin(), ['Remove a']);
  world.release('net', '3.0.0');
  assert.equal(world.begin(), ['w']);
  world.report('Succeeded', 'w');
  world.now += 10;
  world.order('net', { groups: ['shop'] });
  assert.equal(world.begin(), ['b']);
  world.report('Failed', 'a');
  world.report('Succeeded', 'b');
  assert.equal(world.begin(), ['c']);
  assert.is(world.status('net')?.stopped, undefined);
});

test('a deleted cluster that does not answer is gone after the time of a removal, also one that blocks', () => {
  const world = installed({ remove: { timeout: '10m' } });
  world.changeCluster('c3', { deleting: world.now, available: false, since: world.now - 5000 });
  assert.equal(world.begin(), []);
  assert.is(world.preview().recheckAfter, 600);
  world.now += 599;
  assert.equal(world.step().drop, []);
  world.now += 1;
  assert.equal(world.step().drop, [{ cluster: 'c3', addon: 'net', reason: 'ClusterGone' }]);
  assert.equal(world.step().left, ['c3']);
});

test('what installs once stays on a deleted cluster, and a vanished add-on does not hold it', () => {
  const world = installed({ mode: 'InstallOnce' });
  world.changeCluster('c3', { deleting: world.now });
  assert.equal(world.step().drop, [{ cluster: 'c3', addon: 'net', reason: 'Orphaned' }]);
  world.changeCluster('c4', { deleting: world.now });
  world.addons = [addon('other')];
  assert.equal(world.step().left, ['c3', 'c4']);
});

test('a deleted add-on leaves its clusters behind the brake, and is released when all are done (HS10)', () => {
  const world = installed({ rollout: { maxRemovals: 2 } }, ['a', 'b']);
  world.change('net', { deleting: true });
  assert.equal(world.begin(), ['Remove a', 'Remove b']);
  assert.equal(world.step().released, []);
  world.report('Succeeded', 'a', 'b');
  assert.equal(world.step().released, ['net']);
  assert.equal([world.addons, world.records], [[], []]);
});

test('a removal goes through groups, places and the budget of failures like an installation', () => {
  const rollout = {
    type: 'Progressive',
    groups: [ringGroup('canary')],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
    maxRemovals: '100%',
  } as const;
  const world = new TestFleet([...ring('canary', 'w'), ...ring('shop', 'a', 'b')], addon('net', { rollout }));
  world.settle();
  world.change('net', { deleting: true });
  assert.equal(world.begin(), ['Remove w']);
  assert.is(world.why('a'), 'Group: group canary is not done');
  world.report('Failed', 'w');
  assert.equal(world.begin(), []);
  assert.is(world.why('a'), 'Stopped: group canary: 1 failed, and 0 may');
});

test('a removal that fails stays with its reason, or its record goes, as the policy says (OS4)', () => {
  for (const onFailure of ['Block', 'Skip', 'Orphan'] as const) {
    const world = installed({ remove: { onFailure, timeout: '10m' } }, ['a', 'b', 'c']);
    deselect(world, 'a');
    world.step();
    assert.equal(world.spec('a')?.remove, { onFailure, timeout: '10m' });
    assert.is(world.preview().recheckAfter, 600);
    world.now += 600;
    const { drop } = world.step();
    assert.equal(drop, onFailure === 'Block' ? [] : [{ cluster: 'a', addon: 'net', reason: 'Orphaned' }]);
    assert.is(world.status('net')?.counts.TimedOut, onFailure === 'Block' ? 1 : undefined);
  }
});

test('a removal that failed is tried again once for each order to retry', () => {
  const world = installed();
  deselect(world, 'c3');
  assert.equal(world.begin(), ['Remove c3']);
  for (const revision of [3, 4]) {
    world.report('Failed', 'c3');
    world.now += 10;
    assert.equal(world.begin(), []);
    world.order('net', { retry: world.now + 1 });
    assert.equal(world.begin(), ['Remove c3']);
    assert.is(world.spec('c3')?.revision, revision);
    assert.equal(world.begin(), []);
    world.now += 10;
  }
});

test('the removal of an earlier identity that failed is tried again before the later one is installed', () => {
  const world = installed({}, ['a']);
  world.change('net', { identity: 'release:default/net' });
  world.step();
  world.report('Failed', 'a');
  assert.equal(world.begin(), []);
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['Remove a']);
  assert.is(world.spec('a')?.identity, 'addon:net');
  world.report('Succeeded', 'a');
  assert.equal(world.begin(), ['a']);
});

test('removals that are tried again need no other approval, and count as under way', () => {
  const world = installed();
  deselect(world, 'c1', 'c2', 'c3');
  const at = world.now;
  world.order('net', { removals: 3, at });
  assert.equal(world.begin(), ['Remove c1', 'Remove c2', 'Remove c3']);
  world.report('Failed', 'c1', 'c2', 'c3');
  world.now += 10;
  world.order('net', { removals: 3, at, retry: world.now });
  deselect(world, 'c4');
  assert.equal(world.begin(), ['Remove c1', 'Remove c2', 'Remove c3']);
  assert.is(world.why('c4'), 'Removals: 4 removals at once, and 2 may: approve 1');
  assert.equal(world.status('net')?.removals, { at, begun: 3 });
});

test('what is selected again while it is removed is installed again', () => {
  const world = installed();
  deselect(world, 'c3');
  world.step();
  world.changeCluster('c3', { labels: { ring: 'shop' } });
  assert.equal(world.begin(), ['c3']);
  assert.is(world.spec('c3')?.revision, 3);
});

test('another identity is removed first and then installed, which the brake counts', () => {
  const world = installed({}, ['a']);
  world.change('net', { identity: 'release:default/net' });
  assert.equal(world.begin(), ['Remove a']);
  assert.is(world.spec('a')?.identity, 'addon:net');
  world.report('Succeeded', 'a');
  assert.equal(world.begin(), ['a']);
  assert.is(world.spec('a')?.identity, 'release:default/net');
  const many = installed();
  many.change('net', { identity: 'release:default/net' });
  assert.equal(many.begin(), []);
});

test('what installs once is neither changed nor removed, and its record goes with its add-on', () => {
  const world = installed({ mode: 'InstallOnce' }, ['a', 'b']);
  world.release('net', '2.0.0');
  deselect(world, 'a');
  assert.equal(world.begin(), []);
  world.change('net', { deleting: true });
  const { drop, released } = world.step();
  assert.equal(
    drop.map(({ reason }) => reason),
    ['Orphaned', 'Orphaned'],
  );
  assert.equal(released, ['net']);
});

test('the same identity under another add-on is handed over, and never removed', () => {
  const world = installed({ identity: 'release:default/net' }, ['a']);
  world.change('net', { clusterSelector: { matchLabels: { ring: 'none' } } });
  world.addons.push(addon('web', { identity: 'release:default/net', clusterSelector: SHOP }));
  assert.is(world.why('a', 'net'), 'HandOver: fleet:web is about to take it over');
  const first = world.step();
  assert.equal(
    first.put.map((put) => [put.addon, put.spec.action, put.spec.revision]),
    [['web', 'Install', 2]],
  );
  assert.equal(first.drop, []);
  assert.equal(world.step().drop, [{ cluster: 'a', addon: 'net', reason: 'HandedOver' }]);
});

test('add-ons that depend on each other do not hold the removal of each other', () => {
  const world = new TestFleet([cluster('a')], addon('base'), addon('app', { dependsOn: ['base'] }));
  world.settle();
  world.change('base', { dependsOn: ['app'], deleting: true });
  world.change('app', { deleting: true });
  assert.equal(world.begin(), ['Remove a', 'Remove a']);
});

test('an add-on stays as long as another one that depends on it is there', () => {
  const world = new TestFleet([cluster('a')], addon('base'), addon('app', { dependsOn: ['base'] }));
  world.settle();
  world.change('base', { deleting: true });
  assert.equal(world.begin(), []);
  assert.is(world.why('a', 'base'), 'Dependents: app depends on it');
  world.change('app', { deleting: true });
  assert.equal(world.begin(), ['Remove a']);
  world.report('Succeeded', 'a');
  world.step();
  assert.equal(world.begin('base'), ['Remove a']);
});

test('what is to be replaced by another identity stays where there is nothing to put in its place', () => {
  const world = new TestFleet([cluster('a'), cluster('b')], addon('net', { rollout: { maxRemovals: 2 } }));
  world.settle();
  const valuesTemplate = '{{ if eq .Cluster.name "a" }}{{ fail "no site" }}{{ end }}';
  world.change('net', { identity: 'other', valuesTemplate });
  world.settle();
  assert.match(world.why('a') ?? '', 'no site');
  assert.is(world.spec('a')?.action, 'Install');
  assert.is(world.spec('b')?.identity, 'other');
});

test.run();
