import { Ajv } from 'ajv';
import { readFile } from 'node:fs/promises';
import { CLUSTER_SCHEMA, FLEET_ADDON_SCHEMA } from '../../scripts/docs/fleet-schemas.ts';
import { HUB_KINDS } from '../../src/fleet/hub/hub-kinds.ts';
import { KINDS } from '../../src/fleet/schema.ts';
import { convert, fits } from '../../src/core/schema.ts';
import { readFleet } from '../../src/fleet/read.ts';
import * as assert from '../support/assert.ts';
import { addon, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/schema');
const KEY = `SHA256:${'A'.repeat(43)}`;
const ajv = new Ajv({ strict: true, allowUnionTypes: true });
const isCluster = ajv.compile(CLUSTER_SCHEMA);
const isAddon = ajv.compile(FLEET_ADDON_SCHEMA);

for (const [file, schema] of [
  ['cluster', CLUSTER_SCHEMA],
  ['fleet-addon', FLEET_ADDON_SCHEMA],
] as const) {
  test(`docs/schemas/${file}.schema.json is what the fields make of it (npm run docs)`, async () => {
    assert.equal(JSON.parse(await readFile(`docs/schemas/${file}.schema.json`, 'utf8')), schema);
  });
}

for (const [title, document, isGood] of [
  ['a cluster', cluster('paris', { env: 'prod' }, { paused: true }), true],
  ['a cluster with a window', cluster('paris', {}, { windows: [{ cron: '0 22 * * *', duration: '4h' }] }), true],
  ['a cluster without access', cluster('paris', {}, { access: undefined }), false],
  ['a cluster with an unknown field', cluster('paris', {}, { nodes: [] }), false],
  [
    'a cluster with a machine',
    cluster('paris', {}, { machines: [{ name: 'n1', role: 'worker', address: '10.0.0.1' }] }),
    true,
  ],
  ...[KEY, 'ssh-ed25519 AAAA'].map(
    (hostKey) =>
      [
        `a machine with the host key ${hostKey}`,
        cluster('paris', {}, { machines: [{ name: 'n1', role: 'worker', address: '10.0.0.1', ssh: { hostKey } }] }),
        true,
      ] as const,
  ),
  [
    'a machine that would be an option of ssh',
    cluster('paris', {}, { machines: [{ name: 'n1', role: 'worker', address: '-F' }] }),
    false,
  ],
  ...[
    { name: '-x' },
    { ssh: { hostKey: 'abc' } },
    { ssh: { hostKey: 'ssh-ed25519' } },
    { ssh: { user: '-l', hostKey: KEY } },
    { ssh: { via: '-oX', hostKey: KEY } },
    { ssh: { via: 'jump -oX=y', hostKey: KEY } },
    { ssh: { via: 'a,b;c', hostKey: KEY } },
  ].map(
    (part) =>
      [
        `a machine with ${JSON.stringify(part)}`,
        cluster('paris', {}, { machines: [{ name: 'n1', role: 'worker', address: '10.0.0.1', ...part }] }),
        false,
      ] as const,
  ),
  ['a machine without role', cluster('paris', {}, { machines: [{ name: 'n1' }] }), false],
  ['an add-on', addon('web'), true],
  ['an add-on with sizes', addon('web', { rollout: { maxConcurrency: 2, maxFailures: '10%' } }), true],
  ['an add-on with a wrong size', addon('web', { rollout: { maxConcurrency: 'all' } }), false],
  ['an add-on without selector', addon('web', { clusterSelector: undefined }), false],
  ['an add-on with another mode', addon('web', { mode: 'Once' }), false],
] as const) {
  test(`${title}: schema and tool agree`, () => {
    const plain = JSON.parse(JSON.stringify(document)) as { readonly kind: keyof typeof KINDS };
    const validate = plain.kind === 'Cluster' ? isCluster : isAddon;
    assert.equal([validate(plain), fits(KINDS[plain.kind], plain)], [isGood, isGood], JSON.stringify(validate.errors));
  });
}

test('what is wrong about the connection to a machine is named as what it must be', () => {
  const ssh = { user: '-l', via: '-oX', hostKey: KEY };
  const machines = [{ name: 'n1', role: 'worker', address: '-F', ssh }];
  const text = documents(cluster('paris', {}, { machines }));
  const { diagnostics } = readFleet([{ path: 'paris.yaml', folder: '.', text }]);
  assert.equal(
    diagnostics.map(({ message }) => message),
    [
      'spec.machines[0].address must be a name or an address of a host',
      'spec.machines[0].ssh.user must be the name of a user',
      'spec.machines[0].ssh.via must be a host to connect through, as [USER@]HOST[:PORT]',
    ],
  );
});

interface Part {
  readonly pipe?: readonly Part[];
  readonly wrapped?: Part;
  readonly item?: Part;
  readonly entries?: Readonly<Record<string, Part>>;
}

/** `rollout.groups[].name` */
function pathsOf({ pipe, wrapped, item, entries }: Part, at = ''): readonly string[] {
  const shape = pipe?.find((one) => one.pipe ?? one.wrapped ?? one.item ?? one.entries);
  if (shape !== undefined) return pathsOf(shape, at);
  if (wrapped !== undefined) return pathsOf(wrapped, at);
  if (item !== undefined) return pathsOf(item, `${at}[]`);
  if (entries === undefined) return [at];
  return Object.entries(entries).flatMap(([name, part]) => pathsOf(part, at === '' ? name : `${at}.${name}`));
}

test('a chart in a folder may wait, take back what fails, and have no version, as in a hub', () => {
  const chart = { repoURL: 'https://charts.example.com', name: 'web', wait: true, atomic: true };
  const text = documents(cluster('paris', { env: 'prod' }), addon('web', { source: { chart } }));
  const { addons, diagnostics } = readFleet([{ path: 'fleet.yaml', folder: '.', text }]);
  assert.equal(diagnostics, []);
  const source = addons[0]?.entry?.source;
  assert.ok(source?.type === 'chart' && source.chart.wait && source.chart.atomic);
  assert.is(source.chart.version, undefined);
});

test('a folder and a hub have the same fields, but for what only one of them can act on', () => {
  const folder = KINDS as Readonly<Record<string, Part>>;
  const hub = HUB_KINDS as Readonly<Record<string, { readonly spec: Part }>>;
  const differences = ['FleetAddon', 'Cluster'].map((kind) => {
    const inFolder = pathsOf(folder[kind] ?? {}).flatMap((path) => path.split(/^spec\./).slice(1));
    const [own, other] = [inFolder, pathsOf(hub[kind]?.spec ?? {})];
    const only = (all: readonly string[], others: readonly string[]) => all.filter((one) => !others.includes(one));
    return { folder: only(own, other).filter((one) => !one.startsWith('machines[].')), hub: only(other, own) };
  });
  assert.equal(differences, [
    {
      folder: [],
      hub: [
        // Paths of a folder are addresses in a hub, whose content is known by its digest.
        'source.hash',
        'source.chart.package',
        'source.chart.credentials.key',
        'source.chart.credentials.secret.name',
        'source.chart.credentials.secret.namespace',
        'source.chart.tlsConfig.caSecret.name',
        'source.chart.tlsConfig.caSecret.namespace',
        'source.chart.tlsConfig.insecureSkipTLSVerify',
        'source.package.name',
        'source.package.version',
        'source.package.hash',
        'source.template',
      ],
    },
    { folder: ['access.kubeconfig', 'installer'], hub: ['access.kubeconfigSecret'] },
  ]);
});

for (const [kind, inFolder, inHub] of [
  ['Cluster', ['access.kubeconfig', 'installer', 'machines'], ['access.kubeconfigSecret']],
  [
    'FleetAddon',
    [],
    ['chart.package', 'chart.credentials', 'chart.tlsConfig', 'hash', 'package', 'template'].map(
      (one) => `source.${one}`,
    ),
  ],
] as const) {
  test(`what a ${kind} has only in a folder, or only in a hub, is refused by name in the other`, () => {
    const only = (path: string): object =>
      path.split('.').reduceRight<object>((value, name) => ({ [name]: value }), {});
    for (const path of inFolder) {
      const read = convert(HUB_KINDS[kind].spec, only(path));
      const found = 'problems' in read ? read.problems.map(({ message }) => message) : [];
      assert.ok(found.includes(`${path}: unknown field`), path);
    }
    for (const path of inHub) {
      const document = kind === 'Cluster' ? cluster('paris', {}, only(path)) : addon('web', only(path));
      const { diagnostics } = readFleet([{ path: 'fleet.yaml', folder: '.', text: documents(document) }]);
      const found = diagnostics.map(({ severity, message }) => `${severity} ${message}`);
      assert.ok(found.includes(`error spec.${path}: unknown field`), path);
    }
  });
}

test.run();
