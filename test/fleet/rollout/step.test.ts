import { Memo } from '../../../src/fleet/rollout/content.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ring, ringGroup, TestFleet, CANARY, canaryFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/step');

test('canaries come first, then a quarter at a time, each after its soak (OS1)', () => {
  const rest = Array.from({ length: 8 }, (_, at) => `s${at + 1}`);
  const world = new TestFleet(
    [...ring('canary-west', 'w1', 'w2'), ...ring('canary-east', 'e1'), ...ring('shop', ...rest)],
    addon('net', {
      rollout: {
        type: 'Progressive',
        groups: [ringGroup('canary-west'), ringGroup('canary-east')],
        mandatoryDecisionGroups: [{ groupName: 'canary-west' }, { groupName: 'canary-east' }],
        maxConcurrency: '25%',
        minSuccessTime: '5m',
        progressDeadline: '10m',
        maxFailures: 2,
      },
    }),
  );
  assert.equal(world.begin(), ['w1', 'w2']);
  world.report('Succeeded', 'w1', 'w2');
  world.now += 299;
  assert.equal(world.begin(), []);
  assert.equal(world.status('net')?.batch, ['w1', 'w2']);
  assert.is(world.preview().recheckAfter, 1);
  world.now += 1;
  assert.equal(world.begin(), ['e1']);
  world.report('Succeeded', 'e1');
  world.now += 300;
  assert.equal(world.begin(), ['s1', 's2']);
  world.report('Succeeded', 's1');
  world.now += 300;
  assert.equal(world.begin(), ['s3']);
});

test('a failed canary stops the rollout, and each cluster says why it waits and since when', () => {
  const world = canaryFleet();
  world.step();
  const began = world.now;
  world.now += 60;
  world.report('Failed', 'w1');
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Stopped: group canary: 1 failed, and 0 may');
  assert.equal(world.status('net')?.counts, { Failed: 1, Succeeded: 1, ToApply: 4 });
  assert.is(world.status('net')?.waiting[0]?.since, began + 60);
  world.now += 60;
  assert.equal(world.begin(), []);
  assert.is(world.status('net')?.waiting[0]?.since, began + 60);
});

test('a failure within the budget frees its place', () => {
  const world = new TestFleet(
    ring('shop', 'a', 'b', 'c', 'd'),
    addon('net', { rollout: { type: 'Progressive', maxConcurrency: 2, maxFailures: 1 } }),
  );
  assert.equal(world.begin(), ['a', 'b']);
  world.report('Failed', 'a');
  assert.equal(world.begin(), ['c']);
  world.report('Failed', 'b');
  assert.equal(world.begin(), []);
  assert.is(world.why('d'), 'Stopped: the rest: 2 failed, and 1 may');
});

test('one broken cluster holds no other by default, and a second one stops what is new', () => {
  for (const onFailure of ['Stop', 'Rollback'] as const) {
    const rollout = { type: 'Progressive', maxConcurrency: 1, onFailure } as const;
    const world = new TestFleet(ring('shop', 'a', 'b', 'c', 'd'), addon('net', { rollout }));
    assert.equal(world.begin(), ['a']);
    world.report('Failed', 'a');
    assert.equal(world.begin(), ['b']);
    world.report('Failed', 'b');
    assert.equal(world.begin(), []);
    assert.match(world.why('c') ?? '', /^Stopped: .*the rest: 2 failed, and 1 may/);
  }
});

test('each failure of one or two clusters stops what follows by default, and so does one by the rules of others', () => {
  const stages = { type: 'ProgressivePerGroup', groups: [ringGroup('canary')] } as const;
  const one = { type: 'Progressive', maxConcurrency: 1 } as const;
  for (const [clusters, more] of [
    [ring('shop', 'a'), { rollout: one }],
    [ring('shop', 'a', 'b'), { rollout: one }],
    [[...ring('canary', 'a', 'b'), ...ring('shop', 'c', 'd', 'e')], { rollout: stages }],
    [ring('shop', 'a', 'b', 'c', 'd'), { rollout: one, compat: 'caaph' }],
    [ring('shop', 'a', 'b', 'c', 'd'), { rollout: one, compat: 'ocm' }],
  ] as const) {
    const world = new TestFleet(clusters, addon('net', more));
    assert.is(world.begin()[0], 'a');
    world.report('Failed', 'a');
    assert.equal(world.begin(), []);
    assert.match(world.status('net')?.stopped ?? '', /: 1 failed, and 0 may|more clusters have failed than may/);
  }
});

test('an attempt without an answer fails after 30 minutes', () => {
  const world = canaryFleet();
  world.step();
  assert.is(world.preview().recheckAfter, 1800);
  world.now += 1800;
  assert.equal(world.begin(), []);
  assert.equal(world.status('net')?.counts, { TimedOut: 2, ToApply: 4 });
});

test('a cluster that reports that it skips has no place, uses up no budget, and does not time out', () => {
  const world = canaryFleet();
  world.step();
  world.report('Skipped', 'w1');
  world.report('Succeeded', 'w2');
  world.now += 7200;
  assert.equal(world.begin(), ['s1', 's2']);
  assert.equal(world.status('net')?.counts, { Skipped: 1, Succeeded: 1, Progressing: 2, ToApply: 2 });
  world.report('Succeeded', 's1', 's2');
  world.release('net', '1.1.0');
  assert.equal(world.begin(), ['w1', 'w2']);
});

test('a restart renders nothing again while only facts have changed', () => {
  const world = canaryFleet({}, { valuesTemplate: 'nodes: {{ .Cluster.facts.nodes }}' });
  for (const { name } of world.clusters) world.changeCluster(name, { facts: { nodes: 3 } });
  world.settle();
  for (const { name } of world.clusters) world.changeCluster(name, { facts: { nodes: 4 } });
  world.memo = new Memo();
  assert.equal(world.begin(), []);
  world.changeCluster('s1', { kubernetes: 'v1.32.0' });
  assert.equal(world.begin(), ['s1']);
  assert.equal(world.spec('s1')?.values, { nodes: 4 });
});

test('a state of another revision does not count', () => {
  const world = canaryFleet({ type: 'Progressive', maxConcurrency: 1 });
  assert.equal(world.begin(), ['s1']);
  world.report('Succeeded', 's1');
  world.records = world.records.map((record) => ({ ...record, spec: { ...record.spec, revision: 2 } }));
  assert.equal(world.begin(), []);
  assert.equal(world.status('net')?.counts, { Progressing: 1, ToApply: 5 });
});

test('a removal needs no proof by canaries', () => {
  const world = canaryFleet({ ...CANARY, maxRemovals: '100%' });
  world.settle();
  for (const name of ['w1', 'w2']) world.changeCluster(name, { available: false, since: world.now });
  world.change('net', { deleting: true });
  assert.equal(world.begin(), ['Remove s1', 'Remove s2']);
});

test('a new version goes through the groups again, and a cluster under way changes its aim without another place', () => {
  const world = canaryFleet({ ...CANARY, maxConcurrency: 1 });
  assert.equal(world.begin(), ['w1']);
  world.release('net', '1.1.0');
  assert.equal(world.begin(), ['w1']);
  assert.is(world.spec('w1')?.revision, 2);
  assert.is(world.why('w2'), 'Batch: the batch is full');
});

test('a cluster that joins a group that is done comes last', () => {
  const world = canaryFleet();
  world.step();
  world.report('Succeeded', 'w1', 'w2');
  world.step();
  world.clusters.push(...ring('canary', 'w3'));
  world.report('Succeeded', 's1', 's2');
  assert.equal(world.begin(), ['s3', 's4']);
  world.report('Succeeded', 's3', 's4');
  assert.equal(world.begin(), ['w3']);
});

test('a group that needs approval waits for it, and approval is void after a change', () => {
  const world = canaryFleet({
    ...CANARY,
    groups: [ringGroup('canary'), ringGroup('shop')],
    approval: ['shop'],
    maxConcurrency: 4,
  });
  world.step();
  world.report('Succeeded', 'w1', 'w2');
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), "Approval: group shop waits for a person's approval");
  world.now += 5;
  world.order('net', { groups: ['shop'] });
  assert.equal(world.begin(), ['s1', 's2', 's3', 's4']);
  world.report('Succeeded', 's1', 's2', 's3', 's4');
  world.release('net', '1.1.0');
  assert.equal(world.begin(), ['w1', 'w2']);
  world.report('Succeeded', 'w1', 'w2');
  assert.equal(world.begin(), []);
});

test('a type that goes group by group has a budget for each group', () => {
  const world = new TestFleet(
    ring('shop', 'a', 'b', 'c', 'd', 'e', 'f'),
    addon('net', { rollout: { type: 'ProgressivePerGroup', groupSize: 2, maxFailures: '50%' } }),
  );
  assert.equal(world.begin(), ['a', 'b']);
  world.report('Succeeded', 'a');
  world.report('Failed', 'b');
  assert.equal(world.begin(), ['c', 'd']);
  world.report('Failed', 'c', 'd');
  assert.equal(world.begin(), []);
  assert.is(world.why('e'), 'Stopped: group 1: 2 failed, and 1 may');
});

test('what fails goes back to what was known as good, and nothing begins until the add-on changes', () => {
  const world = canaryFleet({ ...CANARY, onFailure: 'Rollback', minSuccessTime: '1m' });
  world.settle();
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['w1', 'w2']);
  world.report('Failed', 'w1');
  world.report('Succeeded', 'w2');
  assert.equal(world.begin(), ['w1', 'w2']);
  assert.equal(
    ['w1', 'w2', 's1'].map((name) => world.spec(name)?.version),
    ['1.0.0', '1.0.0', '1.0.0'],
  );
  assert.is(world.spec('w1')?.revision, 3);
  world.report('Succeeded', 'w1', 'w2');
  world.now += 3600;
  assert.equal(world.begin(), []);
  const why =
    'Stopped: it has gone back to what was known as good: group canary: 1 failed, and 0 may: w1: no such kind';
  assert.is(world.why('w1'), why);
  world.release('net', '2.0.1');
  assert.equal(world.begin(), ['w1', 'w2']);
});

test('what has lasted stays when a later cluster fails, and a person can still take all back', () => {
  const world = canaryFleet({ ...CANARY, maxFailures: 0, onFailure: 'Rollback' });
  world.settle();
  world.release('net', '2.0.0');
  world.step();
  world.report('Succeeded', 'w1', 'w2');
  world.step();
  world.report('Failed', 's1');
  assert.equal(world.begin(), ['s1', 's2']);
  assert.is(world.spec('w1')?.version, '2.0.0');
  world.now += 5;
  world.order('net', { rollback: world.now });
  world.report('Succeeded', 's1', 's2');
  assert.equal(world.begin(), ['w1', 'w2']);
  assert.is(world.spec('w1')?.version, '1.0.0');
});

test('a failure is tried again only when a person asks', () => {
  const world = canaryFleet();
  world.step();
  world.report('Failed', 'w1', 'w2');
  assert.equal(world.begin(), []);
  world.now += 10;
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['w1', 'w2']);
  assert.is(world.spec('w1')?.revision, 2);
  assert.equal(world.begin(), []);
});

test('an order to try again is not for what fails long after it', () => {
  const world = canaryFleet();
  world.settle();
  world.now += 10;
  world.order('net', { retry: world.now });
  world.now += 86_400;
  world.report('Failed', 'w1');
  assert.equal(world.begin(), []);
  world.order('net', { retry: world.now });
  assert.equal(world.begin(), ['w1']);
});

test('what has changed on the hub for one group is staged like a version (OS8)', () => {
  const world = canaryFleet();
  world.settle();
  const config = { groups: [{ selector: { matchLabels: { ring: 'shop' } }, values: { mtu: 1400 } }] };
  world.change('net', { config });
  assert.equal(world.begin(), ['w1', 'w2'].slice(2).concat(['s1', 's2']));
  assert.equal(world.spec('s1')?.values, { mtu: 1400 });
});

test('changed options reach what is installed (HS11), and names of other add-ons do not matter', () => {
  const world = canaryFleet({});
  world.settle();
  world.change('net', {
    source: { content: { package: 'net-1.0.0.tar.gz', options: { wait: true } }, version: '1.0.0' },
  });
  assert.is(world.begin().length, 6);
});

test('a paused add-on or cluster is left alone', () => {
  const world = canaryFleet({ type: 'Progressive' });
  world.changeCluster('w1', { paused: true });
  assert.equal(world.begin(), ['s1', 's2', 's3', 's4', 'w2']);
  assert.equal(world.status('net')?.counts, { Progressing: 5, Skipped: 1 });
  world.change('net', { paused: true });
  world.release('net', '1.1.0');
  assert.equal(world.begin(), []);
  assert.is(world.why('s1'), 'Paused: the add-on is paused');
});

test('an unknown group or an unreadable size holds everything, and is named', () => {
  const world = canaryFleet({ ...CANARY, mandatoryDecisionGroups: [{ groupName: 'canaries' }] });
  assert.equal(world.begin(), []);
  assert.is(world.why('w1'), 'Invalid: there is no group canaries');
  world.change('net', { rollout: { maxConcurrency: 'many' } });
  assert.equal(world.begin(), []);
  assert.match(world.why('w1') ?? '', /cannot read the size "many"/);
});

test('the names of a large batch, and its reasons to wait, are capped in the status only', () => {
  const names = Array.from({ length: 300 }, (_, at) => `c${at}`);
  const world = new TestFleet(
    ring('shop', ...names),
    addon('net', { rollout: { type: 'Progressive', maxConcurrency: 150 } }),
  );
  world.step();
  assert.is(world.status('net')?.batch.length, 100);
  assert.equal(world.status('net')?.reasons, { Batch: 150 });
  assert.is(world.status('net')?.waiting.length, 20);
  assert.is(world.waiting().length, 150);
});

test('a rollout that is made careful with a new version is careful at once, although all have what was before for a short time', () => {
  const world = canaryFleet({ type: 'All' });
  const names = ['s1', 's2', 's3', 's4', 'w1', 'w2'];
  assert.equal(world.begin(), names);
  world.report('Succeeded', ...names);
  assert.equal(world.begin(), []);
  world.now += 60;
  world.change('net', { rollout: { type: 'Progressive', maxConcurrency: 2, minSuccessTime: '1h' } });
  world.release('net', '2.0.0');
  assert.equal(world.begin(), ['s1', 's2']);
  assert.is(world.why('s3'), 'Batch: the batch is full');
  world.report('Succeeded', 's1', 's2');
  world.now += 3599;
  assert.equal(world.begin(), []);
  world.now += 1;
  assert.equal(world.begin(), ['s3', 's4']);
});

test('after a hub was restored, what is new has a higher revision than its clusters have obeyed, unless no number would be left', () => {
  const world = new TestFleet(ring('shop', 's1', 's2', 's3'), addon('net'));
  world.settle();
  const obeyed: Readonly<Record<string, number>> = { s1: 5, s2: Number.MAX_SAFE_INTEGER };
  world.records = world.records.map(({ status, ...record }) => {
    const revision = obeyed[record.cluster] ?? 1;
    return { ...record, ...(status && { status: { ...status, applied: { ...status.applied, revision } } }) };
  });
  assert.equal(world.begin(), []);
  world.release('net', '2.0.0');
  world.begin();
  assert.equal(
    ['s1', 's2', 's3'].map((name) => world.spec(name)?.revision),
    [6, 2, 2],
  );
});

test('names are in the order that people count in', () => {
  const world = new TestFleet(
    ring('shop', 'c10', 'c2', 'c1'),
    addon('net', { rollout: { type: 'Progressive', maxConcurrency: 2 } }),
  );
  assert.equal(world.begin(), ['c1', 'c2']);
});

test('maintenance windows of cluster and add-on both must be open', () => {
  const world = new TestFleet(
    [cluster('a', { windows: [{ cron: '0 22 * * *', duration: '4h' }] }), cluster('b')],
    addon('net'),
  );
  world.now = Date.UTC(2026, 0, 5, 21, 59, 30) / 1000;
  assert.equal(world.begin(), ['b']);
  assert.is(world.why('a'), 'Window: no maintenance window is open');
  assert.is(world.preview().recheckAfter, 30);
  world.now += 30;
  assert.equal(world.begin(), ['a']);
});

test.run();
