/** Mandatory groups in which no cluster takes what is rolled out. */
import type { Cluster, FleetAddon } from '../../../src/fleet/rollout/fleet.ts';
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, ring, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/proof');

const CANARY: Strategy = {
  type: 'Progressive',
  groups: [ringGroup('canary')],
  mandatoryDecisionGroups: [{ groupName: 'canary' }],
};
const CLUSTERS = [...ring('canary', 'w1', 'w2'), ...ring('shop', 's1', 's2')];
const fleet = (more: Partial<FleetAddon> = {}) => new TestFleet(CLUSTERS, addon('net', { rollout: CANARY, ...more }));

test('whatever holds all clusters of a mandatory group also holds the rest, and is named', () => {
  const template = { valuesTemplate: '{{ if eq .Cluster.labels.ring "canary" }}{{ fail "no site" }}{{ end }}' };
  const cases: readonly (readonly [Partial<Cluster>, Partial<FleetAddon>, string])[] = [
    [{ paused: true }, {}, 'the cluster is paused'],
    [{ installed: { 'addon:net': { owner: 'channel:stable' } } }, {}, 'it belongs to channel:stable'],
    [{ available: false }, {}, 'the cluster does not answer'],
    [{ windows: [{ cron: 'daily', duration: '1h' }] }, {}, 'cannot read the window: "daily" is not a minute'],
    [{}, template, 'cannot render the values: fail: no site'],
  ];
  for (const [more, own, why] of cases) {
    const world = fleet(own);
    for (const name of ['w1', 'w2']) world.changeCluster(name, more);
    assert.equal(world.begin(), [], why);
    const note = `no cluster of group canary has it yet (w1: ${why}; w2: ${why}): let one of them take it, or approve group canary`;
    assert.equal([world.why('s1'), world.status('net')?.asks], [`Unproven: ${note}`, note]);
    world.now += 10;
    world.order('net', { groups: ['canary'] });
    assert.equal(world.begin(), ['s1', 's2'], why);
  }
});

test('a canary that is free again proves what is rolled out, and until then nothing begins after its group', () => {
  const world = fleet();
  world.settle();
  for (const name of ['w1', 'w2']) world.changeCluster(name, { paused: true });
  world.release('net', '2.0.0');
  assert.equal(world.begin(), []);
  world.changeCluster('w2', { paused: false });
  assert.equal(world.begin(), ['w2']);
  assert.is(world.why('s1'), 'Group: group canary is not done');
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), ['s1', 's2']);
});

test('canaries that have what is rolled out prove it although they are paused since', () => {
  const world = fleet();
  world.step();
  world.report('Succeeded', 'w1', 'w2');
  for (const name of ['w1', 'w2']) world.changeCluster(name, { paused: true });
  assert.equal(world.begin(), ['s1', 's2']);
});

test('clusters that all report that they skip prove nothing', () => {
  const world = fleet();
  world.step();
  world.report('Skipped', 'w1', 'w2');
  assert.equal(world.begin(), []);
  assert.match(world.why('s1') ?? '', /^Unproven: no cluster of group canary has it yet \(w1: it skips it; w2: /);
});

test('a group of which no cluster is to have the add-on has nothing to prove', () => {
  const shops = { matchLabels: { ring: 'shop' } };
  assert.equal(fleet({ clusterSelector: shops }).begin(), ['s1', 's2']);
  const leaving = fleet();
  leaving.settle();
  leaving.change('net', { clusterSelector: shops, rollout: { ...CANARY, maxRemovals: '100%' } });
  leaving.release('net', '2.0.0');
  assert.equal(leaving.begin(), ['Remove w1', 'Remove w2']);
  leaving.report('Succeeded', 'w1', 'w2');
  assert.equal(leaving.begin(), ['s1', 's2']);
});

test('what goes does not wait for the proof of what comes', () => {
  const world = fleet({ clusterSelector: { matchExpressions: [{ key: 'ring', operator: 'Exists' }] } });
  world.settle();
  for (const name of ['w1', 'w2']) world.changeCluster(name, { paused: true });
  world.release('net', '2.0.0');
  world.changeCluster('s2', { labels: {} });
  assert.equal(world.begin(), ['Remove s2']);
  assert.match(world.why('s1') ?? '', /^Unproven: /);
});

test('of many clusters without proof a message has the first three, each with the beginning of a long reason', () => {
  const names = Array.from({ length: 9 }, (_, at) => `w${at + 1}`);
  const valuesTemplate = `{{ if eq .Cluster.labels.ring "canary" }}{{ fail "${'x'.repeat(900)}" }}{{ end }}`;
  const clusters = [...ring('canary', ...names), ...ring('shop', 's1')];
  const world = new TestFleet(clusters, addon('net', { rollout: CANARY, valuesTemplate }));
  const why = world.why('s1') ?? '';
  assert.match(
    why,
    /\(w1: cannot render .*…; w2: .*…; w3: .*…; 6 more\): let one of them take it, or approve group canary$/,
  );
  assert.ok(why.length < 500, why);
});

test('a mandatory group without a name is approved by its number, which the message has', () => {
  const rollout: Strategy = { ...CANARY, groups: [], mandatoryDecisionGroups: [{ groupIndex: 0 }], groupSize: 2 };
  const world = new TestFleet(CLUSTERS, addon('net', { rollout }));
  for (const name of ['s1', 's2']) world.changeCluster(name, { paused: true });
  assert.match(
    world.why('w1') ?? '',
    /^Unproven: no cluster of group 0 has it yet .*: let one of them take it, or approve group 0$/,
  );
  world.now += 10;
  world.order('net', { groups: ['1'] });
  assert.equal(world.begin(), []);
  world.order('net', { groups: ['0'] });
  assert.equal(world.begin(), ['w1', 'w2']);
});

test('a mandatory group with a name may stay unproven by its number, too', () => {
  const world = fleet({ rollout: { ...CANARY, mandatoryDecisionGroups: [{ groupIndex: 0 }] } });
  for (const name of ['w1', 'w2']) world.changeCluster(name, { paused: true });
  world.step();
  world.now += 10;
  world.order('net', { unproven: ['1'] });
  assert.equal(world.begin(), []);
  world.order('net', { unproven: ['0'] });
  assert.equal(world.begin(), ['s1', 's2']);
});

test('an approval that lets a mandatory group begin does not let the others follow it without its proof', () => {
  const world = fleet({ rollout: { ...CANARY, approval: ['canary'] } });
  for (const name of ['w1', 'w2']) world.changeCluster(name, { paused: true });
  world.step();
  world.now += 10;
  world.order('net', { groups: ['canary'] });
  assert.equal(world.begin(), []);
  assert.match(world.why('s1') ?? '', /^Unproven: .*: let one of them take it, or approve group canary as unproven$/);
  world.order('net', { groups: ['canary'], unproven: ['canary'] });
  assert.equal(world.begin(), ['s1', 's2']);
  const begun = fleet({ rollout: { ...CANARY, approval: ['canary'] } });
  begun.order('net', { unproven: ['canary'] });
  assert.equal(begun.begin(), []);
  assert.match(begun.why('w1') ?? '', /^Approval: group canary waits for a person's approval$/);
  begun.order('net', { groups: ['canary'] });
  assert.equal(begun.begin(), ['w1', 'w2']);
});

test.run();
