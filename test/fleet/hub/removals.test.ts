/** Removals from the clusters of a hub in memory: what holds them, also for an add-on that cannot be read. */
import type { LiveObject } from '../../../src/cluster/kube/objects.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub, type MemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubChannel, hubChart } from '../../support/hub-objects.ts';
import {
  answering,
  change,
  contents,
  DELETED,
  NOW,
  pass,
  problemOf,
  succeed,
  waiting,
} from '../../support/hub-passes.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/hub/removals');
const HOUR = 3600;
const SITES = ['bergen', 'lyon', 'oslo', 'paris', 'rome', 'turin'];
/** A field that this version does not know. */
const LATER = { later: true };

/** All clusters have the add-on `web` with this spec, and what else is given. */
async function settled(spec: object, ...others: readonly object[]): Promise<MemoryHub> {
  const memory = await openMemoryHub([
    ...others,
    hubAddon('web', spec),
    ...SITES.map((name) => answering(name, 'v1.34.1')),
  ]);
  await pass(memory, 0);
  await succeed(memory, ...SITES);
  await pass(memory, 1);
  return memory;
}

const respec = async (memory: MemoryHub, spec: object): Promise<void> =>
  change(memory, { ...hubAddon('web', spec), metadata: { name: 'web' } });

async function leave(memory: MemoryHub, ...names: readonly string[]): Promise<void> {
  for (const name of names)
    await change(memory, { kind: 'Cluster', metadata: { name, namespace: `fleet-${name}`, ...DELETED } });
}

const approval = (at: number, removals: number): object => {
  const order = { generation: 1, at: new Date((NOW + at) * 1000).toISOString(), removals };
  return { annotations: { 'fleet.curlew.dev/approve': JSON.stringify(order) } };
};

/** Names of clusters that the add-on leaves. */
const leaving = (memory: MemoryHub): readonly string[] => {
  return [...contents(memory).matchAll(/(\w+):-/g)].map(([, name = '']) => name);
};

const waitingFor = (memory: MemoryHub, reason: string): readonly string[] =>
  waiting(memory).filter((one) => one.includes(` ${reason}: `));

test('removals from deleted clusters wait at the limit until their number is approved, whatever cannot be read', async () => {
  const rollout = { maxRemovals: 2 };
  for (const more of [{}, LATER]) {
    await using memory = await settled({ rollout });
    await respec(memory, { rollout, ...more });
    await leave(memory, 'oslo', 'paris', 'rome');
    await pass(memory, 2, 3);
    const held = ['oslo', 'paris', 'rome'].map((name) => `${name} Removals: 3 removals at once, and 2 may: approve 3`);
    assert.equal([leaving(memory), waitingFor(memory, 'Removals')], [[], held]);
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...approval(4, 3) } });
    await pass(memory, 5);
    assert.equal(leaving(memory), ['oslo', 'paris', 'rome']);
  }
});

test('an add-on that cannot be read keeps its own limit on removals from deleted clusters', async () => {
  await using two = await settled({});
  await respec(two, { rollout: { maxRemovals: 2, ...LATER } });
  await leave(two, 'oslo', 'paris');
  await pass(two, 2);
  assert.equal(leaving(two), ['oslo', 'paris']);
  await using none = await settled({});
  await respec(none, { rollout: { maxRemovals: 0 }, ...LATER });
  await leave(none, 'oslo');
  await pass(none, 2);
  assert.equal(
    [leaving(none), waitingFor(none, 'Removals')],
    [[], ['oslo Removals: 1 removal at once, and 0 may: approve 1']],
  );
  await using unknown = await settled({});
  await respec(unknown, { rollout: { maxRemovals: 'many' } });
  await leave(unknown, 'oslo', 'paris');
  await pass(unknown, 2);
  assert.equal(leaving(unknown), []);
  assert.match(problemOf(unknown) ?? '', /^rollout\.maxRemovals: .* \(removals have the default limit\)$/);
});

test('labels that change on all clusters by mistake take an add-on from none of them, or one by one from no more than the limit', async () => {
  const relabel = async (memory: MemoryHub, name: string, env: string): Promise<void> =>
    change(memory, { kind: 'Cluster', metadata: { name, namespace: `fleet-${name}`, labels: { env } } });
  await using together = await settled({});
  for (const name of SITES) await relabel(together, name, 'test');
  await pass(together, 2, 3);
  const held = SITES.map((name) => `${name} Removals: 6 removals at once, and 1 may: approve 6`);
  assert.equal([leaving(together), waitingFor(together, 'Removals')], [[], held]);
  for (const name of SITES) await relabel(together, name, 'prod');
  await pass(together, 4);
  assert.equal([leaving(together), waiting(together)], [[], []]);
  await using single = await settled({});
  for (const [at, name] of SITES.entries()) {
    await relabel(single, name, 'test');
    await pass(single, 2 + at);
  }
  await succeed(single, 'bergen');
  await pass(single, 20, 21);
  assert.equal(leaving(single), []);
  const left = single.hub.clusterAddons.values().flatMap((one) => one?.record?.cluster ?? []);
  assert.equal(left.toSorted(), SITES.slice(1));
  assert.is(waitingFor(single, 'Removals').length, 5);
});

test('the limit counts removals that are under way', async () => {
  await using memory = await settled({ rollout: { maxRemovals: 2 } });
  await leave(memory, 'oslo');
  await pass(memory, 2);
  await leave(memory, 'paris', 'rome');
  await pass(memory, 3);
  assert.equal(leaving(memory), ['oslo']);
  const held = ['paris', 'rome'].map((name) => `${name} Removals: 3 removals at once, and 2 may: approve 2`);
  assert.equal(waitingFor(memory, 'Removals'), held);
  await succeed(memory, 'oslo');
  await pass(memory, 4, 5);
  assert.equal(
    [leaving(memory), waitingFor(memory, 'Removals')],
    [[], held.map((one) => one.replace('at once', 'within 24h'))],
  );
  await pass(memory, 3 + 24 * HOUR);
  assert.equal(leaving(memory), ['paris', 'rome']);
});

test('a status that others have written does not lift the limit, whatever else of it cannot be read', async () => {
  for (const status of [
    { removed: 'none' },
    { removed: [{ at: 'soon', begun: 9 }], since: 5 },
    { removed: [{}], reached: -1 },
  ]) {
    await using memory = await settled({ rollout: { maxRemovals: 2 } });
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web' }, status });
    await leave(memory, 'oslo');
    await pass(memory, 2);
    assert.equal(leaving(memory), []);
    assert.match(
      waitingFor(memory, 'Removals').join(),
      / (?:10 removals|an unknown number of removals) within 24h, and 2 may: approve 1$/,
    );
    await pass(memory, 2 + 24 * HOUR);
    assert.equal(leaving(memory), ['oslo']);
  }
});

test('an add-on that cannot be read leaves deleted clusters in its windows only', async () => {
  await using memory = await settled({});
  // The first pass is at 08:00.
  await respec(memory, { rollout: { windows: [{ cron: '0 22 * * *', duration: '1h' }] }, ...LATER });
  await leave(memory, 'oslo');
  await pass(memory, 2);
  assert.equal([leaving(memory), waitingFor(memory, 'Window')], [[], ['oslo Window: no maintenance window is open']]);
  await pass(memory, 14 * HOUR + 60);
  assert.equal(leaving(memory), ['oslo']);
});

test('windows that cannot be read hold removals, which is said with the reason, until they are corrected', async () => {
  const night = { cron: '0 22 * * *', duration: '1h' };
  const weekday = 'cannot read the window: "MON" is not a weekday';
  const cases = [
    [{ windows: [{ ...night, cron: '0 22 * * MON' }] }, weekday, weekday],
    [{ windows: [{ ...night, ...LATER }] }, 'rollout.windows[0].later: unknown field', undefined],
    [{ windows: [{ ...night, cron: '0 22 * * MON' }], ...LATER }, `rollout.later: unknown field; ${weekday}`, weekday],
  ] as const;
  for (const [rollout, problem, reason = 'cannot read the window: "" is not a minute'] of cases) {
    await using memory = await settled({});
    await respec(memory, { rollout });
    await leave(memory, 'oslo');
    await pass(memory, 2, 48 * HOUR);
    assert.equal(leaving(memory), []);
    assert.is(problemOf(memory), `${problem} (no removal begins until it is corrected)`);
    assert.equal(waitingFor(memory, 'Window'), [`oslo Window: ${reason}`]);
    await respec(memory, {});
    await pass(memory, 48 * HOUR + 1);
    assert.equal(leaving(memory), ['oslo']);
  }
});

test('a cluster whose windows cannot be read keeps its add-ons although it is deleted, and says why', async () => {
  await using memory = await settled({});
  const windows = [{ cron: '0 22 * * MON', duration: '1h' }];
  await change(memory, { kind: 'Cluster', metadata: { name: 'oslo', namespace: 'fleet-oslo' }, spec: { windows } });
  await leave(memory, 'oslo');
  await pass(memory, 2, 2 * HOUR);
  assert.equal([leaving(memory), contents(memory).split(' ').length], [[], SITES.length]);
  assert.equal(waiting(memory), ['oslo Window: cannot read the window: "MON" is not a weekday']);
});

test('each field that says how an add-on is removed counts if it can be read, and one that cannot is named', async () => {
  const chart = { chart: { ...hubChart().chart, releaseName: 'base' } };
  const cases = [
    [
      { mode: 'Sometimes', dependsOn: ['base'], remove: { onFailure: 'Skip' } },
      'mode: one of Continuous, InstallOnce',
      ['base Install {}', 'web Remove {"onFailure":"Skip"}'],
    ],
    [{ dependsOn: 'base', mode: 'InstallOnce' }, 'dependsOn: a list', ['base Remove {}']],
    [
      { remove: { timeout: 'soon' }, dependsOn: ['base'] },
      'remove.timeout: a time such as 90s, 10m or 2h',
      ['base Install {}', 'web Remove {}'],
    ],
  ] as const;
  for (const [spec, problem, left] of cases) {
    await using memory = await settled({}, hubAddon('base', { source: chart }));
    await respec(memory, spec);
    await pass(memory, 2);
    assert.is(problemOf(memory), `${problem} (removals go without it)`);
    await leave(memory, 'oslo');
    await pass(memory, 3);
    const records = memory.hub.clusterAddons.values('fleet-oslo').flatMap((one) => one?.record ?? []);
    assert.equal(
      records
        .map(({ addon, spec: { action, remove = {} } }) => `${addon} ${action} ${JSON.stringify(remove)}`)
        .toSorted(),
      left,
    );
  }
});

test('an approval of removals counts for an add-on that is deleted together with its Channel', async () => {
  const { version, ...place } = hubChart().chart;
  const source = { channel: { name: 'stable' } };
  const stable = hubChannel('stable', [{ name: 'web', version, chart: place }]);
  await using memory = await settled({ source }, stable);
  await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED, ...approval(2, SITES.length) } });
  const { uid } = (memory.objects()[0] as LiveObject).metadata;
  memory.hub.channels.drop({ name: 'stable', uid });
  await pass(memory, 3, 4);
  assert.equal(leaving(memory), SITES);
});

test('what an add-on that cannot be read may take over stays where it is selected, or anywhere if that is unknown', async () => {
  const source = { chart: { ...hubChart().chart, releaseName: 'web' } };
  const other = { chart: { ...hubChart().chart, releaseName: 'other' } };
  const chosen = { matchExpressions: [{ key: 'site', operator: 'In', values: ['oslo', 'rome'] }] };
  const unknown = { matchExpressions: [{ key: 'site', operator: 'Like', values: ['o*'] }] };
  const cases: readonly (readonly [object, readonly string[]])[] = [
    [{ source, clusterSelector: chosen, ...LATER }, ['oslo', 'rome']],
    [{ source: { chart: { ...source.chart, ...LATER } }, clusterSelector: chosen }, ['oslo', 'rome']],
    [{ source: LATER, clusterSelector: chosen }, ['oslo', 'rome']],
    [{ source, clusterSelector: unknown }, SITES],
    [{ source, clusterSelector: undefined }, SITES],
    [{ source: LATER, clusterSelector: unknown }, SITES],
    [{ source: other, clusterSelector: unknown }, []],
    [{ source: other, clusterSelector: chosen, ...LATER }, []],
    [{ source: { manifest: 'https://example.com/web.yaml', ...LATER }, clusterSelector: unknown }, []],
  ];
  for (const [spec, held] of cases) {
    await using before = await settled({});
    await using memory = await openMemoryHub([...before.objects(), hubAddon('heir', spec)]);
    for (const name of SITES)
      await change(memory, {
        kind: 'Cluster',
        metadata: { name, namespace: `fleet-${name}`, labels: { env: 'prod', site: name } },
      });
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED, ...approval(2, SITES.length) } });
    await pass(memory, 3, 4);
    const why = 'fleet:heir cannot be read, and may be what takes it over: correct heir, or delete it';
    assert.equal(
      [leaving(memory), waitingFor(memory, 'HandOver')],
      [SITES.filter((name) => !held.includes(name)), held.map((name) => `${name} HandOver: ${why}`)],
      JSON.stringify(spec),
    );
  }
});

test('an add-on whose selector cannot be read says that nothing it may take over is removed, until it is corrected', async () => {
  const source = { chart: { ...hubChart().chart, releaseName: 'web' } };
  const heir = hubAddon('heir', { source, clusterSelector: { matchLabels: { env: 5 } } });
  await using before = await settled({});
  await using memory = await openMemoryHub([...before.objects(), heir]);
  await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED, ...approval(2, SITES.length) } });
  await pass(memory, 3);
  const said = memory.hub.addons.get({ name: 'heir' })?.conditions.find(({ type }) => type === 'Degraded');
  const kept = 'what it may take over stays on every cluster until it is corrected';
  assert.is(said?.message, `clusterSelector.matchLabels.env: a text (${kept})`);
  await change(memory, { ...hubAddon('heir', { source }), metadata: { name: 'heir' } });
  await pass(memory, 4, 5);
  const records = memory.hub.clusterAddons.values().flatMap((one) => one?.record ?? []);
  assert.equal(
    records.map(({ cluster, addon, spec }) => `${cluster} ${addon} ${spec.action}`).toSorted(),
    SITES.map((name) => `${name} heir Install`),
  );
});

test('a deleted add-on whose windows cannot be read says so in its conditions and by an event, until they are corrected', async () => {
  const windows = [{ cron: '0 22 * * MON', duration: '1h' }];
  const weekday = 'cannot read the window: "MON" is not a weekday (no removal begins until it is corrected)';
  for (const more of [{}, LATER]) {
    await using memory = await settled({});
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED } });
    await respec(memory, { rollout: { windows }, ...more });
    await pass(memory, 3);
    assert.equal([leaving(memory), problemOf(memory)], [[], weekday]);
    assert.equal(
      memory.notes.filter((note) => note.startsWith('web: Invalid')),
      [`web: Invalid: ${weekday}`],
    );
    await respec(memory, {});
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...approval(4, SITES.length) } });
    await pass(memory, 4);
    assert.equal([leaving(memory), problemOf(memory)], [SITES, undefined]);
  }
});

test.run();
