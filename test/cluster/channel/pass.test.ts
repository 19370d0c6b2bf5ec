import type { Compat } from '../../../src/cluster/channel/channel.ts';
import { planPass, withContent, type ClusterFacts, type PassOptions } from '../../../src/cluster/channel/pass.ts';
import { parseTriple, type Triple } from '../../../src/cluster/channel/range.ts';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import type { AddonRecord, Annotated } from '../../../src/cluster/channel/record.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/pass');

const LOCATION = '/srv/c.yaml';
const OURS = 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nmetadata: {name: prod}\n';
const KOPS = 'kind: Addons\nmetadata: {name: prod}\n';
const hashes = { h1: '1'.repeat(64), h2: '2'.repeat(64) };

const facts = (installed: Readonly<Record<string, Annotated>>, more: Partial<ClusterFacts> = {}): ClusterFacts => ({
  kubernetes: parseTriple('v1.30.0') as Triple,
  annotations: new Map(Object.entries(installed)),
  records: new Map(Object.entries(installed).map(([key, applied]) => [key, recordOf(key, { applied })])),
  installer: new Set(),
  ...more,
});

const recordOf = (key: string, more: Partial<AddonRecord> = {}): AddonRecord => ({
  addon: key.split(':')[1] ?? '',
  namespace: key.split(':')[0] ?? '',
  owner: 'channel:prod',
  state: 'Succeeded',
  since: '2026-01-01T00:00:00.000Z',
  reason: '',
  history: [],
  ...more,
});

const channel = (entries: readonly string[], { compat = 'native', location = LOCATION, kind = OURS } = {}) => {
  const text = `${kind}spec:\n  addons:\n${entries.map((entry) => `  - ${entry}\n`).join('')}`;
  const read = readChannel(location, text, compat as Compat);
  assert.ok(read.channel, JSON.stringify(read.diagnostics));
  return read.channel;
};

type Content = keyof typeof hashes;
const table: readonly (readonly [
  what: string,
  entry: { readonly version?: string; readonly hash?: Content },
  /** What is in the manifest of an entry without hash. */
  content: Content | undefined,
  expected: Readonly<Record<Compat, string>>,
])[] = [
  ['greater', { version: '1.2.0' }, 'h2', { native: 'update', kops: 'none', 'kops-2017': 'update' }],
  ['greater', { version: '1.2.0', hash: 'h2' }, undefined, { native: 'update', kops: 'update', 'kops-2017': 'update' }],
  [
    'greater, equal',
    { version: '1.2.0', hash: 'h1' },
    undefined,
    { native: 'update', kops: 'none', 'kops-2017': 'update' },
  ],
  ['same', { version: '1.1.0' }, 'h1', { native: 'none', kops: 'none', 'kops-2017': 'none' }],
  ['same, changed', { version: '1.1.0' }, 'h2', { native: 'update', kops: 'none', 'kops-2017': 'none' }],
  ['same', { version: '1.1.0', hash: 'h1' }, undefined, { native: 'none', kops: 'none', 'kops-2017': 'none' }],
  [
    'same, changed',
    { version: '1.1.0', hash: 'h2' },
    undefined,
    { native: 'update', kops: 'update', 'kops-2017': 'update' },
  ],
  ['lower', { version: '1.0.0' }, 'h1', { native: 'refused', kops: 'none', 'kops-2017': 'refused' }],
  ['lower, changed', { version: '1.0.0' }, 'h2', { native: 'refused', kops: 'none', 'kops-2017': 'refused' }],
  ['lower', { version: '1.0.0', hash: 'h1' }, undefined, { native: 'refused', kops: 'none', 'kops-2017': 'refused' }],
  [
    'lower, changed',
    { version: '1.0.0', hash: 'h2' },
    undefined,
    { native: 'refused', kops: 'update', 'kops-2017': 'refused' },
  ],
  ['no', {}, 'h1', { native: 'none', kops: 'none', 'kops-2017': 'none' }],
  ['no, changed', {}, 'h2', { native: 'refused', kops: 'none', 'kops-2017': 'none' }],
  ['no', { hash: 'h1' }, undefined, { native: 'none', kops: 'none', 'kops-2017': 'none' }],
  ['no, changed', { hash: 'h2' }, undefined, { native: 'refused', kops: 'update', 'kops-2017': 'refused' }],
];

for (const [what, { version, hash }, content, expected] of table) {
  const title = `${what} version, ${hash === undefined ? 'without hash' : 'with hash'}`;
  test(`an entry over 1.1.0: ${title}: ${JSON.stringify(expected)}`, () => {
    for (const compat of ['native', 'kops', 'kops-2017'] as const) {
      // The entry is in an index of kops, since a Channel is always read by the native rules.
      const written = { ...(version && { version }), ...(hash && { manifestHash: hashes[hash] }) };
      const one = channel([JSON.stringify({ name: 'web', manifest: 'm.yaml', ...written })], { compat, kind: KOPS });
      // To kops, a manifest without hash in the index has none in the record either.
      const recorded = compat === 'native' || hash !== undefined ? { hash: hashes.h1 } : {};
      const installed = { 'kube-system:web': { version: '1.1.0', generation: 1, ...recorded } };
      const known = facts(installed);
      const plan = (options: PassOptions = {}) =>
        planPass([one], known, options).addons.map((planned) =>
          compat === 'native' && content ? withContent(planned, hashes[content], { facts: known, options }) : planned,
        )[0];
      assert.is(plan()?.action, expected[compat], compat);
      const isHeld = expected[compat] === 'refused';
      assert.is(plan()?.hint, isHeld ? '--allow-downgrade applies it' : undefined);
      assert.is(plan({ allowDowngrade: true })?.action, isHeld ? 'downgrade' : expected[compat], compat);
    }
  });
}

test('an annotation without a record is taken over by name; by the rules of kops it is the record', () => {
  const entries = ['{name: web, version: 1.0.0, manifest: m.yaml}', '{name: dns, version: 1.0.0, manifest: m.yaml}'];
  const annotations = {
    'kube-system:web': { version: '1.0.0', channel: LOCATION, generation: 1 },
    'kube-system:dns': { generation: 1 },
  };
  const alone = facts(annotations, { records: new Map() });
  const plan = (options?: PassOptions, more: Parameters<typeof channel>[1] = {}) =>
    planPass([channel(entries, more)], alone, options).addons.map(({ action, reason, hint }) => [action, reason, hint]);
  assert.equal(plan(), [
    [
      'refused',
      `it belongs to another program, which applied it from ${LOCATION}`,
      '--take-over=web makes it an add-on of this channel',
    ],
    ['refused', 'it belongs to another program', '--take-over=dns makes it an add-on of this channel'],
  ]);
  const actionsOf = (rows: ReturnType<typeof plan>) => rows.map(([action]) => action);
  assert.equal(actionsOf(plan({ takeOver: ['web'] })), ['update', 'refused']);
  assert.equal(actionsOf(plan({ takeOver: true })), ['update', 'update']);
  assert.equal(actionsOf(plan({}, { compat: 'kops', kind: KOPS })), ['none', 'none']);
});

test('each add-on of each channel is planned, unlisted, unfit or warned of', () => {
  const web = '{name: web, version: 1.0.0, kubernetesVersion: "<1.30.0", manifest: m.yaml}';
  const one = channel([web, '{name: dns, version: 1.0.0, manifest: m.yaml}', web.replace('web', 'log')]);
  const other = channel(['{name: dns, version: 1.0.0, manifest: m.yaml}'], { location: '/srv/d.yaml' });
  const pass = planPass([one, other], facts({ 'kube-system:log': { version: '1.0.0', channel: LOCATION } }));
  assert.equal(
    pass.addons.map(({ entry }) => entry.name),
    ['dns'],
  );
  assert.equal(pass.unfit, [
    { addon: 'web', channel: LOCATION, reason: 'no entry fits Kubernetes 1.30.0: web 1.0.0 is for <1.30.0' },
  ]);
  assert.equal(
    pass.unlisted.map(({ addon, reason }) => `${addon}: ${reason}`),
    ['log: no entry fits Kubernetes 1.30.0: log 1.0.0 is for <1.30.0'],
  );
  assert.equal(pass.warnings, [`dns of /srv/d.yaml is ignored: ${LOCATION} has it, too`]);
});

test('an add-on that a moved channel no longer has, or has in another namespace, is unlisted', () => {
  const installed = { 'kube-system:web': { channel: '/old/c.yaml' }, 'kube-system:dns': { channel: '/old/c.yaml' } };
  const moved = channel(['{name: dns, namespace: sites, version: 1.0.0, manifest: m.yaml}']);
  assert.equal(
    planPass([moved], facts(installed)).unlisted.map(({ addon, reason }) => `${addon}: ${reason}`),
    [
      'web: the channel no longer has it; it was applied from /old/c.yaml',
      'dns: the channel has it in namespace sites',
    ],
  );
});

test.run();
