/** Orders of people whose clock is ahead: each counts from its time on. */
import type { FleetAddonStatus, Orders } from '../../../src/fleet/rollout/fleet.ts';
import { approvalTime } from '../../../src/fleet/rollout/orders.ts';
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ring, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/orders');

const HOUR = 3600;
const PROGRESSIVE: Strategy = { type: 'Progressive', maxConcurrency: 1 };
const COUNTS =
  /of 1970-01-12T14:46:50Z counts from then on: the clock of the machine that runs the rollout is behind it/;

/** Orders that come in 10 seconds, for a time that is an hour later. */
function orderAhead(world: TestFleet, order: (at: number) => Partial<Orders>): void {
  world.now += 10;
  world.order('net', order(world.now + HOUR));
}

test('a retry for a later time tries nothing until then, says so, and then tries once', () => {
  const world = new TestFleet(ring('shop', 'a', 'b'), addon('net', { rollout: PROGRESSIVE }));
  assert.equal(world.begin(), ['a']);
  world.report('Failed', 'a');
  orderAhead(world, (at) => ({ at, retry: at }));
  assert.equal(world.begin(), []);
  assert.match(world.why('a') ?? '', /^Order: the order to retry of /);
  assert.match(world.why('a') ?? '', COUNTS);
  assert.match(world.status('net')?.asks ?? '', COUNTS);
  assert.is(world.why('b'), 'Stopped: the rest: 1 failed, and 0 may');
  assert.equal(world.status('net')?.counts, { Failed: 1, ToApply: 1 });
  assert.is(world.preview().recheckAfter, HOUR - 1);
  world.now += HOUR - 2;
  assert.equal(world.begin(), []);
  world.now += 1;
  assert.equal(world.begin(), ['a']);
  world.now += 60;
  world.report('Failed', 'a');
  assert.equal(world.begin(), []);
  assert.equal([world.why('a'), world.preview().recheckAfter], [undefined, undefined]);
});

test('an approval is later than the one before and than the one that was followed, unless their clock was far ahead', () => {
  const now = 1_000_000;
  const times = [[], [now - 1, undefined], [now, now - 9], [now, now + 1], [now + HOUR, now], [now + HOUR]];
  assert.equal(
    times.map((others) => approvalTime(now, others) - now),
    [0, 0, 1, 2, 1, 0],
  );
});

test('orders count although the rollout began by a clock that was ahead and was corrected', () => {
  const world = new TestFleet(ring('shop', 'a'), addon('net', { rollout: PROGRESSIVE }));
  world.now += 24 * HOUR;
  world.step();
  world.now -= 24 * HOUR;
  world.report('Failed', 'a');
  world.step();
  for (const round of [1, 2]) {
    world.now += 10;
    world.order('net', { retry: world.now });
    assert.equal(world.begin(), ['a'], String(round));
    world.report('Failed', 'a');
  }
});

test('an order of this second also tries again what has failed in it', () => {
  const world = new TestFleet(ring('shop', 'a'), addon('net', { rollout: PROGRESSIVE }));
  world.step();
  world.report('Failed', 'a');
  world.order('net', { retry: world.now + 1 });
  assert.equal(world.begin(), ['a']);
});

test('an approval for a later time lets nothing begin until then, and says so', () => {
  const groups = [ringGroup('shop')];
  const rollout: Strategy = { ...PROGRESSIVE, groups, approval: ['shop'], maxConcurrency: 3 };
  const world = new TestFleet(ring('shop', 'a', 'b', 'c'), addon('net', { rollout }));
  world.step();
  orderAhead(world, (at) => ({ at, groups: ['shop'] }));
  assert.equal(world.begin(), []);
  assert.match(world.why('a') ?? '', /^Approval: group shop waits for a person's approval; the approval of /);
  assert.match(world.why('a') ?? '', COUNTS);
  assert.is(world.preview().recheckAfter, HOUR - 1);
  world.now += HOUR - 1;
  assert.equal(world.begin(), ['a', 'b', 'c']);
});

test('an approval of removals, or of lower versions, for a later time is not for what comes before it', () => {
  const world = new TestFleet(
    ring('shop', 'a', 'b', 'c'),
    addon('net', { clusterSelector: ringGroup('shop').selector }),
  );
  world.settle();
  orderAhead(world, (at) => ({ at, removals: 3 }));
  for (const name of ['a', 'b', 'c']) world.changeCluster(name, { labels: {} });
  assert.equal(world.begin(), []);
  assert.match(
    world.why('a') ?? '',
    /^Removals: 3 removals at once, and 1 may: approve 3; the approval of \S+ counts from/,
  );
  world.now += HOUR;
  assert.equal(world.begin(), ['Remove a', 'Remove b', 'Remove c']);

  const lower = new TestFleet([cluster('a')], addon('net'));
  lower.settle();
  lower.release('net', '0.9.0');
  lower.step();
  orderAhead(lower, (downgradeAt) => ({ downgrade: true, downgradeAt }));
  assert.equal(lower.begin(), []);
  assert.match(
    lower.why('a') ?? '',
    /^Downgrade: .*: approve the downgrade if it is meant; the approval of \S+ counts from/,
  );
  lower.now += HOUR;
  assert.equal(lower.begin(), ['a']);
});

/** A rollout that began at 13:46:40, in which b has begun 1000 s later, and has failed. */
function failedLater(): TestFleet {
  const world = new TestFleet(ring('shop', 'a', 'b'), addon('net', { rollout: PROGRESSIVE }));
  world.step();
  world.report('Succeeded', 'a');
  world.now += 1000;
  world.step();
  world.report('Failed', 'b');
  world.now += 600;
  world.step();
  return world;
}

test('an order to retry by a clock that is behind what has failed says that it has no effect, until the next order', () => {
  const world = failedLater();
  const at = world.now - 1100;
  world.order('net', { retry: at, retryGiven: at - 60 });
  const why =
    'the order to retry of 1970-01-12T13:54:00Z has no effect here: what has failed is of 1970-01-12T14:03:20Z, which is not before it: order it again, by a clock that is right';
  for (const round of [1, 2, 3]) {
    assert.equal(world.begin(), [], String(round));
    assert.equal([world.why('b'), world.status('net')?.asks], [`Order: ${why}`, why]);
    world.now += 60;
  }
  assert.equal(world.step().status, []);
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['b']);
  world.now += 60;
  world.report('Failed', 'b');
  assert.equal(world.begin(), []);
  assert.equal([world.why('b'), world.status('net')?.asks], [undefined, undefined]);
});

test('an order to retry that an earlier version has followed, and did not store, is not called new', () => {
  for (const rollout of [PROGRESSIVE, {}] as const) {
    const world = new TestFleet(ring('shop', 'a', 'b'), addon('net', { rollout }));
    world.step();
    world.report('Failed', 'a');
    world.now += 60;
    world.order('net', { retry: world.now });
    assert.equal(world.begin(), ['a']);
    world.now += 60;
    world.report('Failed', 'a');
    world.step();
    world.now += HOUR;
    for (const round of [1, 2]) {
      const { retry: _, ...status } = world.status('net') as FleetAddonStatus;
      world.change('net', { status });
      world.step();
      assert.equal([world.why('a'), world.status('net')?.asks], [undefined, undefined], String(round));
      assert.is(world.status('net')?.retry?.seen, world.status('net')?.retry?.at, String(round));
      world.now += 60;
    }
  }
});

test('an order to retry says nothing about what fails after it has been seen', () => {
  const world = new TestFleet(ring('shop', 'a', 'b'), addon('net', { rollout: { ...PROGRESSIVE, maxFailures: 2 } }));
  world.step();
  world.report('Failed', 'a');
  world.now += 60;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['a']);
  world.report('Succeeded', 'a');
  world.now += 60;
  assert.equal(world.begin(), ['b']);
  world.report('Failed', 'b');
  world.now += 60;
  world.step();
  assert.is(world.why('b'), undefined);
});

test('orders that are older than the rollout, or for another content, say that they have no effect', () => {
  const world = failedLater();
  const at = world.now - 2000;
  world.order('net', { at, retry: at, rollback: at });
  assert.equal(world.begin(), []);
  const old = `it is older than this rollout, which began at 1970-01-12T13:46:40Z: order it again, by a clock that is right`;
  const retry = `the order to retry of 1970-01-12T13:40:00Z has no effect: ${old}`;
  const back = `the order to go back of 1970-01-12T13:40:00Z has no effect: ${old}`;
  assert.equal([world.why('b'), world.status('net')?.asks], [`Order: ${retry}`, `${retry}; ${back}`]);
  assert.is(world.status('net')?.rolledBack, false);

  const earlier = world.now - 10_000;
  world.order('net', { at: earlier, retry: earlier, rollback: earlier });
  assert.equal(world.begin(), []);
  assert.equal([world.why('b'), world.status('net')?.asks], [undefined, undefined], 'about an earlier content');

  const other = failedLater();
  other.addons = other.addons.map((one) => ({ ...one, lapsed: { at: other.now, retry: other.now } }));
  assert.equal(other.begin(), []);
  assert.match(
    other.why('b') ?? '',
    /^Order: the order to retry of \S+ has no effect: it was for another content: order/,
  );
  other.addons = other.addons.map((one) => ({ ...one, lapsed: { at, retry: at, rollback: at } }));
  other.step();
  assert.equal([other.why('b'), other.status('net')?.asks], [undefined, undefined]);
});

test('going back for a later time begins then, and until then the add-on says so, not each of its clusters', () => {
  const world = new TestFleet(ring('shop', 'a', 'b'), addon('net'));
  world.settle();
  world.release('net', '2.0.0');
  world.settle();
  orderAhead(world, (at) => ({ at, rollback: at }));
  assert.equal(world.begin(), []);
  assert.match(world.status('net')?.asks ?? '', /^the order to go back of \S+ counts from then on: the clock/);
  const { rolledBack, reasons, waiting } = world.status('net') ?? {};
  assert.equal([rolledBack, reasons, waiting], [false, {}, []]);
  world.now += HOUR;
  assert.equal(world.begin(), ['a', 'b']);
  assert.is(world.spec('a')?.version, '1.0.0');
});

test('an approval of lower versions also counts for what began after the first approval of a content', () => {
  const world = new TestFleet([cluster('a')], addon('net'));
  world.settle();
  const at = world.now;
  world.now += 100;
  world.records = world.records.map((record) => {
    return { ...record, spec: { ...record.spec, version: '3.0.0', startedAt: world.now } };
  });
  world.release('net', '2.0.0');
  world.step();
  const since = world.status('net')?.since ?? 0;
  assert.is(since, at + 100);
  world.records = world.records.map((record) => ({ ...record, spec: { ...record.spec, startedAt: since + 50 } }));
  world.now += 60;
  world.order('net', { at: since, downgrade: true });
  assert.equal(world.begin(), []);
  assert.match(world.why('a') ?? '', /is older than what is installed: approve again$/);
  world.order('net', { at: since, downgrade: true, downgradeAt: world.now });
  assert.equal(world.begin(), ['a']);
});

test.run();
