/** Successes that have not lasted yet, in a hub: what a site reports is not believed to be older than it was seen. */
import type { FleetAddonStatus } from '../../../src/fleet/rollout/fleet.ts';
import * as assert from '../../support/assert.ts';
import { CANARY, canaryFleet, type TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/soaking');

/** Canaries and shops of a hub, whose agents report by themselves. */
function soakingFleet(): TestFleet {
  const world = canaryFleet({ ...CANARY, minSuccessTime: '10m' });
  world.heardSince = 1;
  assert.equal(world.begin(), ['w1', 'w2']);
  return world;
}

test('a success that a site dates back lasts from when it was first seen, also after it had failed or was skipped', () => {
  for (const before of ['Progressing', 'Failed', 'Skipped', 'TimedOut'] as const) {
    const world = soakingFleet();
    const start = world.now;
    world.report(before, 'w1', 'w2');
    world.now += 1200;
    world.step();
    world.report('Succeeded', 'w1', 'w2');
    world.records = world.records.map((one) => ({
      ...one,
      ...(one.status && { status: { ...one.status, since: start } }),
    }));
    assert.equal(world.begin(), []);
    assert.equal(world.status('net')?.soaking, { w1: world.now, w2: world.now });
    assert.is(world.preview().recheckAfter, 600);
    world.now += 599;
    assert.equal(world.begin(), []);
    world.now += 1;
    assert.equal(world.begin(), ['s1', 's2']);
    assert.equal(world.status('net')?.soaking, { s1: 0, s2: 0 });
  }
});

test('a success that ends begins anew, and what has lasted writes nothing', () => {
  const world = soakingFleet();
  const start = world.now;
  world.report('Succeeded', 'w1', 'w2');
  world.step();
  world.now += 300;
  world.report('Failed', 'w2');
  world.step();
  assert.equal(world.status('net')?.soaking, { w1: start, w2: 0 });
  world.now += 900;
  world.report('Succeeded', 'w2');
  world.step();
  assert.equal(world.status('net')?.soaking, { w2: world.now });
  world.now += 600;
  assert.equal(world.begin(), ['s1', 's2']);
  world.settle();
  assert.is(world.status('net')?.soaking, undefined);
  world.now += 86_400;
  assert.equal(world.preview().status, []);
});

test('what had begun before its success was kept is as old as it says', () => {
  const world = soakingFleet();
  world.report('Succeeded', 'w1', 'w2');
  world.addons = world.addons.map(({ status, ...one }) => {
    const { soaking: _soaking, ...others }: Partial<FleetAddonStatus> = status ?? {};
    return { ...one, status: others as FleetAddonStatus };
  });
  world.now += 600;
  assert.equal(world.begin(), ['s1', 's2']);
});

test.run();
