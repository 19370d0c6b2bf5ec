import * as fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { Candidate, Compat } from '../../../src/cluster/channel/channel.ts';
import { bestOf, choose, decideVersion, explainChoice, replaces } from '../../../src/cluster/channel/choose.ts';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import { annotationKey, encodeAnnotation, readAnnotations, recordKey } from '../../../src/cluster/channel/record.ts';
import { parseRange, parseTriple, type Triple } from '../../../src/cluster/channel/range.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('cluster/channel/choose');

interface Scenario {
  readonly id: string;
  readonly [field: string]: unknown;
}
const path = join(import.meta.dirname, '../../fixtures/channels/kops-channels-scenarios.yaml');
const { scenarios } = parse(await readFile(path, 'utf8')) as { readonly scenarios: readonly Scenario[] };
const scenario = (id: string): Scenario => scenarios.find((one) => one.id === id) as Scenario;

const version = (text: string): Triple => parseTriple(text) as Triple;
const entry = (text: string, range = '', more: Partial<Candidate> = {}): Candidate => ({
  name: 'a',
  version: text,
  range: parseRange(range, 'native').range,
  ...more,
});

const DNS = `kind: Addons
metadata: {name: kube-dns}
spec:
  addons:
  - {version: 1.6.0, kubernetesVersion: "<1.6.0", id: pre-k8s-16, manifest: pre-k8s-16.yaml}
  - {version: 1.6.0, kubernetesVersion: ">=1.6.0", id: k8s-16, manifest: k8s-16.yaml}
`;

/** What one pass applies, with the annotations of its namespace before and after. */
function pass(
  index: string,
  {
    kubernetes,
    annotations,
    compat,
  }: { readonly kubernetes: string; readonly annotations: Record<string, string>; readonly compat: Compat },
): string | null {
  const { channel } = readChannel('s3://b/addon.yaml', index, compat);
  assert.ok(channel);
  const [chosen] = choose(channel.entries, version(kubernetes), compat).values();
  assert.ok(chosen);
  const { records } = readAnnotations([{ name: chosen.namespace, annotations }]);
  const recorded = records.get(recordKey(chosen.namespace, chosen.name));
  const { action } = decideVersion(chosen, recorded, {
    entries: channel.entries,
    kubernetes: version(kubernetes),
    compat,
  });
  if (action !== 'install' && action !== 'update') return null;
  annotations[annotationKey(chosen.name)] = encodeAnnotation({ ...chosen, channel: channel.location }, compat);
  return chosen.source?.type === 'manifest' ? chosen.source.manifest.replace('.yaml', '') : '';
}

test('KS1: an upgrade of Kubernetes and the way back apply the other entry, each once', () => {
  const { steps } = scenario('KS1') as unknown as { steps: { kubernetes: string; expectApplied: string | null }[] };
  const annotations: Record<string, string> = {};
  for (const { kubernetes, expectApplied } of steps) {
    assert.is(pass(DNS, { kubernetes, annotations, compat: 'kops-2017' }), expectApplied);
  }
  assert.is(steps.length, 4);
});

test('KS2: nothing is applied until the next version is published', () => {
  const index = (...versions: string[]): string =>
    `kind: Addons\nspec:\n  addons:\n${versions.map((one) => `  - {name: dash, version: ${one}, manifest: ${one}.yaml}\n`).join('')}`;
  for (const compat of ['kops-2017', 'native'] as const) {
    const annotations: Record<string, string> = {};
    const applied = [index('1.5.0'), index('1.5.0'), index('1.5.0', '1.5.1')].map((text) =>
      pass(text, { kubernetes: 'v1.30.0', annotations, compat }),
    );
    assert.equal(applied, ['1.5.0', null, '1.5.1']);
  }
});

test('KS7: a record in another namespace does not count', () => {
  const { recorded } = scenario('KS7') as unknown as { recorded: { namespace: string; addon: string; hash: string } };
  const annotations = { [`addons.k8s.io/${recorded.addon}`]: encodeAnnotation({ hash: recorded.hash }, 'kops') };
  const { records } = readAnnotations([{ name: recorded.namespace, annotations }]);
  const chosen = { name: 'test', hash: 'h1', range: [] };
  const options = { entries: [chosen], kubernetes: version('v1.30.0'), compat: 'kops' } as const;
  assert.is(decideVersion(chosen, records.get('kube-system:test'), options).action, scenario('KS7')['expectUpdate']);
  assert.is(decideVersion(chosen, records.get('default:test'), options).action, 'none');
});

test('KS8: a record that cannot be read counts as not installed, with a warning', () => {
  const text = String(scenario('KS8')['recordedAnnotation']);
  const { records, warnings } = readAnnotations([{ name: 'kube-system', annotations: { 'addons.k8s.io/a': text } }]);
  assert.is(records.size, 0);
  assert.equal(warnings, [
    'annotation addons.k8s.io/a of namespace kube-system cannot be read: its add-on counts as not installed',
  ]);
});

test('KS10: a channel that cannot be read does not keep the others from being chosen from', () => {
  const read = ['kind: Addons\nspec: {addons: [{name: good, manifest: a.yaml}]}', 'not: [valid', DNS].map((text) =>
    readChannel('s3://b/c.yaml', text, 'kops'),
  );
  assert.equal(
    read.map(({ channel }) => channel && [...choose(channel.entries, version('v1.6.0'), 'kops').keys()]),
    [['good'], undefined, ['kube-dns']],
  );
});

test('KS11: a file of comments has no add-ons, and is not an error', () => {
  const { channel, diagnostics } = readChannel('s3://b/c.yaml', String(scenario('KS11')['content']));
  assert.equal([channel?.entries.length, diagnostics.length], [0, 0]);
});

test('natively a greater version replaces, a lower one does not, and of equal ones id and hash decide', () => {
  const reason = (kept: Partial<Candidate>, incoming: Partial<Candidate>) => {
    const { replaces: isNew, reason: why } = replaces(kept, incoming, 'native');
    return `${isNew} ${why}`;
  };
  assert.is(reason({ version: '1.9.0' }, { version: '1.10.0' }), 'true version-greater');
  assert.is(reason({ version: '2.0.0' }, { version: '2.0.0-rc.1' }), 'false version-lower');
  assert.is(reason({ version: '1.0.4' }, { version: '1.0.4-14.2.21' }), 'true version-greater');
  assert.is(reason({ version: '1.0.0', hash: 'h1' }, { version: '1.0.0', hash: 'h2' }), 'true hash-differs');
  assert.is(reason({ version: '1.0.0', hash: 'h1' }, { version: '1.0.0' }), 'false same');
  assert.is(reason({ id: 'a' }, { id: 'b' }), 'true id-differs');
  assert.is(reason({ id: 'a' }, { version: '1.0.0' }), 'true kept-unversioned');
});

test('natively a lower version is a downgrade, and what is installed for other Kubernetes versions is shown', () => {
  const entries = [entry('2.0.0', '<1.30.0'), entry('1.0.0')];
  const kubernetes = version('v1.30.0');
  const [chosen] = choose(entries, kubernetes, 'native').values();
  assert.ok(chosen);
  const options = { entries, kubernetes, compat: 'native' } as const;
  assert.equal(decideVersion(chosen, { version: 'v2.0.0' }, options), {
    action: 'downgrade',
    reason: 'version-lower',
    incompatible: true,
  });
  assert.equal(decideVersion(chosen, { version: '1.0.0' }, options), {
    action: 'none',
    reason: 'same',
    incompatible: false,
  });
  const like2017 = decideVersion(chosen, { version: '2.0.0' }, { ...options, compat: 'kops-2017' });
  assert.equal([like2017.action, like2017.incompatible], ['downgrade', true]);
});

test('every entry of the add-on is explained, and no other', () => {
  const entries = [
    entry('1.7.1'),
    entry('1.8.3', '>=1.8.0'),
    entry('2.0.1', '>=1.18.0'),
    entry('1.8.3', '>=1.8.0', { id: 'x' }),
    entry('1.0.0', 'nonsense'),
    entry('9.0.0', '', { name: 'b' }),
  ];
  const { chosen, entries: explained } = explainChoice(entries, {
    addon: 'a',
    kubernetes: version('v1.9.0'),
    compat: 'native',
  });
  assert.is(chosen, entries[3]);
  assert.equal(
    explained.map(({ outcome, because }) => `${outcome}: ${because}`),
    [
      'lost: a 1.8.3 has a greater version',
      'lost: a 1.8.3 (x) comes later, with another id',
      'other-kubernetes: it is for Kubernetes >=1.18.0, not 1.9.0',
      'chosen: it fits 1.9.0, and no other is preferred',
      'unreadable-range: its range of Kubernetes versions cannot be read',
    ],
  );
});

const versions = fc.constantFrom('1.0.0', '1.1.0', '1.2.0-rc.1', '1.2.0', '2.0.0', '1.10.0');
const ranges = fc.constantFrom('', '<1.30.0', '>=1.30.0', '1.30.x', '>=1.29.0 <1.31.0');
const candidate = fc
  .tuple(fc.constantFrom('a', 'b'), versions, ranges)
  .map(([name, text, range]) => entry(text, range, { name }));
const kubernetes = fc.constantFrom('v1.28.0', 'v1.29.3', 'v1.30.1', 'v1.31.0').map(version);

test('where versions decide, the order of the file does not', () => {
  const order = fc
    .array(candidate, { maxLength: 8 })
    .chain((entries) => fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length })));
  fc.assert(
    fc.property(
      order,
      kubernetes,
      fc.constantFrom('native' as const, 'kops-2017' as const),
      ([one, other], at, compat) => {
        const chosen = (entries: readonly Candidate[]) =>
          [...choose(entries, at, compat)].map(([name, found]) => `${name} ${found.version ?? ''}`).toSorted();
        assert.equal(chosen(one), chosen(other));
      },
    ),
    cases(300),
  );
});

test('of entries with equal versions the later one wins, and to kops the last one with other content', () => {
  const tied = [entry('1.0.0', '', { id: 'x' }), entry('1.0.0', '', { id: 'y' }), entry('0.9.0', '', { id: 'z' })];
  assert.is(bestOf(tied, 'native'), tied[1]);
  assert.is(bestOf(tied, 'kops-2017'), tied[1]);
  assert.is(bestOf(tied, 'kops'), tied[2]);
  const same = [entry('1.0.0'), entry('2.0.0')];
  assert.is(bestOf(same, 'kops'), same[0]);
});

test('what is explained as chosen is what is chosen', () => {
  fc.assert(
    fc.property(
      fc.array(candidate, { maxLength: 8 }),
      kubernetes,
      fc.constantFrom<Compat>('native', 'kops', 'kops-2017'),
      (entries, at, compat) => {
        const { chosen, entries: explained } = explainChoice(entries, { addon: 'a', kubernetes: at, compat });
        assert.is(chosen, choose(entries, at, compat).get('a'));
        assert.equal(
          explained.filter(({ outcome }) => outcome === 'chosen').map((one) => one.entry),
          chosen ? [chosen] : [],
        );
      },
    ),
    cases(300),
  );
});

test.run();
