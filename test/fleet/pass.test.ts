/** What a pass decides from records, clocks and the state. */
import type { AddonRecord } from '../../src/cluster/channel/record.ts';
import { observedOf } from '../../src/fleet/observe.ts';
import type { Look } from '../../src/fleet/fleet.ts';
import { beginPass, decide, endPass, revisionsOf, type Ended } from '../../src/fleet/pass.ts';
import { planFleet } from '../../src/fleet/fleet-plan.ts';
import { readFleet } from '../../src/fleet/read.ts';
import {
  isPresent,
  keep,
  NEW_ADDON,
  NO_ORDERS,
  NO_STATE,
  withLooks,
  type FleetState,
  type GivenOrder,
} from '../../src/fleet/state.ts';
import { observeAgain } from '../../src/fleet/run/observed-fleet.ts';
import type { ClusterAddonSpec, Observed } from '../../src/fleet/rollout/fleet.ts';
import * as assert from '../support/assert.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/pass');
const NOW = 1_800_000_000;
const HOUR = 3600;

/** A fleet of one cluster that has this record of its add-on, whose content is the present one. */
function observed(
  state?: AddonRecord['state'],
  since = NOW,
  order: GivenOrder = {},
  removing: Record<string, number> = {},
) {
  const rollout = { type: 'Progressive', minSuccessTime: '10m' };
  const all = documents(cluster('paris', { env: 'prod' }), addon('web', { rollout }));
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text: all }]);
  const see = (records: readonly AddonRecord[], orders: Readonly<Record<string, GivenOrder>>) => {
    const facts = { annotations: new Map(), installer: new Set<string>(), records: new Map() };
    for (const one of records) facts.records.set(one.addon, one);
    const look = { server: '', kubernetes: 'v1.31.2', facts, warnings: [] };
    const kept = { ...NO_STATE, addons: { web: { ...NEW_ADDON, removing } } };
    const known = { now: NOW, state: kept, orders: { ...NO_ORDERS, addons: orders } };
    return observedOf(fleet, new Map([['paris', look]]), () => 'a', known);
  };
  const first = see([], {});
  const revision = revisionsOf(fleet, first, () => 'a').get('web');
  const spec: ClusterAddonSpec | undefined = decide(first, NOW).writes.put[0]?.spec;
  const record = (of: AddonRecord['state']): AddonRecord => ({
    addon: 'web',
    namespace: 'kube-system',
    owner: 'fleet:web',
    reason: '',
    history: [],
    state: of,
    desired: { id: spec?.specHash },
    since: new Date(since * 1000).toISOString(),
  });
  const orders = { web: { revision: revision?.revision ?? '', at: NOW, ...order } };
  return { revision, fleet: see(state === undefined ? [] : [record(state)], orders) };
}

test('an interrupted delivery is continued however old its record is, and does not time out', () => {
  const { jobs, writes } = decide(observed('Progressing', NOW - 48 * HOUR).fleet, NOW);
  assert.equal(
    jobs.map(({ act }) => act),
    ['continue'],
  );
  assert.equal(writes.status[0]?.status.counts, { Progressing: 1 });
});

test('a record from a clock that is an hour ahead counts from now, and a failure can be tried again', () => {
  const soaking = decide(observed('Succeeded', NOW + HOUR).fleet, NOW);
  assert.equal([soaking.jobs, soaking.writes.recheckAfter], [[], 600]);
  const failed = observed('Failed', NOW + HOUR, { retry: NOW + 1 });
  assert.equal(
    decide(failed.fleet, NOW).jobs.map(({ act }) => act),
    ['update'],
  );
  assert.equal(decide(observed('Failed', NOW + HOUR).fleet, NOW).jobs, []);
});

test('a plan says why a cluster has failed, and that the order to retry is ahead of the clock', () => {
  const { fleet } = observed('Failed', NOW - 60, { retry: NOW + HOUR });
  const [target] = planFleet(fleet, NOW, () => 'no such kind').targets;
  assert.equal([target?.state, target?.now, target?.reason], ['Failed', 'wait', 'Order']);
  assert.match(target?.message ?? '', /^no such kind; the order to retry of \S+Z counts from then on: /);
});

test('what a command sees differently is of the time of its pass', () => {
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text: documents(cluster('paris'), addon('web')) }]);
  const adapt = (seen: Observed, now: number): Observed => ({ ...seen, heardSince: now });
  const known = {
    fleet: { ...fleet, folder: '.', diagnostics: [], errors: 0, warnings: 0 },
    hashOf: () => 'a',
    orders: NO_ORDERS,
    isStateLost: false,
    adapt,
  };
  const again = observeAgain(known, { looks: new Map(), now: NOW, state: NO_STATE });
  assert.is(again.observed.heardSince, NOW);
});

test('a removal is tried for half an hour, however its record is, and then again on order', () => {
  const actsAt = (begun: number, order: GivenOrder = {}) => {
    const { fleet } = observed('Succeeded', NOW - 2 * HOUR, order, { paris: begun });
    const clusters = fleet.clusters.map((one) => ({ ...one, labels: {} }));
    const { jobs, writes } = decide({ ...fleet, clusters }, NOW);
    return [...jobs.map(({ act }) => act), ...Object.keys(writes.status[0]?.status.counts ?? {})];
  };
  assert.equal(actsAt(NOW - 60), ['remove', 'Removing']);
  assert.equal(actsAt(NOW - HOUR), ['TimedOut']);
  assert.equal(actsAt(NOW - HOUR, { retry: NOW }), ['remove', 'Removing']);
});

test('an order of a clock that is ahead gives no removal another half hour before its time', () => {
  const begunAt = (retry: number): number | undefined => {
    const { fleet, revision } = observed('Succeeded', NOW - 2 * HOUR, { retry }, { paris: NOW - 60 });
    const seen = { ...fleet, clusters: fleet.clusters.map((one) => ({ ...one, labels: {} })) };
    const state: FleetState = { ...NO_STATE, addons: { web: { ...NEW_ADDON, removing: { paris: NOW - 60 } } } };
    const revisions = new Map(revision === undefined ? [] : [['web', revision]]);
    return beginPass(state, seen, { ...decide(seen, NOW), now: NOW, revisions }).addons['web']?.removing['paris'];
  };
  assert.equal([begunAt(NOW + HOUR), begunAt(NOW)], [NOW - 60, NOW]);
});

/** A fleet of two clusters, one after the other, whose clusters answer with these records; undefined: not at all. */
function pair(
  state: FleetState,
  now: number,
  answers: Readonly<Record<string, readonly AddonRecord[] | undefined>>,
  ahead = 0,
) {
  const rollout = { type: 'Progressive', maxConcurrency: 1, minSuccessTime: '10m', progressDeadline: '20m' };
  const clusters = Object.keys(answers).map((name) => cluster(name, { env: 'prod' }));
  const text = documents(...clusters, addon('web', { rollout }));
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
  const looks = new Map(
    Object.entries(answers).map(([name, records]): [string, Look] => {
      if (records === undefined) return [name, { problem: 'refused' }];
      const facts = { annotations: new Map(), installer: new Set<string>(), records: new Map() };
      for (const one of records) facts.records.set(one.addon, one);
      return [name, { server: '', kubernetes: 'v1.31.2', ahead, facts, warnings: [] }];
    }),
  );
  const next = withLooks(state, looks, now);
  const seen = observedOf(fleet, looks, () => 'a', { now, state: next, orders: NO_ORDERS });
  return { state: next, seen, revisions: revisionsOf(fleet, seen, () => 'a') };
}

function recordOf(id: string, since: number, state: AddonRecord['state'] = 'Succeeded'): AddonRecord {
  const at = new Date(since * 1000).toISOString();
  const fields = { addon: 'web', namespace: 'kube-system', owner: 'fleet:web', reason: '', history: [] };
  return { ...fields, state, desired: { id }, applied: { id }, since: at };
}

test('a cluster that does not answer any more after its update began keeps the place, and counts at the deadline', () => {
  const old = [recordOf('old', NOW - HOUR)];
  const first = pair(NO_STATE, NOW, { a: old, b: old });
  const decided = decide(first.seen, NOW);
  assert.equal(
    decided.jobs.map(({ cluster: on }) => on),
    ['a'],
  );
  const begun = beginPass(first.state, first.seen, { ...decided, now: NOW, revisions: first.revisions });
  const done: readonly Ended[] = decided.jobs.map((job) => ({ ...job, result: 'failed', reason: 'no response' }));
  const then = pair(begun, NOW + 60, { a: undefined, b: old });
  const ended = endPass(then.state, done, NOW + 60, first.state);
  assert.equal(ended.addons['web']?.failures, {});
  const held = pair(ended, NOW + 600, { a: undefined, b: old });
  assert.equal(decide(held.seen, NOW + 600).jobs, []);
  const { targets } = planFleet(held.seen, NOW + 600);
  assert.equal(
    targets.map(({ state, now, reason, message = '' }) => [state, now, reason, message.slice(0, 15)]),
    [
      ['Unreachable', 'wait', 'Unreachable', 'it has not answ'],
      ['ToApply', 'wait', 'Batch', 'the batch is fu'],
    ],
  );
  const late = pair(ended, NOW + 1200, { a: undefined, b: old });
  assert.equal(
    planFleet(late.seen, NOW + 1200).targets.map(({ state, reason = '' }) => `${state} ${reason}`),
    ['TimedOut ', 'ToApply Stopped'],
  );
  const back = pair(ended, NOW + 700, { a: old, b: old });
  assert.equal(
    decide(back.seen, NOW + 700).jobs.map(({ cluster: on, act }) => `${on} ${act}`),
    ['a update'],
  );
});

test('after an update that failed before it began, going back means what is there, and not what was healthy before that', () => {
  const revision = (id: string) => ({ revision: { id }, until: new Date((NOW - HOUR) * 1000).toISOString() });
  const record = { ...recordOf('one', NOW - 60, 'Failed'), knownGood: { id: 'one' }, history: [revision('old')] };
  const failures = { a: { hash: 'next', since: NOW - 60, reason: 'refused' } };
  const state = { ...NO_STATE, addons: { web: { ...NEW_ADDON, failures } } };
  const { seen } = pair(state, NOW, { a: [record] });
  assert.equal(
    seen.clusterAddons.map(({ spec }) => [spec.specHash, spec.knownGood?.specHash]),
    [['next', 'one']],
  );
});

test('what was healthy before, and is wanted again, has failed like anything else where it cannot be delivered', () => {
  const first = pair(NO_STATE, NOW, { a: [recordOf('next', NOW - HOUR)] });
  const [wanted] = decide(first.seen, NOW).jobs;
  const revision = { revision: { id: wanted?.hash ?? '' }, until: new Date((NOW - HOUR) * 1000).toISOString() };
  const record = { ...recordOf('next', NOW - HOUR), knownGood: { id: 'next' }, history: [revision] };
  const before = pair(NO_STATE, NOW, { a: [record] });
  const decided = decide(before.seen, NOW);
  assert.equal(
    decided.jobs.map(({ act, hash }) => [act, hash]),
    [['go back', wanted?.hash]],
  );
  const begun = beginPass(before.state, before.seen, { ...decided, now: NOW, revisions: before.revisions });
  const done: readonly Ended[] = decided.jobs.map((job) => ({ ...job, result: 'failed', reason: 'no such file' }));
  const after = pair(endPass(begun, done, NOW, before.state), NOW + 60, { a: [record] });
  const again = decide(after.seen, NOW + 60);
  assert.equal([again.jobs, again.writes.status[0]?.status.counts], [[], { Failed: 1 }]);
});

test('nothing has begun on a cluster that could not be reached any more', () => {
  const old = [recordOf('old', NOW - HOUR)];
  const first = pair(NO_STATE, NOW, { a: old, b: old });
  const decided = decide(first.seen, NOW);
  const begun = beginPass(first.state, first.seen, { ...decided, now: NOW, revisions: first.revisions });
  const done: readonly Ended[] = decided.jobs.map((job) => ({ ...job, result: 'later', reason: 'refused' }));
  const ended = endPass(pair(begun, NOW + 60, { a: undefined, b: old }).state, done, NOW + 60, first.state);
  const next = decide(pair(ended, NOW + 120, { a: undefined, b: old }).seen, NOW + 120);
  assert.equal(
    next.jobs.map(({ cluster: on }) => on),
    ['b'],
  );
});

test('a record counts by the clock of its cluster, whoever has written it', () => {
  const first = pair(NO_STATE, NOW, { a: [], b: [] });
  const hash = decide(first.seen, NOW).writes.put[0]?.spec.specHash ?? '';
  for (const ahead of [0, HOUR, -HOUR]) {
    const { seen } = pair(NO_STATE, NOW, { a: [recordOf(hash, NOW + ahead - 60)], b: [] }, ahead);
    const { jobs, writes } = decide(seen, NOW);
    assert.equal([jobs, writes.recheckAfter], [[], 540]);
  }
});

test('an order counts for the rollout that it was given for, and not when its content comes again after another one', () => {
  const rollout = { groups: [{ name: 'prod', selector: { matchLabels: { env: 'prod' } } }], approval: ['prod'] };
  const text = documents(cluster('paris', { env: 'prod' }), addon('web', { rollout }));
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
  const facts = { annotations: new Map(), installer: new Set<string>(), records: new Map() };
  const looks = new Map<string, Look>([['paris', { server: '', kubernetes: 'v1.31.2', facts, warnings: [] }]]);
  let state: FleetState = NO_STATE;
  const pass = (content: string, now: number, order: GivenOrder = {}) => {
    state = withLooks(state, looks, now);
    const orders = { ...NO_ORDERS, addons: { web: order } };
    const seen = observedOf(fleet, looks, () => content, { now, state, orders });
    const revisions = revisionsOf(fleet, seen, () => content);
    const decided = decide(seen, now);
    state = beginPass(state, seen, { ...decided, now, revisions });
    const acts = decided.jobs.map(({ act }) => act).join('');
    return { acts, why: decided.waiting[0]?.message ?? '', revision: revisions.get('web')?.revision ?? '' };
  };
  const { revision: one, acts } = pass('one', NOW);
  assert.is(acts, '');
  const first = { revision: one, at: NOW + 10, groups: ['prod'] };
  assert.is(pass('one', NOW + 20, first).acts, 'install');
  const { revision: two } = pass('two', NOW + 30, first);
  assert.is(pass('one', NOW + 40, first).acts, '');
  const again = pass('one', NOW + 50, first);
  assert.is(again.acts, '');
  assert.match(again.why, /; the approval of \S+Z is older than this rollout, which began at \S+Z: approve again$/);
  assert.not(isPresent(first, one, state.addons['web']));
  assert.is(pass('one', NOW + 60, { ...first, at: NOW + 55 }).acts, 'install');
  const ahead = { revision: two, at: NOW + 65, groups: ['prod'] };
  assert.is(pass('two', NOW + 70, ahead).acts, 'install');
  assert.is(pass('two', NOW + 80, ahead).acts, 'install');
});

test('no time of the state is ahead when a clock has been set back', () => {
  const times = { since: NOW + HOUR, hash: 'x' };
  const web = {
    ...NEW_ADDON,
    failures: { a: { ...times, reason: '' } },
    removing: { b: NOW + HOUR },
    begun: { c: times },
  };
  const status = decide(pair(NO_STATE, NOW + HOUR, { a: [], b: [] }).seen, NOW + HOUR).writes.status[0]?.status;
  assert.is(status?.since, NOW + HOUR);
  const state: FleetState = {
    ...NO_STATE,
    clusters: { a: { available: true, since: NOW + HOUR } },
    addons: { web: { ...web, ...(status && { status }) } },
  };
  const { clusters, addons } = pair(state, NOW, { a: [], b: [] }).state;
  const { failures, removing, begun, status: after } = addons['web'] ?? NEW_ADDON;
  const found = [clusters['a']?.since, failures['a']?.since, removing['b'], begun?.['c']?.since, after?.since];
  assert.equal([...found, after?.waiting[0]?.since], Array(6).fill(NOW));
});

test('of the contents of an add-on, the last five stay, and the newest one that was good', () => {
  const { revision } = observed();
  assert.ok(revision !== undefined);
  let state = NEW_ADDON;
  for (let number = 1; number <= 8; number += 1) {
    state = keep(state, { ...revision, revision: String(number) });
    state = { ...state, kept: state.kept.map((one) => ({ ...one, isGood: one.revision === '2' })) };
  }
  assert.equal(
    state.kept.map((one) => one.revision),
    ['8', '7', '6', '5', '4', '2'],
  );
});

test.run();
