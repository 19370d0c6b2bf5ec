/** Which field of a FleetAddon does something for which content, in a folder and in a hub. */
import { readFleet } from '../../src/fleet/read.ts';
import { ADDON_FIELDS } from '../../src/fleet/schema.ts';
import { isObject } from '../../src/core/json.ts';
import * as assert from '../support/assert.ts';
import { addon, channel, chart, cluster, documents } from '../support/fleet-files.ts';
import { openMemoryHub } from '../support/hub-memory.ts';
import { hubAddon, hubChannel, hubChart } from '../support/hub-objects.ts';
import { answering, change, pass } from '../support/hub-passes.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/effects');
const HASH = `sha256:${'0'.repeat(64)}`;
const FILE = { manifest: 'https://example.com/web.yaml', hash: HASH };
const PACKAGE = { package: { name: 'web', version: '1.0.0', hash: HASH } };

/** Values of each field that is not what counts without it. */
const WRITTEN = {
  config: { default: { replicas: 2 } },
  valuesTemplate: 'name: {{ .Cluster.name }}',
  drift: 'Revert',
  prune: 'None',
} as const;

/** Contents for which a field does nothing. */
const IDLE: Readonly<Record<keyof typeof WRITTEN, readonly string[]>> = {
  config: ['manifest'],
  valuesTemplate: ['manifest'],
  drift: ['package'],
  prune: ['chart', 'package'],
};

/** Fields that do the same for all contents, or are refused by their own rules. */
const FOR_ALL = [
  'clusterSelector',
  'valuesConfigMap',
  'valuesSecret',
  'dependsOn',
  'mode',
  'adopt',
  'rollout',
  'remove',
] as const;

test('each field of a FleetAddon has its place in the table', () => {
  assert.equal(Object.keys(ADDON_FIELDS).toSorted(), [...FOR_ALL, ...Object.keys(WRITTEN)].toSorted());
});

/** Fields without effect, by what `fleet check` says about the folder. */
function idleInFolder(source: object, spec: object, ...entries: readonly object[]): readonly string[] {
  const text = documents(
    cluster('paris', { env: 'prod' }),
    addon('web', { source, ...spec }),
    channel('s', ...entries),
  );
  const { diagnostics } = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
  return diagnostics.map(({ severity, code, message, place }) => {
    assert.equal([severity, code, place.file], ['warning', 'fleet/ignored', 'fleet.yaml']);
    return message.split(' has no effect: ')[0] ?? message;
  });
}

/** The same, by the status of the add-on in a hub. */
async function idleInHub(source: object, spec: object, ...entries: readonly object[]): Promise<readonly string[]> {
  const web = hubAddon('web', { source, ...spec });
  await using memory = await openMemoryHub([hubChannel('s', entries), web, answering('oslo', 'v1.32.0')]);
  await pass(memory, 0);
  const { status } = memory.hub.addons.get({ name: 'web' }) ?? {};
  const asks = isObject(status) && typeof status['asks'] === 'string' ? status['asks'].split('; ') : [];
  return asks.map((one) => one.split(' has no effect: ')[0] ?? one);
}

function expected(content: string): readonly string[] {
  return Object.entries(IDLE).flatMap(([field, contents]) => (contents.includes(content) ? [field] : []));
}

const entry = { name: 'web', version: '1.0.0' };
const CHART = { ...entry, chart: chart('web') };
const hubEntry = { ...entry, chart: { repoURL: 'https://charts.example.com', name: 'web' } };
const byChannel = { channel: { name: 's' } };

for (const [content, folder, hub] of [
  ['manifest', { manifest: 'web.yaml' }, FILE],
  ['chart', { chart: chart('web') }, hubChart()],
  ['package', undefined, PACKAGE],
  ['template', undefined, { template: 'web' }],
] as const) {
  test(`fields without effect for a ${content} are named, and defaults are not`, async () => {
    if (folder !== undefined) assert.equal(idleInFolder(folder, WRITTEN), expected(content));
    assert.equal(await idleInHub(hub, WRITTEN), expected(content));
    assert.equal(await idleInHub(hub, { drift: 'Warn', prune: 'Auto' }), []);
  });
}

test('for a channel, what does nothing for all of its entries is named', async () => {
  assert.equal(idleInFolder(byChannel, WRITTEN, CHART), expected('chart'));
  assert.equal(await idleInHub(byChannel, WRITTEN, hubEntry), expected('chart'));
  const mixed = { ...entry, version: '2.0.0' };
  assert.equal(idleInFolder(byChannel, WRITTEN, CHART, { ...mixed, manifest: 'web.yaml' }), []);
  assert.equal(await idleInHub(byChannel, WRITTEN, hubEntry, { ...mixed, ...FILE }), []);
});

test('what an entry of a channel requires is named until dependsOn has it', () => {
  const requires = [{ name: 'dns', version: '>=1.0.0' }, { name: 'net' }];
  const entries = ['1.0.0', '2.0.0'].map((version) => ({ ...CHART, version, requires }));
  const read = (spec: object) => {
    const [web, ...others] = [addon('web', { source: byChannel, ...spec }), addon('dns'), addon('net')];
    const text = documents(cluster('paris', { env: 'prod' }), web, ...others, channel('s', ...entries));
    return readFleet([{ path: 'fleet.yaml', folder: '.', text }]).diagnostics;
  };
  assert.equal(
    read({ dependsOn: ['net'] }).map(({ severity, message, hint }) => `${severity}: ${message}; ${hint}`),
    [
      'warning: requires in the entry of the channel s has no effect: the order of add-ons of a fleet is in their dependsOn; write dependsOn: [dns]',
    ],
  );
  assert.equal(read({ dependsOn: ['dns', 'net'] }), []);
});

test('a field without effect holds nothing, and leaves the status when it is gone', async () => {
  await using memory = await openMemoryHub([hubAddon('web', { prune: 'None' }), answering('oslo', 'v1.32.0')]);
  await pass(memory, 0);
  assert.is(memory.hub.clusterAddons.values().length, 1);
  const asks = (): unknown => {
    const { status } = memory.hub.addons.get({ name: 'web' }) ?? {};
    return isObject(status) ? status['asks'] : undefined;
  };
  assert.match(String(asks()), /^prune has no effect: Helm deletes what a chart no longer has/);
  await change(memory, { ...hubAddon('web'), metadata: { name: 'web', generation: 2 } });
  await pass(memory, 1);
  assert.is(asks(), undefined);
});

test.run();
