/** Add-ons that cannot be read for a while: what becomes of them where they are. */
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ring, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/frozen');

const PROBLEM = 'there is no Channel stable';
const CLUSTERS = [...ring('canary', 'w1', 'w2'), ...ring('shop', 's1', 's2')];
const CANARY: Strategy = {
  type: 'Progressive',
  groups: [ringGroup('canary')],
  mandatoryDecisionGroups: [{ groupName: 'canary' }],
};

/** What a controller that cannot read an add-on knows of it: no content, and no identity that this gives. */
function freeze(world: TestFleet, name: string): () => void {
  const { addons } = world;
  world.addons = addons.map((one) => {
    return one.name === name ? { ...one, identity: name, source: { content: {} }, problem: PROBLEM } : one;
  });
  return () => {
    world.addons = world.addons.map((one) => {
      const { identity, source } = addons.find((before) => before.name === one.name) ?? one;
      const { problem: _problem, ...others } = one;
      return one.name === name ? { ...others, identity, source } : one;
    });
  };
}

const remove = (world: TestFleet, name: string): void => {
  world.change(name, { deleting: true });
  world.order(name, { removals: 10 });
};

test('what cannot be read stays where it is, each cluster says why, and its rollout continues later', () => {
  const clusterSelector = { matchExpressions: [{ key: 'ring', operator: 'In', values: ['canary', 'shop'] }] } as const;
  const world = new TestFleet(CLUSTERS, addon('net', { rollout: CANARY, clusterSelector }));
  world.settle();
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['w1', 'w2']);
  const { revision, since } = world.status('net') ?? {};
  const thaw = freeze(world, 'net');
  world.now += 10;
  world.report('Succeeded', 'w1', 'w2');
  world.clusters.push(...ring('shop', 'late'), cluster('other'));
  world.changeCluster('s1', { labels: { ring: 'other' } });
  assert.equal(world.begin(), []);
  const status = world.status('net');
  assert.equal([status?.revision, status?.since, status?.counts], [revision, since, { Succeeded: 4, Skipped: 1 }]);
  assert.equal(
    status?.waiting.map(({ cluster: on, reason, message, since: from }) => [on, reason, message, from]),
    ['late', 's1', 's2', 'w1', 'w2'].map((on) => [on, 'Invalid', PROBLEM, world.now]),
  );
  assert.equal([world.step().status, world.preview().recheckAfter], [[], undefined]);
  thaw();
  assert.equal(world.begin(), ['late', 'Remove s1', 's2']);
  assert.equal([world.status('net')?.since, world.spec('w1')?.version], [since, '2.0.0']);
});

test('what was removed, and cannot be read when its cluster is selected again, waits there and has not succeeded', () => {
  const world = new TestFleet(CLUSTERS, addon('net', { clusterSelector: { matchLabels: { site: 'x' } } }));
  for (const { name, labels } of CLUSTERS) world.changeCluster(name, { labels: { ...labels, site: 'x' } });
  world.settle();
  world.changeCluster('w1', { labels: {} });
  assert.equal(world.begin(), ['Remove w1']);
  const thaw = freeze(world, 'net');
  world.changeCluster('w1', { labels: { site: 'x' } });
  assert.equal(world.begin(), []);
  assert.equal(world.status('net')?.counts, { Succeeded: 3, Removing: 1 });
  world.report('Succeeded', 'w1');
  assert.equal(world.begin(), []);
  assert.equal([world.status('net')?.counts, world.why('w1')], [{ Succeeded: 3, Skipped: 1 }, `Invalid: ${PROBLEM}`]);
  thaw();
  assert.equal(world.begin(), ['w1']);
});

test('a selector that changes while an add-on cannot be read removes nothing', () => {
  const world = new TestFleet(CLUSTERS, addon('net'));
  world.settle();
  freeze(world, 'net');
  world.change('net', { clusterSelector: { matchLabels: { ring: 'none' } } });
  assert.equal(world.begin(), []);
  assert.is(world.why('w1'), `Invalid: ${PROBLEM}`);
});

test('a cluster that is deleted loses what cannot be read before it goes', () => {
  const world = new TestFleet(CLUSTERS, addon('net'));
  world.settle();
  freeze(world, 'net');
  world.changeCluster('w1', { deleting: world.now });
  assert.equal(world.preview().left, []);
  assert.equal(world.begin(), ['Remove w1']);
  assert.is(world.spec('w1')?.identity, 'addon:net');
  world.report('Succeeded', 'w1');
  assert.equal(world.step().drop, [{ cluster: 'w1', addon: 'net', reason: 'Removed' }]);
  assert.equal(world.preview().left, ['w1']);
});

test('nothing goes back, and nothing is tried again, while an add-on cannot be read', () => {
  const world = new TestFleet(CLUSTERS, addon('net', { rollout: { ...CANARY, onFailure: 'Rollback' } }));
  world.settle();
  world.release('net', '2.0.0');
  world.step();
  const thaw = freeze(world, 'net');
  world.report('Failed', 'w1');
  assert.equal(world.begin(), []);
  assert.equal([world.status('net')?.rolledBack, world.status('net')?.counts['Failed']], [false, 1]);
  world.now += 10;
  world.order('net', { retry: world.now, rollback: world.now });
  assert.equal(world.begin(), []);
  world.order('net', { generation: 0 });
  thaw();
  assert.equal(world.begin(), ['w1', 'w2']);
  assert.equal([world.spec('w1')?.version, world.status('net')?.rolledBack], ['1.0.0', true]);
});

test('what an add-on needs stays while that add-on cannot be read, and is ready for it as it is', () => {
  const world = new TestFleet(CLUSTERS, addon('base'), addon('net', { dependsOn: ['base'] }));
  world.settle();
  const thaw = freeze(world, 'base');
  world.release('net', '2.0.0');
  assert.equal(world.begin('net'), ['s1', 's2', 'w1', 'w2']);
  thaw();
  freeze(world, 'net');
  remove(world, 'base');
  assert.equal(world.begin(), []);
  assert.is(world.why('w1', 'base'), 'Dependents: net depends on it');
});

test('no other add-on takes over what cannot be read, unless that is deleted', () => {
  const world = new TestFleet(CLUSTERS, addon('old', { identity: 'release:net' }));
  world.settle();
  world.addons.push(addon('new', { identity: 'release:net' }));
  freeze(world, 'old');
  assert.equal(world.begin(), []);
  assert.match(world.why('w1', 'new') ?? '', /^Owner: it belongs to fleet:old, /);
  remove(world, 'old');
  assert.is(world.why('w1', 'old'), 'HandOver: fleet:new is about to take it over');
  assert.equal(world.begin(), ['s1', 's2', 'w1', 'w2']);
  assert.equal(
    world.step().drop.map(({ cluster: on, addon: name, reason }) => `${on} ${name} ${reason}`),
    ['s1', 's2', 'w1', 'w2'].map((on) => `${on} old HandedOver`),
  );
});

test('nothing is removed where an add-on that cannot be read may be about to take it over', () => {
  const world = new TestFleet(CLUSTERS, addon('old', { identity: 'release:net' }));
  world.settle();
  const clusterSelector = { matchLabels: { ring: 'shop' } };
  world.addons.push(addon('new', { identity: 'release:net', clusterSelector }));
  const thaw = freeze(world, 'new');
  remove(world, 'old');
  assert.equal(world.begin(), ['Remove w1', 'Remove w2']);
  assert.is(
    world.why('s1', 'old'),
    'HandOver: fleet:new cannot be read, and may be what takes it over: correct new, or delete it',
  );
  thaw();
  assert.equal(world.begin(), ['s1', 's2']);
  assert.equal(
    world.step().drop.map(({ cluster: on, reason }) => `${on} ${reason}`),
    ['s1 HandedOver', 's2 HandedOver'],
  );
});

test('where the selector of an add-on cannot be read either, only what has its identity is not removed, on any cluster', () => {
  const world = new TestFleet(CLUSTERS, addon('old', { identity: 'release:net' }), addon('other'));
  world.settle();
  world.addons.push(addon('new', { identity: 'release:net', clusterSelector: undefined, problem: PROBLEM }));
  world.changeCluster('s1', { deleting: world.now });
  remove(world, 'old');
  remove(world, 'other');
  assert.equal(world.begin('old'), ['Remove s1']);
  assert.is(
    world.why('w1', 'old'),
    'HandOver: fleet:new cannot be read, and may be what takes it over: correct new, or delete it',
  );
  assert.equal([world.waiting('new'), world.waiting('other')], [[], []]);
});

test('what cannot be read but has another identity holds no removal, nor does what is deleted', () => {
  const world = new TestFleet(CLUSTERS, addon('old'));
  world.settle();
  world.addons.push(addon('other', { problem: PROBLEM }), addon('gone', { identity: 'gone', problem: PROBLEM }));
  world.change('gone', { deleting: true });
  remove(world, 'old');
  assert.equal(world.begin('old'), ['Remove s1', 'Remove s2', 'Remove w1', 'Remove w2']);
});

test('removals under an approval stay counted while neither the add-on nor its approval can be read', () => {
  const world = new TestFleet(
    CLUSTERS,
    addon('net', {
      rollout: { type: 'Progressive', maxConcurrency: 1 },
      clusterSelector: { matchExpressions: [{ key: 'ring', operator: 'Exists' }] },
    }),
  );
  world.settle();
  for (const name of ['w1', 'w2']) world.changeCluster(name, { labels: {} });
  const at = world.now;
  world.order('net', { removals: 2, at });
  assert.equal(world.begin(), ['Remove w1']);
  const thaw = freeze(world, 'net');
  world.order('net', { generation: 0 });
  world.step();
  assert.equal(world.status('net')?.removals, { at, begun: 1 });
  thaw();
  world.order('net', { removals: 2, at });
  world.report('Succeeded', 'w1');
  world.changeCluster('s1', { labels: {} });
  assert.equal(world.begin(), []);
  assert.is(world.why('w2'), 'Removals: 2 removals at once, and 1 may: approve 2');
});

test('an add-on that is deleted goes although its strategy cannot be followed', () => {
  const world = new TestFleet(CLUSTERS, addon('net'));
  world.settle();
  world.change('net', { rollout: { mandatoryDecisionGroups: [{ groupName: 'none' }] } });
  remove(world, 'net');
  assert.equal(world.begin(), ['Remove s1', 'Remove s2', 'Remove w1', 'Remove w2']);
});

test('a strategy that cannot be followed limits removals as far as it can be read', () => {
  const wrong = { mandatoryDecisionGroups: [{ groupName: 'none' }] };
  for (const [rollout, why] of [
    [{ maxRemovals: 1 }, 'Removals: 2 removals at once, and 1 may: approve 2'],
    [{ maxRemovals: 'many' }, 'Removals: 2 removals at once, and 1 may: approve 2'],
    [{ maxRemovals: 2, windows: [{ cron: '0 3 * * *', duration: '1h' }] }, 'Window: no maintenance window is open'],
    [{ maxRemovals: 2 }, undefined],
  ] as const) {
    const world = new TestFleet(CLUSTERS.slice(0, 2), addon('net'));
    world.settle();
    world.change('net', { rollout: { ...rollout, ...wrong }, deleting: true });
    assert.is(world.why('w1'), why);
    assert.equal(world.begin(), why === undefined ? ['Remove w1', 'Remove w2'] : []);
  }
});

test.run();
