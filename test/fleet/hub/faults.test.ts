/** Faults of a fleet that take hours, as passes over a hub in memory. */
import { afterJob, obey, readOrder, type Order } from '../../../src/fleet/hub/agent.ts';
import { keptOf, NO_RECORD } from '../../../src/fleet/hub/agent-record.ts';
import { agentStatus } from '../../../src/fleet/hub/agent-status.ts';
import { passHub, resourceOf } from '../../../src/fleet/hub/run/hub-pass.ts';
import { timeOf } from '../../../src/core/time.ts';
import { patchObject } from '../../../src/cluster/kube/objects.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub, type MemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubChart, hubCluster, hubClusterAddon } from '../../support/hub-objects.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/faults');
const NOW = 1_800_000_000;
const HOUR = 3600;
const SITES = ['bergen', 'lyon', 'oslo', 'paris', 'rome', 'turin'];
const FIRST = SITES.slice(0, 5);

function sites(): readonly object[] {
  const available = { type: 'Available', status: 'True', reason: 'Answers', lastTransitionTime: timeOf(NOW - HOUR) };
  const status = { facts: { version: 'v1.34.1' }, conditions: [available] };
  return SITES.map((name) => ({ ...hubCluster(name, { env: 'prod' }), status }));
}

/** Passes until nothing is left to write at this time. */
async function pass({ hub, writes }: MemoryHub, now: number): Promise<void> {
  for (let before = -1; before !== writes.length;) {
    before = writes.length;
    assert.is((await passHub(hub, now)).isDecided, true);
  }
}

/** Agents say what has become of what they are to have. */
async function report({ hub }: MemoryHub, now: number, state: string, ...clusters: readonly string[]): Promise<void> {
  for (const one of hub.clusterAddons.values()) {
    if (one?.record === undefined || !clusters.includes(one.record.cluster)) continue;
    const { revision, specHash: hash } = one.record.spec;
    const value = { applied: { revision, hash }, state, since: timeOf(now) };
    const operations = [{ op: 'add', path: '/status', value }];
    const written = await patchObject(hub.call, resourceOf('ClusterAddon'), one.at, {
      operations,
      subresource: 'status',
    });
    if (written !== undefined) hub.clusterAddons.put(written);
  }
}

/** A person writes a field of an add-on. */
async function change({ hub }: MemoryHub, path: string, value: unknown): Promise<void> {
  const operations = [{ op: 'add', path, value }];
  const written = await patchObject(hub.call, resourceOf('FleetAddon'), { name: 'web' }, { operations });
  if (written !== undefined) hub.addons.put(written);
}

/** `lyon:1.2.3@1 oslo:1.2.3@1` */
function contents({ hub }: MemoryHub): string {
  const all = hub.clusterAddons.values().flatMap((one) => one?.record ?? []);
  return all
    .map(({ cluster, spec }) => `${cluster}:${spec.version}@${spec.revision}`)
    .toSorted()
    .join(' ');
}

function everywhere(names: readonly string[], content: string): string {
  return names.map((name) => `${name}:${content}`).join(' ');
}

test('a version that becomes bad after five of six clusters took it goes back before the sixth gets it', async () => {
  const times = { maxConcurrency: 5, minSuccessTime: '1h' };
  const rollout = { type: 'Progressive', ...times, maxFailures: 0, onFailure: 'Rollback' };
  await using memory = await openMemoryHub([...sites(), hubAddon('web', { rollout })]);
  let now = NOW;
  await pass(memory, now);
  await report(memory, now, 'Succeeded', ...FIRST);
  await pass(memory, now);
  await pass(memory, (now += HOUR));
  assert.is(contents(memory), everywhere(SITES, '1.2.3@1'));
  await report(memory, now, 'Succeeded', 'turin');
  await pass(memory, now);
  await pass(memory, (now += HOUR));
  await change(memory, '/spec/source', hubChart('9.9.9'));
  await pass(memory, now);
  assert.is(contents(memory), `${everywhere(FIRST, '9.9.9@2')} turin:1.2.3@1`);
  await report(memory, (now += 60), 'Succeeded', ...FIRST);
  await pass(memory, now);
  await pass(memory, (now += HOUR - 1));
  assert.is(contents(memory), `${everywhere(FIRST, '9.9.9@2')} turin:1.2.3@1`);
  await report(memory, now, 'Failed', 'lyon');
  await pass(memory, now);
  assert.is(contents(memory), `${everywhere(FIRST, '1.2.3@3')} turin:1.2.3@1`);
});

test('a pass over a fleet that is as it is to be asks the hub nothing', async () => {
  const rollout = { type: 'Progressive', maxConcurrency: 5 };
  await using first = await openMemoryHub([...sites(), hubAddon('web', { rollout })]);
  await pass(first, NOW);
  await report(first, NOW, 'Succeeded', ...FIRST);
  await pass(first, NOW);
  await report(first, NOW, 'Succeeded', 'turin');
  await pass(first, NOW);
  const before = first.requests.length;
  for (const days of [1, 2, 3]) await pass(first, NOW + days * 24 * HOUR);
  assert.equal(first.requests.slice(before), []);
});

test('a success that a site dates back lasts from when it was first seen, also for the controller that takes over', async () => {
  const rollout = { type: 'Progressive', maxConcurrency: 1, minSuccessTime: '10m' };
  await using first = await openMemoryHub([...sites(), hubAddon('web', { rollout })]);
  await pass(first, NOW);
  await report(first, NOW, 'Failed', 'bergen');
  await pass(first, NOW + 60);
  assert.is(contents(first), everywhere(SITES.slice(0, 2), '1.2.3@1'));
  await report(first, NOW, 'Succeeded', 'bergen', 'lyon');
  await pass(first, NOW + HOUR);
  const { length } = first.writes;
  await pass(first, NOW + HOUR + 300);
  assert.is(first.writes.length, length);
  await using next = await openMemoryHub(first.objects());
  await pass(next, NOW + HOUR + 599);
  assert.equal(next.writes, []);
  await pass(next, NOW + HOUR + 600);
  assert.is(contents(next), everywhere(SITES.slice(0, 3), '1.2.3@1'));
});

test('a rollout that is paused gets no write and no restart from the controller that takes over, hours later', async () => {
  const rollout = { type: 'Progressive', maxConcurrency: 2, minSuccessTime: '5m' };
  await using first = await openMemoryHub([...sites(), hubAddon('web', { rollout })]);
  await pass(first, NOW);
  await report(first, NOW, 'Succeeded', 'bergen');
  await change(first, '/metadata/annotations', { 'fleet.curlew.dev/pause': 'true' });
  await pass(first, NOW);
  // What was under way ends.
  await report(first, NOW, 'Succeeded', 'lyon');
  await pass(first, NOW);
  await pass(first, NOW + HOUR);
  await using next = await openMemoryHub(first.objects());
  await pass(next, NOW + 5 * HOUR);
  assert.equal(next.writes, []);
  assert.is(contents(next), everywhere(['bergen', 'lyon'], '1.2.3@1'));
  await change(next, '/metadata/annotations', {});
  await pass(next, NOW + 5 * HOUR);
  assert.is(contents(next), everywhere(SITES.slice(0, 4), '1.2.3@1'));
});

test('times in the hub are by its clock, and what is stored stays when the clock of the site is set', () => {
  const orderWith = (status?: object): Order => {
    const { metadata, ...object } = hubClusterAddon('web', 'oslo', { hub: 'hub' }) as { readonly metadata: object };
    const more = { uid: 'u', resourceVersion: '1', labels: {}, annotations: {}, finalizers: [] };
    return readOrder({ metadata: { name: 'web', ...metadata, ...more }, ...object, ...(status && { status }) });
  };
  const known = { now: 1000, hub: 'hub', acceptOlder: false };
  const { record, jobs } = obey(new Map([['web', orderWith()]]), NO_RECORD, known);
  const [job] = jobs;
  if (job === undefined) throw new Error('there is nothing to install');
  const done = { result: 'done', reason: '', message: '' } as const;
  const own = keptOf(afterJob(record, job, done, { now: 1000, random: 0.5 }), 'web');
  const given = { refusal: undefined, health: undefined };
  const first = agentStatus(orderWith(), own, { ...given, now: 1000, ahead: -3600 });
  assert.is(first?.['since'], timeOf(4600));
  assert.is(agentStatus(orderWith(first), own, { ...given, now: 4600, ahead: 0 }), undefined);
  // Deadlines and soaks count from there: another reason does not begin them anew.
  const waiting = own && ({ ...own, state: 'Progressing' } as const);
  const before = agentStatus(orderWith(), waiting, { ...given, now: 1000 });
  const after = agentStatus(orderWith(before), waiting && { ...waiting, since: 1600, reason: 'Waiting' }, {
    ...given,
    now: 1600,
  });
  assert.equal([after?.['reason'], after?.['since']], ['Waiting', timeOf(1000)]);
});

test.run();
