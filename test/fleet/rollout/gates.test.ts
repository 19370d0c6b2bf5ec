import { parseRange } from '../../../src/cluster/channel/range.ts';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import type { Strategy } from '../../../src/fleet/rollout/strategy.ts';
import * as assert from '../../support/assert.ts';
import { addon, cluster, ring, ringGroup, TestFleet } from '../../support/fleet.ts';
import { suite } from '../../support/suite.ts';

const test = suite('fleet/rollout/gates');

test('an add-on waits for those it depends on, in their present version, cluster by cluster', () => {
  const world = new TestFleet([cluster('a'), cluster('b')], addon('app', { dependsOn: ['base'] }), addon('base'));
  assert.equal(world.begin('app'), []);
  assert.is(world.why('a', 'app'), 'Dependency: base is not ready there');
  world.report('Succeeded', 'a');
  assert.equal(world.begin('app'), ['a']);
  world.settle();
  world.release('base', '1.1.0');
  world.release('app', '1.1.0');
  assert.equal(world.begin('app'), []);
});

test('a dependency that does not exist, or a circle of them, waits with its reason', () => {
  const world = new TestFleet(
    [cluster('a')],
    addon('a1', { dependsOn: ['b1'] }),
    addon('b1', { dependsOn: ['a1'] }),
    addon('c1', { dependsOn: ['nothing'] }),
  );
  assert.equal(world.begin(), []);
  assert.equal(
    ['a1', 'b1', 'c1'].map((name) => world.why('a', name)),
    [
      'Dependency: it depends on itself: a1 → b1 → a1',
      'Dependency: it depends on itself: b1 → a1 → b1',
      'Dependency: it depends on nothing, which does not exist',
    ],
  );
});

test('what another owner has installed is refused unless it is adopted', () => {
  const world = new TestFleet(
    [cluster('a', { installed: { 'addon:net': { owner: 'channel:stable' } } }), cluster('b')],
    addon('net'),
  );
  assert.equal(world.begin(), ['b']);
  assert.is(world.why('a'), 'Owner: it belongs to channel:stable');
  assert.equal(world.status('net')?.counts, { Skipped: 1, Progressing: 1 });
  world.change('net', { adopt: true });
  assert.equal(world.begin(), ['a']);
});

test('of two add-ons with one identity, the first one gets a cluster', () => {
  const expected = 'Owner: it belongs to fleet:one, which selects this cluster, too: narrow one of the two selectors';
  const world = new TestFleet([cluster('a')], addon('two', { identity: 'x' }), addon('one', { identity: 'x' }));
  assert.equal(world.begin('one'), ['a']);
  assert.is(world.why('a', 'two'), expected);
  world.report('Succeeded', 'a');
  world.addons.push(addon('first', { identity: 'x' }));
  assert.equal(world.begin(), []);
  assert.is(world.why('a', 'first'), expected);
});

test('a lower version is refused unless a person allows it, or it was known as good', () => {
  const world = new TestFleet([cluster('a')], addon('net'));
  world.settle();
  world.release('net', '0.9.0');
  assert.equal(world.begin(), []);
  assert.is(world.why('a'), 'Downgrade: 0.9.0 is lower than the installed 1.0.0: approve the downgrade if it is meant');
  assert.is(world.status('net')?.asks, '0.9.0 is lower than the installed 1.0.0: approve the downgrade if it is meant');
  world.change('net', { lapsed: { at: world.now, downgrade: true } });
  assert.match(world.why('a') ?? '', /; the approval of \S+Z was for another content: approve again$/);
  world.order('net', { downgrade: true });
  assert.equal(world.begin(), ['a']);
  world.release('net', '2.0.0');
  world.report('Failed', 'a');
  world.step();
  world.release('net', '1.0.0');
  assert.equal(world.begin(), ['a']);
});

test('of what a person may approve, a status names what holds more than one cluster', () => {
  const rollout = { groups: [{ name: 'shop', selector: {} }], approval: ['shop'] };
  const world = new TestFleet(
    ['a', 'b'].map((name) => cluster(name)),
    addon('net', { rollout }),
  );
  world.order('net', { groups: ['shop'] });
  world.settle();
  world.records = world.records.map((record) => {
    return record.cluster === 'a' ? { ...record, spec: { ...record.spec, version: '3.0.0' } } : record;
  });
  world.release('net', '2.0.0');
  assert.equal(world.begin(), []);
  assert.match(world.why('a') ?? '', /^Downgrade: /);
  assert.is(world.status('net')?.asks, "group shop waits for a person's approval");
});

test('of two entries of one version, a cluster whose API servers answer with two versions keeps the one for the later Kubernetes', () => {
  // The order of entries says nothing about Kubernetes.
  const channel = ['1.33.x', '<1.33.0', '>=1.34.0'].map((text, at) => {
    const { range } = parseRange(text, 'native');
    return { name: 'net', version: '1.0.0', kubernetesVersion: text, range, content: { manifest: String(at) } };
  });
  const world = new TestFleet([cluster('a')], addon('net', { source: { channel, addon: 'net' } }));
  const has = (): string => String(world.spec('a')?.source['manifest']);
  const said = [32, 33, 32, 33, 34, 33].map((minor) => {
    world.changeCluster('a', { kubernetes: `v1.${minor}.1` });
    world.begin();
    world.report('Succeeded', 'a');
    return `${has()} ${world.why('a') ?? ''}`.trim();
  });
  const held = (minor: number): string =>
    `Downgrade: the installed 1.0.0 is for a later Kubernetes than v1.${minor}.1: approve the downgrade if it is meant`;
  assert.equal(said, ['1', '0', `0 ${held(32)}`, '0', '2', `2 ${held(33)}`]);
  world.change('net', { source: { channel: channel.slice(0, 2), addon: 'net' } });
  world.begin();
  assert.is(has(), '0');
});

test('an approval of lower versions counts for what was there when it was given, not for what begins later', () => {
  const channel = ['<1.31.0', '>=1.31.0 <1.32.0', '>=1.32.0'].map((text, at) => {
    const { range } = parseRange(text, 'native');
    return { name: 'net', version: `${at + 1}.0.0`, kubernetesVersion: text, range, content: { manifest: String(at) } };
  });
  const world = new TestFleet([cluster('a'), cluster('b')], addon('net', { source: { channel, addon: 'net' } }));
  world.settle();
  world.changeCluster('a', { kubernetes: 'v1.30.0' });
  assert.equal(world.begin(), []);
  world.order('net', { downgrade: true });
  assert.equal(world.begin(), ['a']);
  world.report('Succeeded', 'a');
  world.now += 3600;
  world.changeCluster('b', { kubernetes: 'v1.32.0' });
  assert.equal(world.begin(), ['b']);
  world.report('Succeeded', 'b');
  // An API server that has not been upgraded yet answers.
  world.changeCluster('b', { kubernetes: 'v1.31.2' });
  assert.equal(world.begin(), []);
  assert.match(
    world.why('b') ?? '',
    /^Downgrade: 2.0.0 is lower than .*; the approval of \S+Z is older than what is installed: approve again$/,
  );
  world.now += 10;
  world.order('net', { downgrade: true });
  assert.equal(world.begin(), ['b']);
});

test('a cluster whose windows cannot be read waits, and no other waits for it', () => {
  const rollout: Strategy = {
    type: 'Progressive',
    groups: [ringGroup('canary')],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
  };
  const world = new TestFleet(
    [...ring('canary', 'w1', 'w2'), ...ring('shop', 's1')],
    addon('net', { rollout }),
    addon('app', { rollout, dependsOn: ['net'] }),
  );
  world.settle();
  world.changeCluster('w1', { windows: [{ cron: '99 0 * * *', duration: '1h' }] });
  for (const name of ['net', 'app']) {
    world.release(name, '2.0.0');
    assert.equal(world.begin(), ['w2']);
    world.report('Succeeded', 'w2');
    assert.equal(world.begin(), ['s1']);
    world.report('Succeeded', 's1');
    assert.is(world.why('w1', name), 'Window: cannot read the window: "99" is not a minute');
  }
  world.changeCluster('w1', { windows: [{ cron: '* * * * *', duration: '1h' }] });
  assert.equal(world.begin('net'), ['w1']);
});

test('a channel gives each cluster what fits its Kubernetes, and a new entry is rolled out', () => {
  const text = (newest: string) => `apiVersion: fleet.curlew.dev/v1alpha1
kind: Channel
metadata: {name: stable}
spec:
  addons:
  - {name: net, version: 1.0.0, kubernetesVersion: ">=1.30.0 <1.31.0", package: net-1.0.0.tar.gz}
  - {name: net, version: ${newest}, kubernetesVersion: ">=1.31.0 <1.33.0", package: net-${newest}.tar.gz}
`;
  const source = (newest: string) => {
    const { channel } = readChannel('stable.yaml', text(newest));
    assert.ok(channel);
    return { channel: channel.entries, addon: 'net' };
  };
  const world = new TestFleet(
    ['v1.30.1', 'v1.31.4', 'v1.33.0'].map((kubernetes, at) => cluster(`c${at}`, { kubernetes })),
    addon('net', { source: source('1.1.0') }),
  );
  assert.equal(world.begin(), ['c0', 'c1']);
  assert.equal([world.spec('c0')?.version, world.spec('c1')?.version], ['1.0.0', '1.1.0']);
  assert.is(world.why('c2'), 'Content: no entry of the channel fits Kubernetes v1.33.0');
  world.report('Succeeded', 'c0', 'c1');
  world.addons = world.addons.map((one) => ({ ...one, source: source('1.2.0') }));
  assert.equal(world.begin(), ['c1']);
  world.report('Succeeded', 'c1');
  world.changeCluster('c0', { kubernetes: 'v1.31.0' });
  assert.equal(world.begin(), ['c0']);
});

test('a template sees the cluster, is below its own values, and one that fails concerns only its cluster', () => {
  const valuesTemplate = `name: {{ .Cluster.name }}
minor: {{ .Cluster.kubernetes.minor }}
pods: [{{ index .Cluster.networks.pods 0 }}]
addon: {{ .Addon.name }} {{ .Addon.version }}
mtu: 1
`;
  const config = {
    default: { mtu: 0, base: true },
    groups: [{ selector: { matchLabels: { ring: 'x' } }, values: { x: 1 } }],
  };
  const world = new TestFleet(
    [cluster('a', { labels: { ring: 'x' }, networks: { pods: ['10.0.0.0/8'] } }), cluster('b')],
    addon('net', { valuesTemplate, config }),
  );
  assert.equal(world.begin(), ['a']);
  const values = { mtu: 1, base: true, x: 1, name: 'a', minor: 31, pods: ['10.0.0.0/8'], addon: 'net 1.0.0' };
  assert.equal(world.spec('a')?.values, values);
  assert.match(world.why('b') ?? '', /^Content: cannot render the values: unknown field .pods/);
  world.records = world.records.map((record) => ({ ...record, config: { mtu: 9000 } }));
  assert.equal(world.begin(), ['a']);
  assert.equal(world.spec('a')?.values, { ...values, mtu: 9000 });
});

test('facts alone render nothing again, and labels do', () => {
  const world = new TestFleet(
    [cluster('a', { facts: { nodes: 1 } })],
    addon('net', {
      valuesTemplate: 'nodes: {{ .Cluster.facts.nodes }}\nzone: {{ .Cluster.labels.zone | default "none" }}\n',
    }),
  );
  world.changeCluster('a', { labels: { zone: 'east' } });
  world.settle();
  world.changeCluster('a', { facts: { nodes: 2 } });
  assert.equal(world.begin(), []);
  world.changeCluster('a', { labels: { zone: 'west' } });
  assert.equal(world.begin(), ['a']);
  assert.equal(world.spec('a')?.values, { nodes: 2, zone: 'west' });
});

test('templates of HelmChartProxies see the object of Cluster API (HS1, HS2)', () => {
  const object = {
    spec: { clusterNetwork: { apiServerPort: 6443, pods: { cidrBlocks: ['192.168.0.0/16', '10.0.0.0/16'] } } },
  };
  const valuesTemplate = `port: {{ .Cluster.spec.clusterNetwork.apiServerPort }}
pools:{{range $i, $cidr := .Cluster.spec.clusterNetwork.pods.cidrBlocks }}
- cidr: {{ $cidr }}{{end}}
`;
  const world = new TestFleet([cluster('a', { object })], addon('net', { valuesTemplate }));
  world.step();
  const pools = [{ cidr: '192.168.0.0/16' }, { cidr: '10.0.0.0/16' }];
  assert.equal(world.spec('a')?.values, { port: 6443, pools });
});

test('what holds one cluster alone holds no other, and a closed window of a canary does', () => {
  const rollout = {
    type: 'Progressive',
    groups: [{ name: 'canary', selector: { matchLabels: { ring: 'canary' } } }],
    mandatoryDecisionGroups: [{ groupName: 'canary' }],
  } as const;
  const world = new TestFleet([...ring('canary', 'v', 'w'), ...ring('shop', 's')], addon('net', { rollout }));
  world.changeCluster('w', { windows: [{ cron: '0 0 1 1 *', duration: '1h' }] });
  assert.equal(world.begin(), ['v']);
  world.report('Succeeded', 'v');
  assert.equal(world.begin(), []);
  world.changeCluster('w', { windows: [], paused: true });
  assert.equal(world.begin(), ['s']);
});

test.run();
