/** What a pass decides from records, clocks and the state. */
import type { AddonRecord } from '../../src/channel/record.ts';
import { observedOf } from '../../src/fleet/observe.ts';
import { decide, revisionsOf } from '../../src/fleet/pass.ts';
import { readFleet } from '../../src/fleet/read.ts';
import { keep, NEW_ADDON, NO_ORDERS, NO_STATE, type Order } from '../../src/fleet/state.ts';
import type { ClusterAddonSpec } from '../../src/rollout/fleet.ts';
import * as assert from '../support/assert.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/pass');
const NOW = 1_800_000_000;
const HOUR = 3600;

/** A fleet of one cluster that has this record of its add-on, whose content is the present one. */
function observed(state?: AddonRecord['state'], since = NOW, order: Order = {}, removing: Record<string, number> = {}) {
  const rollout = { type: 'Progressive', minSuccessTime: '10m' };
  const all = documents(cluster('paris', { env: 'prod' }), addon('web', { rollout }));
  const fleet = readFleet([{ path: 'fleet.yaml', folder: '.', text: all }]);
  const see = (records: readonly AddonRecord[], orders: Readonly<Record<string, Order>>) => {
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

test('a removal is tried for half an hour, however its record is, and then again on order', () => {
  const actsAt = (begun: number, order: Order = {}) => {
    const { fleet } = observed('Succeeded', NOW - 2 * HOUR, order, { paris: begun });
    const clusters = fleet.clusters.map((one) => ({ ...one, labels: {} }));
    const { jobs, writes } = decide({ ...fleet, clusters }, NOW);
    return [...jobs.map(({ act }) => act), ...Object.keys(writes.status[0]?.status.counts ?? {})];
  };
  assert.equal(actsAt(NOW - 60), ['remove', 'Removing']);
  assert.equal(actsAt(NOW - HOUR), ['TimedOut']);
  assert.equal(actsAt(NOW - HOUR, { retry: NOW }), ['remove', 'TimedOut']);
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
