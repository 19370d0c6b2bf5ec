import { Memo } from '../../../src/fleet/rollout/content.ts';
import * as assert from '../../support/assert.ts';
import { addon, ring, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/brake');

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

const DAY = 24 * 3600;

/** Names of clusters that lose the add-on, if one after the other is deselected. */
function removedOneByOne(world: TestFleet, names: readonly string[], seconds: number): readonly string[] {
  return names.flatMap((name) => {
    deselect(world, name);
    const begun = world.begin();
    world.report('Succeeded', ...names);
    world.now += seconds;
    // A controller that was restarted knows what the status says.
    world.memo = new Memo();
    return begun;
  });
}

test('removals one after the other count together while they are under way, and for a day', () => {
  const world = installed();
  assert.equal(removedOneByOne(world, NAMES, 12), ['Remove c1', 'Remove c2']);
  assert.is(world.why('c3'), 'Removals: 20 removals within 24h, and 2 may: approve 18');
  for (const name of NAMES.slice(3)) world.changeCluster(name, { labels: { ring: 'shop' } });
  assert.is(world.why('c3'), 'Removals: 3 removals within 24h, and 2 may: approve 1');
  world.now = 1_000_000 + 3600;
  const { recheckAfter = 0 } = world.preview();
  assert.equal(world.status('net')?.removed, [
    { at: world.now, begun: 1, cluster: 'c1' },
    { at: world.now + 12, begun: 1, cluster: 'c2' },
  ]);
  assert.is(recheckAfter, DAY);
  world.now += DAY - 1;
  assert.equal(world.begin(), []);
  world.now += 1;
  assert.equal(world.begin(), ['Remove c3']);
  world.now += DAY;
  world.step();
  assert.is(world.status('net')?.removed, undefined);
});

test('removals count together for the time that an add-on says, also over its changes', () => {
  const world = installed({ rollout: { maxRemovals: 1, removalsWithin: '10m' } });
  assert.equal(removedOneByOne(world, ['c1', 'c2'], 12), ['Remove c1']);
  world.release('net', '2.0.0');
  assert.ok(!world.begin().includes('Remove c2'));
  assert.is(world.why('c2'), 'Removals: 2 removals within 10m, and 1 may: approve 1');
  world.now += 600;
  assert.ok(world.begin().includes('Remove c2'));
  assert.equal(removedOneByOne(installed({ rollout: { removalsWithin: '0s' } }), ['c1', 'c2', 'c3'], 12), [
    'Remove c1',
    'Remove c2',
    'Remove c3',
  ]);
  const any = installed({ rollout: { maxRemovals: '100%' } });
  assert.is(removedOneByOne(any, NAMES, 12).length, 20);
});

test('an approval covers the removals that it names, which do not count later', () => {
  const world = installed();
  deselect(world, 'c1', 'c2', 'c3', 'c4');
  world.order('net', { removals: 4 });
  assert.is(world.begin().length, 4);
  world.report('Succeeded', 'c1', 'c2', 'c3', 'c4');
  world.step();
  assert.is(world.status('net')?.removed, undefined);
  assert.equal(removedOneByOne(world, ['c5', 'c6', 'c7'], 12), ['Remove c5', 'Remove c6']);
});

test('an approved removal whose order was not written needs no other approval', () => {
  const world = installed({ rollout: { maxRemovals: 1 } });
  deselect(world, 'c1', 'c2', 'c3');
  const at = world.now;
  world.order('net', { removals: 3, at });
  const records = world.records.filter(({ cluster }) => cluster !== 'c1');
  assert.equal(world.begin(), ['Remove c1', 'Remove c2', 'Remove c3']);
  // The controller has died after the order of the first.
  world.records = [...world.records.filter(({ cluster }) => cluster === 'c1'), ...records];
  world.memo = new Memo();
  world.now += 60;
  deselect(world, 'c4');
  assert.equal(world.begin(), []);
  assert.is(world.why('c2'), 'Removals: 4 removals at once, and 1 may: approve 3');
  world.changeCluster('c4', { labels: { ring: 'shop' } });
  assert.equal(world.begin(), ['Remove c2', 'Remove c3']);
  assert.equal(world.status('net')?.removals, { at, begun: 3, clusters: ['c2', 'c3'] });
  world.report('Succeeded', 'c1', 'c2', 'c3');
  world.step();
  assert.equal(world.status('net')?.removals, { at, begun: 3 });
  deselect(world, 'c4', 'c5');
  assert.equal(world.begin(), []);
});

test('what loses the add-on again counts once, and what has not lost it does not count', () => {
  const world = installed({ rollout: { maxRemovals: 1 } });
  assert.equal(removedOneByOne(world, ['c1'], 12), ['Remove c1']);
  world.changeCluster('c1', { labels: { ring: 'shop' } });
  world.settle();
  assert.equal(removedOneByOne(world, ['c1'], 12), ['Remove c1']);
  const refused = installed({ rollout: { maxRemovals: 1 } });
  const records = [...refused.records];
  deselect(refused, 'c1');
  assert.equal(refused.begin(), ['Remove c1']);
  refused.records = [...records];
  refused.now += 12;
  assert.equal(refused.begin(), ['Remove c1']);
  refused.records = [...records];
  refused.changeCluster('c1', { labels: { ring: 'shop' } });
  assert.equal(removedOneByOne(refused, ['c2'], 12), ['Remove c2']);
});

test('more removals than a status has room for count by their time', () => {
  const names = Array.from({ length: 400 }, (_, at) => `${'c'.repeat(40)}${at}`);
  const world = installed({ rollout: { maxRemovals: 300 } }, names);
  for (let at = 0; at < 300; at += 2) {
    deselect(world, ...names.slice(at, at + 2));
    assert.is(world.begin().length, 2);
    world.report('Succeeded', ...names);
    world.now += 60;
  }
  const { removed = [] } = world.status('net') ?? {};
  assert.ok(removed.length <= 100 && JSON.stringify(removed).length <= 8192);
  assert.is(
    removed.reduce((sum, { begun }) => sum + begun, 0),
    300,
  );
  deselect(world, names[300] ?? '');
  assert.equal(world.begin(), []);
  world.now += DAY;
  assert.equal(world.begin(), [`Remove ${names[300]}`]);
});

test('a status that others have written neither lifts the brake nor holds it for more than a day', () => {
  const far = 4e9;
  const bad: readonly unknown[] = [
    'none',
    { length: 0 },
    [null],
    [{ at: 'yesterday', begun: 0 }],
    [{ begun: 0 }],
    [{ at: far, begun: 3 }],
    [{ at: far, begun: -5 }],
    [{ at: far, begun: 1e300 }],
    [{ at: 1, begun: 1, cluster: 9 }],
    Array.from({ length: 1e5 }, () => ({ at: 0, begun: 1 })).concat({ at: far, begun: 9 }),
    Array.from({ length: 1e4 }, (_, at) => ({ at: far, begun: 1, cluster: `x${at}` })),
  ];
  for (const removed of bad) {
    const world = installed();
    const { status } = world.addons[0] ?? {};
    world.change('net', { status: { ...status, removed } as never });
    deselect(world, 'c1');
    assert.equal(world.begin(), []);
    assert.match(world.why('c1') ?? '', /^Removals: (?:\d+ removals|an unknown number of removals) within 24h, and/);
    assert.ok((world.status('net')?.removed ?? []).length <= 100);
    world.now += DAY;
    assert.equal(world.begin(), ['Remove c1']);
  }
});

test('a clock that is set back does not make the brake forget, or hold for longer than a day from then', () => {
  const world = installed();
  assert.equal(removedOneByOne(world, ['c1', 'c2'], 12), ['Remove c1', 'Remove c2']);
  world.now -= 10 * DAY;
  deselect(world, 'c3');
  assert.equal(world.begin(), []);
  world.now += DAY;
  assert.equal(world.begin(), ['Remove c3']);
});

test('what is to stay where it is no longer selected loses only its record, also on all clusters at once', () => {
  const world = installed({ remove: { onUnselect: 'Leave', onFailure: 'Block', timeout: '10m' } });
  deselect(world, ...NAMES);
  assert.is(world.begin().length, 20);
  assert.equal(world.spec('c1')?.remove, { onFailure: 'Leave', timeout: '10m' });
  assert.is(world.status('net')?.removed, undefined);
  world.changeCluster('c2', { labels: { ring: 'shop' } });
  assert.equal(world.begin(), ['c2']);
  world.report('Succeeded', 'c1');
  assert.equal(world.step().drop, [{ cluster: 'c1', addon: 'net', reason: 'Orphaned' }]);
  // An older agent does not read the order, and says nothing about it.
  world.now += 600;
  assert.equal(world.step().drop.length, 18);
  assert.equal(
    world.records.map(({ cluster }) => cluster),
    ['c2'],
  );
});

test('what is to stay where it is no longer selected leaves with its add-on, or its cluster', () => {
  const world = installed({ remove: { onUnselect: 'Leave', timeout: '10m' }, rollout: { maxRemovals: 2 } });
  world.changeCluster('c1', { labels: {}, deleting: world.now });
  assert.equal(world.begin(), ['Remove c1']);
  assert.equal(world.spec('c1')?.remove, { timeout: '10m' });
  deselect(world, 'c2');
  world.change('net', { deleting: true });
  assert.equal(world.begin(), []);
  assert.is(world.why('c2'), 'Removals: 20 removals at once, and 2 may: approve 19');
});

test('a removal that waits is undone when its cluster is selected again', () => {
  const world = installed();
  deselect(world, 'c1', 'c2', 'c3');
  assert.equal(world.begin(), []);
  world.changeCluster('c1', { labels: { ring: 'shop' } });
  assert.equal(world.begin(), ['Remove c2', 'Remove c3']);
  assert.is(world.spec('c1')?.revision, 1);
});

test.run();
