/** Orders of people in a hub, by annotations: each counts by its own time. */
import type { Reply } from '../../../src/fleet/fleet.ts';
import { readFleetAddon, readClusterAddon, type Live } from '../../../src/fleet/hub/observe.ts';
import { jobOrReport } from '../../../src/fleet/hub/push.ts';
import { timeOf } from '../../../src/core/time.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubChannel, hubChart, hubClusterAddon } from '../../support/hub-objects.ts';
import type { Values } from '../../../src/fleet/rollout/fleet.ts';
import { answering, change, contents, NOW, pass, report, waiting } from '../../support/hub-passes.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/orders');

const orderAt = (at: number, more: object = {}): string =>
  JSON.stringify({ generation: 1, at: timeOf(at), by: 'ann', ...more });

/** An object as an API server returns it. */
function live(object: object, annotations: Readonly<Record<string, string>> = {}): Live {
  const { metadata, ...others } = object as { readonly metadata: { readonly name: string } };
  const base = { labels: {}, annotations, finalizers: [], uid: 'u', resourceVersion: '1', generation: 1 };
  return { ...others, metadata: { ...base, ...metadata } };
}

test('an order to retry counts although an approval that was given before is older than the rollout', async () => {
  const { version, ...chart } = hubChart().chart;
  const entry = { name: 'web', version, chart };
  const web = hubAddon('web', { source: { channel: { name: 'stable' } }, rollout: { type: 'Progressive' } });
  await using memory = await openMemoryHub([hubChannel('stable', [entry]), web, answering('oslo', 'v1.34.1')]);
  const annotate = async (annotations: object): Promise<void> =>
    change(memory, { kind: 'FleetAddon', metadata: { name: 'web', annotations } });
  const approve = { 'fleet.curlew.dev/approve': orderAt(NOW, { removals: 1 }) };
  await annotate(approve);
  await pass(memory, 0);
  await change(memory, hubChannel('stable', [{ ...entry, version: '2.0.0' }]));
  await pass(memory, 10);
  assert.is(contents(memory), 'oslo:2.0.0@2');
  await report(memory, 'Failed', 20, 'oslo');
  await pass(memory, 30);
  await annotate({ ...approve, 'fleet.curlew.dev/retry': orderAt(NOW + 40) });
  await pass(memory, 50);
  assert.is(contents(memory), 'oslo:2.0.0@3');
});

test('deletions that a cluster asks for are named, and an approval gives it a revision that may delete', async () => {
  await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.34.1')]);
  await pass(memory, 0);
  const message = 'it would delete 2 of its 2 objects';
  const spec = (): Values | undefined => {
    const found = memory.hub.clusterAddons.values().find((one) => one?.record !== undefined);
    return found?.record && { ...found.record.spec };
  };
  const applied = { revision: 1, hash: spec()?.['specHash'] };
  const status = { applied, state: 'Skipped', reason: 'Deletions', message, since: timeOf(NOW + 1) };
  await change(memory, { kind: 'ClusterAddon', metadata: { name: 'web', namespace: 'fleet-oslo' }, status });
  await pass(memory, 2, 3);
  assert.equal([waiting(memory), contents(memory)], [[`oslo Deletions: ${message}`], 'oslo:1.2.3@1']);
  const annotations = { 'fleet.curlew.dev/approve': orderAt(NOW + 4, { deletions: true }) };
  await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', annotations } });
  await pass(memory, 5, 6);
  assert.equal([contents(memory), spec()?.['prune']], ['oslo:1.2.3@2', 'All']);
});

test('an order of a clock that is ahead is said in the conditions, and is followed when it counts', async () => {
  await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.34.1')]);
  await pass(memory, 0);
  await report(memory, 'Failed', 1, 'oslo');
  const annotations = { 'fleet.curlew.dev/retry': orderAt(NOW + 3600) };
  await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', annotations } });
  await pass(memory, 2, 3);
  const { conditions = [] } = memory.hub.addons.get({ name: 'web' }) ?? {};
  const message = conditions.find(({ type }) => type === 'Available')?.message;
  const clock = 'counts from then on: the clock of the machine that runs the rollout is behind it';
  assert.is(message, `0 of 1 clusters have it; the order to retry of ${timeOf(NOW + 3600)} ${clock}`);
  assert.is(contents(memory), 'oslo:1.2.3@1');
  await pass(memory, 3600);
  assert.is(contents(memory), 'oslo:1.2.3@2');
});

test('orders of a clock that is behind, or for another generation, are said to have no effect', async () => {
  await using memory = await openMemoryHub([hubAddon('web'), answering('oslo', 'v1.34.1')]);
  await pass(memory, 0);
  await report(memory, 'Failed', 1, 'oslo');
  await pass(memory, 2);
  const messageOf = async (at: number, more: object): Promise<string | undefined> => {
    const annotations = { 'fleet.curlew.dev/retry': orderAt(NOW - 60, more) };
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', annotations } });
    await pass(memory, at);
    const before = memory.writes.length;
    await pass(memory, at + 1, at + 2);
    assert.equal(memory.writes.slice(before), []);
    const { conditions = [] } = memory.hub.addons.get({ name: 'web' }) ?? {};
    return conditions.find(({ type }) => type === 'Available')?.message;
  };
  const given = `0 of 1 clusters have it; the order to retry of ${timeOf(NOW - 60)}`;
  const why = `what has failed is of ${timeOf(NOW)}, which is not before it: order it again, by a clock that is right`;
  assert.is(await messageOf(600, {}), `${given} has no effect here: ${why}`);
  const later = { generation: 7, at: timeOf(NOW + 700) };
  const [order] = [`0 of 1 clusters have it; the order to retry of ${later.at}`];
  assert.is(await messageOf(701, later), `${order} has no effect: it was for another content: order it again`);
  assert.is(contents(memory), 'oslo:1.2.3@1');
});

test('what the controller delivers itself is not tried again before the time of the order', () => {
  const { addon, drift, origin } = readFleetAddon(
    live(hubAddon('web'), { 'fleet.curlew.dev/retry': orderAt(NOW + 3600) }),
  );
  const object = hubClusterAddon('web', 'oslo') as { readonly spec: { readonly specHash: string } };
  const applied = { revision: 1, hash: object.spec.specHash };
  const record = readClusterAddon(
    live({ ...object, status: { applied, state: 'Failed', since: timeOf(NOW) } }),
  )?.record;
  const facts = { annotations: new Map(), records: new Map(), installer: new Set<string>() };
  const need = (now: number): unknown =>
    record && jobOrReport(record, { facts } as unknown as Reply, { addon, drift, origin }, { now });
  assert.is(need(NOW + 60), undefined);
  assert.equal((need(NOW + 3600) as { readonly act: string }).act, 'install');
});

test('an approval of a group without proof is one of its own', () => {
  const annotations = { 'fleet.curlew.dev/approve': orderAt(NOW, { groups: ['a'], unproven: ['b'] }) };
  const { groups, unproven } = readFleetAddon(live(hubAddon('web'), annotations)).addon.orders ?? {};
  assert.equal([groups, unproven], [['a'], ['b']]);
});

test.run();
