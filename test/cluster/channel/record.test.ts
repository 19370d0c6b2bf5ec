import {
  addonId,
  encodeAnnotation,
  encodeRecords,
  installedOf,
  readAnnotations,
  decodeRecords,
  type AddonRecord,
} from '../../../src/cluster/channel/record.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/record');

const ENTRY = { version: '1.6.0', id: 'k8s-16', hash: '5f6a', channel: 's3://b/addons/bootstrap-channel.yaml' };
const RECORD: AddonRecord = {
  addon: 'kube-dns.addons.k8s.io',
  namespace: 'kube-system',
  owner: 'channel:stable',
  state: 'Succeeded',
  since: '2026-01-02T03:04:05Z',
  reason: 'a newer version was published',
  applied: { ...ENTRY, kubernetes: 'v1.30.2' },
  history: [],
};

test('no add-on has the shortened id of another one, and ids that fit stay as they are', () => {
  const [namespace, name] = ['a'.repeat(30), 'b'.repeat(60)];
  const shortened = addonId({ namespace, name });
  assert.is(shortened.length, 63);
  const twin = { namespace, name: shortened.slice(namespace.length + 1) };
  assert.ok(addonId(twin) !== shortened, shortened);
  assert.is(addonId({ namespace: 'sites', name: 'web' }), 'sites.web');
  assert.is(addonId({ namespace, name: 'b'.repeat(32) }), `${namespace}.${'b'.repeat(32)}`);
});

test('an annotation is what kops of its time writes', () => {
  const channel = '"channel":"s3://b/addons/bootstrap-channel.yaml"';
  assert.is(encodeAnnotation(ENTRY, 'kops'), `{${channel},"id":"k8s-16","manifestHash":"5f6a","systemGeneration":1}`);
  assert.is(encodeAnnotation(ENTRY, 'kops-2017'), `{"version":"1.6.0",${channel},"id":"k8s-16","manifestHash":"5f6a"}`);
  assert.is(
    encodeAnnotation({ ...ENTRY, id: '', hash: '' }, 'native'),
    `{"version":"1.6.0",${channel},"systemGeneration":1}`,
  );
});

test('a signed address of a channel leaves no secret on the cluster', () => {
  const channel = 'https://user:word@example.com/c.yaml?X-Amz-Signature=abc';
  const text =
    encodeAnnotation({ channel }, 'kops') + JSON.stringify(encodeRecords([{ ...RECORD, applied: { channel } }]));
  assert.not.match(text, /word|abc/);
  assert.is(text.split('https://example.com/c.yaml').length, 3);
});

test('annotations of all namespaces are read as Go reads them; a broken one is a warning', () => {
  const { records, warnings } = readAnnotations([
    {
      name: 'kube-system',
      annotations: {
        'addons.k8s.io/a': encodeAnnotation(ENTRY, 'native'),
        'addons.k8s.io/b': '{"id":null,"more":[1]}',
        'addons.k8s.io/c': 'null',
        'addons.k8s.io/d': '{"id":5}',
        'addons.k8s.io/e': '{"systemGeneration":"1"}',
        other: '{broken',
      },
    },
    { name: 'default', annotations: { 'addons.k8s.io/a': '[]' } },
  ]);
  assert.equal(
    [...records],
    [
      ['kube-system:a', { ...ENTRY, generation: 1 }],
      ['kube-system:b', { generation: 0 }],
      ['kube-system:c', { generation: 0 }],
    ],
  );
  assert.equal(
    warnings.map((text) => text.split(' ').slice(0, 5).join(' ')),
    [
      'annotation addons.k8s.io/d of namespace kube-system',
      'annotation addons.k8s.io/e of namespace kube-system',
      'annotation addons.k8s.io/a of namespace default',
    ],
  );
});

test('full records come back as they were written, equal ones with equal bytes, with the last ten of their history', () => {
  const history = Array.from({ length: 12 }, (_, at) => ({
    revision: { version: `1.${at}.0` },
    until: '2026-01-01T00:00:00Z',
  }));
  const record = { ...RECORD, knownGood: { id: 'x' }, history };
  const data = encodeRecords([record]);
  assert.equal(Object.keys(data), ['kube-system.kube-dns.addons.k8s.io']);
  const { records, warnings } = decodeRecords(data);
  assert.equal(warnings, []);
  assert.equal(records.get('kube-system:kube-dns.addons.k8s.io'), { ...record, history: history.slice(0, 10) });
  const turned = Object.fromEntries(Object.entries(record).toReversed()) as unknown as AddonRecord;
  assert.equal(encodeRecords([turned]), data);
});

test('records that were damaged, or are under the key of another add-on, do not count', () => {
  const [text = ''] = Object.values(encodeRecords([RECORD]));
  const damaged = [text.replace('Succeeded', 'Fine'), text.replace('"k8s-16"', '16'), text.slice(1), '[]', 'null'];
  for (const value of damaged) {
    const { records, warnings } = decodeRecords({ 'kube-system.kube-dns.addons.k8s.io': value });
    assert.equal([records.size, warnings.length], [0, 1]);
  }
  assert.is(decodeRecords({ 'default.kube-dns.addons.k8s.io': text }).records.size, 0);
});

test('the annotation wins over the record, and what differs is named', () => {
  const annotation = { ...ENTRY, version: undefined, generation: 1 };
  assert.equal(installedOf(annotation, RECORD), { revision: { ...annotation, version: '1.6.0' }, disagreement: [] });
  const other = { ...annotation, hash: 'ffff' };
  assert.equal(installedOf(other, RECORD), { revision: other, disagreement: ['version', 'hash'] });
  assert.equal(installedOf(undefined, RECORD), { revision: undefined, disagreement: ['version', 'id', 'hash'] });
  assert.equal(installedOf(annotation, undefined), { revision: annotation, disagreement: [] });
});

test('a record with names that no API server can have given cannot be read, and the others can', () => {
  const kind = { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments', namespaced: true };
  const object = { namespace: 'web', name: 'system:web', owned: '' };
  const release = { name: 'web', namespace: 'web' };
  const textOf = (change: object): string => JSON.stringify({ ...RECORD, namespace: 'a', addon: 'b', ...change });
  const good = textOf({ objects: [{ ...kind, objects: [object] }], release });
  for (const bad of [
    { objects: [{ ...kind, plural: '../../x', objects: [object] }] },
    { objects: [{ ...kind, apiVersion: 'apps/v1/x', objects: [object] }] },
    { objects: [{ ...kind, objects: [{ ...object, name: '..' }] }] },
    { objects: [{ ...kind, objects: [{ ...object, namespace: 'a/b' }] }] },
    { release: { ...release, name: '--kubeconfig=x' } },
  ]) {
    const { records, warnings } = decodeRecords({ 'a.b': textOf(bad), 'c.b': good.replace('"a"', '"c"') });
    assert.equal([[...records.keys()], warnings.length], [['c:b'], 1], JSON.stringify(bad));
  }
});

test.run();
