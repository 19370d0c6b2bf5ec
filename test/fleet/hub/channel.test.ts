/** Channels of a hub: what each cluster gets of them in passes of a controller over a hub in memory. */
import { readFile } from 'node:fs/promises';
import { readYaml, splitYaml } from '../../../src/formats/yaml/yaml.ts';
import { keyAt, passHub } from '../../../src/fleet/hub/run/hub-pass.ts';
import type { LiveObject } from '../../../src/cluster/kube/objects.ts';
import * as assert from '../../support/assert.ts';
import { openMemoryHub, type MemoryHub } from '../../support/hub-memory.ts';
import { hubAddon, hubChannel, hubChart } from '../../support/hub-objects.ts';
import {
  answering as cluster,
  change,
  contents,
  DELETED,
  NOW,
  pass,
  problemOf,
  succeed,
  waiting,
} from '../../support/hub-passes.ts';
import { runCommand } from '../../support/run-command.ts';
import { suite } from '../../support/suite.ts';
import { tree } from '../../support/tree.ts';

const test = suite('fleet/hub/channel');
const MEANT = 'approve the downgrade if it is meant';
const HASH = `sha256:${'0'.repeat(64)}`;

function entry(version: string, kubernetesVersion?: string, more: object = {}): object {
  const manifest = `https://example.com/web-${version}.yaml`;
  return {
    name: 'web',
    version,
    ...(kubernetesVersion !== undefined && { kubernetesVersion }),
    manifest,
    hash: HASH,
    ...more,
  };
}

const OLD = entry('1.0.0', '<1.33.0');
const NEW = entry('1.1.0', '>=1.32.0');
const STABLE = hubChannel('stable', [OLD, NEW, { ...entry('9.0.0'), name: 'other' }]);
const web = (spec: object = {}): object => hubAddon('web', { source: { channel: { name: 'stable' } }, ...spec });

/** Its Channel, which is its first object, is gone. */
function withoutChannel({ objects, hub }: MemoryHub): void {
  const { uid } = (objects()[0] as LiveObject).metadata;
  hub.channels.drop({ name: 'stable', uid });
}

test('each cluster gets the greatest entry for its Kubernetes, by digest, and an idle pass writes nothing', async () => {
  await using memory = await openMemoryHub([
    STABLE,
    web(),
    cluster('oslo', 'v1.31.4'),
    cluster('paris', 'v1.32.0'),
    cluster('rome', 'v1.34.1-eks-2'),
  ]);
  await pass(memory, 0, 1);
  assert.is(contents(memory), 'oslo:1.0.0@1 paris:1.1.0@1 rome:1.1.0@1');
  const [oslo, paris, rome] = memory.hub.clusterAddons.values().flatMap((one) => one?.record?.spec ?? []);
  assert.equal(oslo?.source, { manifest: 'https://example.com/web-1.0.0.yaml', hash: HASH });
  assert.equal([paris?.specHash === rome?.specHash, oslo?.specHash === paris?.specHash], [true, false]);
  const before = memory.writes.length;
  await pass(memory, 2, 3);
  assert.equal(memory.writes.slice(before), []);
});

test('a cluster without an entry for its Kubernetes waits alone, and keeps what it has', async () => {
  await using memory = await openMemoryHub([STABLE, web(), cluster('oslo', 'v1.31.4'), cluster('paris', 'v1.32.0')]);
  await pass(memory, 0);
  await succeed(memory, 'oslo', 'paris');
  await change(memory, hubChannel('stable', [entry('1.2.0', '>=1.32.0')]));
  await pass(memory, 1, 2);
  assert.is(contents(memory), 'oslo:1.0.0@1 paris:1.2.0@2');
  assert.equal(waiting(memory), ['oslo Content: no entry of the channel fits Kubernetes v1.31.4']);
});

test('an upgraded Kubernetes brings another entry to that cluster, and an API server of before does not take it back', async () => {
  const own = [STABLE, web(), cluster('oslo', 'v1.31.4'), cluster('paris', 'v1.31.4')];
  await using memory = await openMemoryHub(own);
  await pass(memory, 0);
  await succeed(memory, 'oslo', 'paris');
  await pass(memory, 1);
  await change(memory, cluster('oslo', 'v1.32.0'));
  await pass(memory, 2);
  assert.is(contents(memory), 'oslo:1.1.0@2 paris:1.0.0@1');
  await succeed(memory, 'oslo');
  await change(memory, cluster('oslo', 'v1.31.4'));
  await pass(memory, 3);
  assert.is(contents(memory), 'oslo:1.1.0@2 paris:1.0.0@1');
  assert.equal(waiting(memory), [`oslo Downgrade: 1.0.0 is lower than the installed 1.1.0: ${MEANT}`]);
  await change(memory, cluster('oslo', 'v1.33.0'));
  await pass(memory, 4);
  assert.equal([contents(memory), waiting(memory)], ['oslo:1.1.0@2 paris:1.0.0@1', []]);
});

test('entries in another order, or with their ranges written in another way, begin no rollout', async () => {
  await using memory = await openMemoryHub([STABLE, web(), cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  const before = memory.hub.addons.get({ name: 'web' })?.addon.status;
  const same = [entry('1.1.0', '>= 1.32.0'), entry('1.0.0', '<1.32.9 || >=1.32.5 <1.33.0')];
  await change(memory, hubChannel('stable', same));
  await pass(memory, 1, 2);
  assert.equal(memory.hub.addons.get({ name: 'web' })?.addon.status, before);
});

test('an entry that is taken back makes place for what was healthy before it, and for no other lower version', async () => {
  const [old, bad] = [entry('1.0.0'), entry('1.1.0')];
  await using memory = await openMemoryHub([hubChannel('stable', [old]), web(), cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  await succeed(memory, 'oslo');
  await change(memory, hubChannel('stable', [old, bad]));
  await pass(memory, 1);
  await change(memory, hubChannel('stable', [entry('0.9.0')]));
  await pass(memory, 2);
  assert.equal(
    [contents(memory), waiting(memory)],
    ['oslo:1.1.0@2', [`oslo Downgrade: 0.9.0 is lower than the installed 1.1.0: ${MEANT}`]],
  );
  await change(memory, hubChannel('stable', [old]));
  await pass(memory, 3);
  assert.equal([contents(memory), waiting(memory)], ['oslo:1.0.0@3', []]);
});

test('a channel that changes in the middle of a rollout begins its stages again, and an approval of before is void', async () => {
  const groups = [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }];
  const mandatoryDecisionGroups = [{ groupName: 'canary' }];
  const rollout = { type: 'Progressive', groups, mandatoryDecisionGroups, approval: ['canary'] };
  const canary = cluster('oslo', 'v1.32.0', { ring: 'canary' });
  await using memory = await openMemoryHub([STABLE, web({ rollout }), canary, cluster('paris', 'v1.32.0')]);
  const approve = async (at: number): Promise<void> => {
    const time = new Date((NOW + at) * 1000).toISOString();
    const order = JSON.stringify({ generation: 1, at: time, groups: ['canary'] });
    const annotations = { 'fleet.curlew.dev/approve': order };
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', annotations } });
  };
  await pass(memory, 0);
  await approve(1);
  await pass(memory, 2);
  assert.is(contents(memory), 'oslo:1.1.0@1');
  await change(memory, hubChannel('stable', [OLD, NEW, entry('1.2.0', '>=1.32.0')]));
  await pass(memory, 3);
  assert.equal(
    [contents(memory), memory.hub.addons.get({ name: 'web' })?.addon.status?.since],
    ['oslo:1.1.0@1', NOW + 3],
  );
  await approve(4);
  await pass(memory, 5);
  assert.is(contents(memory), 'oslo:1.2.0@2');
  await succeed(memory, 'oslo');
  await pass(memory, 6);
  assert.is(contents(memory), 'oslo:1.2.0@2 paris:1.2.0@1');
});

test('a Channel that cannot be followed is named, and what is installed stays', async () => {
  const cases: (readonly [object, string])[] = [
    [hubChannel('other', [OLD]), 'there is no Channel stable: create it, or name another one'],
    [
      hubChannel('stable', []),
      'Channel stable has no add-on web: add it, or name another one in spec.source.channel.addon',
    ],
    [
      hubChannel('stable', [{ ...OLD, name: 'dns' }]),
      'Channel stable has no add-on web: add it, or name another one in spec.source.channel.addon',
    ],
    [
      { ...STABLE, spec: { addons: [{ ...OLD, prune: 'auto' }] } },
      'Channel stable cannot be read: addons[0].prune: unknown field',
    ],
    [{ ...STABLE, spec: {} }, 'Channel stable cannot be read: addons: missing'],
    [
      hubChannel('stable', [OLD, entry('1.1.0', '>=1.x.9')]),
      'Channel stable has an entry of web that cannot be read, 1.1.0: ">=1.x.9" is not a comparison with a version',
    ],
    [
      hubChannel('stable', [entry('1.0.0', '1 '.repeat(400))]),
      'Channel stable has an entry of web that cannot be read, 1.0.0: it is longer than 512 characters',
    ],
    [
      hubChannel('stable', [{ name: 'web', version: '1.0.0' }]),
      'Channel stable has an entry of web that cannot be read, 1.0.0: it has no content',
    ],
    [
      hubChannel('stable', [{ name: 'web', version: '1.0.0', package: 'Web_x-1.0.0.tar.gz', hash: HASH }]),
      'Channel stable has an entry of web that cannot be read, 1.0.0: package.name: at most 53 lower-case letters, digits and "-"',
    ],
  ];
  for (const [channel, expected] of cases) {
    await using memory = await openMemoryHub([STABLE, web(), cluster('oslo', 'v1.31.4')]);
    await pass(memory, 0);
    if (expected.startsWith('there is no')) withoutChannel(memory);
    else await change(memory, channel);
    await pass(memory, 1, 2);
    assert.equal([problemOf(memory), contents(memory)], [expected, 'oslo:1.0.0@1']);
    await change(memory, STABLE);
    await pass(memory, 3);
    assert.equal([problemOf(memory), contents(memory)], [undefined, 'oslo:1.0.0@1']);
  }
});

/** A chart as an entry. */
function chart(version: string, kubernetesVersion?: string): object {
  const { version: _version, ...place } = hubChart().chart;
  return { name: 'web', version, ...(kubernetesVersion !== undefined && { kubernetesVersion }), chart: place };
}

/** A package as an entry. */
function packed(version: string, name: string, kubernetesVersion: string): object {
  return { name: 'web', version, kubernetesVersion, package: `${name}-${version}.tar.gz`, hash: HASH };
}

test('a cluster that would get another kind of content than it has waits alone, and each other one gets its kind', async () => {
  const cases: (readonly [string, object, object, string, string])[] = [
    ['2.0.0', OLD, chart('2.0.0', '>=1.33.0'), 'addon:kube-system/web', 'release:web/web'],
    ['0.5.0', chart('1.0.0', '<1.33.0'), entry('0.5.0', '>=1.33.0'), 'release:web/web', 'addon:kube-system/web'],
    ['1.1.0', OLD, packed('1.1.0', 'web', '>=1.33.0'), 'addon:kube-system/web', 'package web'],
    ['2.0.0', packed('1.0.0', 'web', '<1.33.0'), packed('2.0.0', 'site', '>=1.33.0'), 'package web', 'package site'],
  ];
  for (const [version, one, other, own, next] of cases) {
    const sites = [cluster('oslo', 'v1.31.4'), cluster('paris', 'v1.34.0')];
    await using memory = await openMemoryHub([hubChannel('stable', [one, other]), web(), ...sites]);
    await pass(memory, 0);
    await succeed(memory, 'oslo', 'paris');
    await change(memory, cluster('oslo', 'v1.33.1'));
    await pass(memory, 1, 2);
    assert.is(contents(memory), `oslo:1.0.0@1 paris:${version}@1`);
    const why = `${version} for Kubernetes v1.33.1 is ${next}, which cannot replace ${own}: make two add-ons of them`;
    assert.equal([problemOf(memory), waiting(memory)], [undefined, [`oslo Content: ${why}`]]);
    const specs = memory.hub.clusterAddons.values().flatMap((found) => found?.record?.spec.identity ?? []);
    assert.equal(
      specs,
      [own, next].map((kind) => kind.replace(/^package .*/, 'addon:kube-system/web')),
    );
    const before = memory.hub.addons.get({ name: 'web' })?.addon.status;
    await change(memory, hubChannel('stable', [other, one]));
    await pass(memory, 3);
    assert.equal(memory.hub.addons.get({ name: 'web' })?.addon.status, before);
    await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED } });
    await change(memory, { ...web({ rollout: { maxRemovals: 2 } }), metadata: { name: 'web' } });
    await pass(memory, 4);
    assert.is(contents(memory), `oslo:-1.0.0@2 paris:-${version}@2`);
  }
});

test('what has another kind of content than all entries is removed, and then installed from the channel', async () => {
  await using memory = await openMemoryHub([hubChannel('stable', [OLD]), web(), cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  await succeed(memory, 'oslo');
  await change(memory, hubChannel('stable', [chart('2.0.0')]));
  await pass(memory, 1);
  assert.is(contents(memory), 'oslo:-1.0.0@2');
  await succeed(memory, 'oslo');
  await pass(memory, 2);
  assert.is(contents(memory), 'oslo:2.0.0@3');
});

test('values of a Secret are for channels of charts', async () => {
  const own = [STABLE, web({ valuesSecret: { name: 'web' } }), cluster('oslo', 'v1.31.4')];
  await using memory = await openMemoryHub(own);
  await pass(memory, 0, 1);
  const expected = 'valuesSecret is for a chart, and Channel stable has another entry of web, 1.0.0';
  assert.equal([problemOf(memory), contents(memory)], [expected, '']);
});

test('an add-on whose Channel is gone is removed from its clusters when it is deleted', async () => {
  await using memory = await openMemoryHub([STABLE, web(), cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  await succeed(memory, 'oslo');
  withoutChannel(memory);
  await change(memory, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED } });
  await pass(memory, 1);
  assert.is(contents(memory), 'oslo:-1.0.0@2');
});

test('a cluster that is deleted loses an add-on that cannot be read, and goes after it', async () => {
  const cases: readonly ((memory: MemoryHub) => Promise<void>)[] = [
    async (memory) => Promise.resolve(withoutChannel(memory)),
    async (memory) => change(memory, { ...web({ later: true }), metadata: { name: 'web' } }),
  ];
  for (const spoil of cases) {
    await using memory = await openMemoryHub([STABLE, web(), cluster('oslo', 'v1.31.4'), cluster('paris', 'v1.32.0')]);
    await pass(memory, 0);
    await succeed(memory, 'oslo', 'paris');
    await spoil(memory);
    await pass(memory, 1);
    assert.is(waiting(memory).length, 2);
    const oslo = { kind: 'Cluster', metadata: { name: 'oslo', namespace: 'fleet-oslo', ...DELETED } };
    await change(memory, oslo);
    await pass(memory, 2, 3);
    assert.is(contents(memory), 'oslo:-1.0.0@2 paris:1.1.0@1');
    const finalizers = () => memory.hub.clusters.get({ namespace: 'fleet-oslo', name: 'oslo' })?.finalizers;
    assert.equal(finalizers(), ['fleet.curlew.dev/removal']);
    await succeed(memory, 'oslo');
    await pass(memory, 4, 5);
    assert.equal([contents(memory), finalizers()], ['paris:1.1.0@1', undefined]);
  }
});

test('an add-on that is deleted together with its Channel is handed over to another one of its identity', async () => {
  const chart = hubChart();
  const { version, ...place } = chart.chart;
  const stable = hubChannel('stable', [{ name: 'web', version, chart: place }]);
  const heir = hubAddon('heir', { source: { chart: { ...chart.chart, releaseName: 'web' } } });
  await using memory = await openMemoryHub([stable, web(), cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  await succeed(memory, 'oslo');
  await using other = await openMemoryHub([...memory.objects(), heir]);
  withoutChannel(other);
  await pass(other, 1);
  assert.is(contents(other), 'oslo:1.2.3@1');
  await change(other, { kind: 'FleetAddon', metadata: { name: 'web', ...DELETED } });
  await pass(other, 2, 3);
  const records = other.hub.clusterAddons.values().flatMap((one) => one?.record ?? []);
  assert.equal(
    records.map((one) => [one.addon, one.spec.action, one.spec.revision]),
    [['heir', 'Install', 2]],
  );
  assert.is(problemOf(other), undefined);
});

test('a package and a chart of a channel have the version of their entry', async () => {
  const { version: _version, ...place } = hubChart().chart;
  const addons = [
    { name: 'node', version: '2.8.1', package: 'node-tools-2.8.1.tar.gz', hash: HASH },
    { name: 'web', version: '1.4.2', chart: place },
  ];
  const node = hubAddon('node', { source: { channel: { name: 'stable' } } });
  const own = hubAddon('site', { source: { channel: { name: 'stable', addon: 'web' } } });
  await using memory = await openMemoryHub([hubChannel('stable', addons), node, own, cluster('oslo', 'v1.31.4')]);
  await pass(memory, 0);
  const specs = memory.hub.clusterAddons.values().flatMap((one) => (one?.record ? [one.record] : []));
  assert.equal(
    new Map(specs.map((one) => [keyAt(one), [one.spec.version, one.spec.source, one.spec.identity]])),
    new Map([
      [
        'oslo/node',
        ['2.8.1', { package: { name: 'node-tools', version: '2.8.1', hash: HASH } }, 'addon:kube-system/node'],
      ],
      ['oslo/site', ['1.4.2', { chart: { ...place, version: '1.4.2', releaseName: 'site' } }, 'release:web/site']],
    ]),
  );
});

test('a hub without the kind Channel is led as before, until an add-on names one', async () => {
  await using memory = await openMemoryHub([hubAddon('old'), cluster('oslo', 'v1.31.4')]);
  const problem = 'cannot list channels: not found';
  const { channels: listed, ...others } = memory.hub;
  const channels = new Proxy(listed, { get: (_, field) => (field === 'problem' ? problem : undefined) });
  assert.is((await passHub({ ...others, channels }, NOW)).isDecided, true);
  assert.is(contents(memory), 'oslo:1.2.3@1');
  await using other = await openMemoryHub([web(), cluster('oslo', 'v1.31.4')]);
  const { isDecided, problem: said } = await passHub({ ...other.hub, channels }, NOW);
  assert.equal([isDecided, said, other.writes], [false, problem, []]);
});

test('the Channel of docs/hub.md works in a hub, and commands for channels read it', async () => {
  const [, text = ''] = /## Channels[^]*?```yaml\n([^]*?)```/.exec(await readFile('docs/hub.md', 'utf8')) ?? [];
  const parts = splitYaml(text).map((part) => part.text);
  const objects = parts.map((part) => readYaml('hub.md', part).value as object);
  await using memory = await openMemoryHub([...objects, cluster('oslo', 'v1.31.4'), cluster('paris', 'v1.33.2')]);
  await pass(memory, 0);
  assert.is(contents(memory), 'oslo:1.11.1@1 paris:1.12.0@1');
  await using box = await tree({ 'stable.yaml': parts[0] ?? '' });
  const words = ['channel', 'explain', 'dashboard', 'stable.yaml', '--kubernetes', 'v1.31.4'];
  const { stdout } = await runCommand(words, box.path);
  assert.match(stdout, /^\* +1\.11\.1 /m);
});

test.run();
