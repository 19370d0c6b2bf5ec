/** What scripts/real-kurl takes for a difference between two clusters, and how it judges what is known. */
import { differences, type Cluster } from '../real-kurl/differences.ts';
import type { KubeObject } from '../real-kurl/kube.ts';
import { formatDetails, formatTable, judge, type Outcome } from '../real-kurl/report.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('comparison of clusters');

function cluster(port: number, objects: Readonly<Record<string, Partial<KubeObject>>>): Cluster {
  const entries = Object.entries(objects).map(([name, fields]): [string, KubeObject] => {
    const [kind = '', path = ''] = name.split(' ');
    const [namespace = '', short = ''] = path.split('/');
    return [name, { apiVersion: 'v1', kind, metadata: { name: short, namespace }, ...fields }];
  });
  return { url: `https://127.0.0.1:${port}`, objects: new Map(entries) };
}

function compared(
  ours: Readonly<Record<string, Partial<KubeObject>>>,
  theirs: Readonly<Record<string, Partial<KubeObject>>>,
): readonly string[] {
  return differences(cluster(1111, ours), cluster(2222, theirs));
}

function secret(text: string): Partial<KubeObject> {
  return { data: { password: Buffer.from(text).toString('base64') } };
}

test('a field that differs is told with both values, of long texts only the lines', () => {
  const one = { 'ConfigMap a/b': { data: { text: 'same\nx: 1\n', word: 'left' } } };
  const other = { 'ConfigMap a/b': { data: { text: 'same\nx: 2\n', word: 'right' } } };
  assert.equal(compared(one, other), [
    'ConfigMap a/b .data.text: x: 1 ≠ x: 2',
    'ConfigMap a/b .data.word: left ≠ right',
  ]);
});

test('what only one has is told, but for what installers note for themselves', () => {
  const one = { 'ConfigMap a/b': {}, 'ConfigMap kurl/curlew-records': {} };
  const other = { 'Secret a/c': {}, 'ConfigMap kurl/kurl-current-config': {} };
  assert.equal(compared(one, other), [
    'ConfigMap a/b: only curlew makes it',
    "Secret a/c: only kURL's scripts make it",
  ]);
});

test('addresses, moments and what is random do not count', () => {
  const at = (address: string, port: number): Record<string, Partial<KubeObject>> => ({
    'Service a/web': { spec: { clusterIP: address, ports: [{ nodePort: port }] } },
    'ConfigMap a/b': { data: { text: `http://${address}:80 since 2026-01-0${port % 9}T00:00:00Z` } },
    'Secret a/c': secret(`Aa${port}Bb${port}`),
    'Secret a/hash': secret(`user:$2b$10$${String(port).padEnd(53, 'x')}`),
  });
  assert.equal(compared(at('10.96.0.1', 31_000), at('10.96.0.12', 32_000)), []);
});

test('a password of another length, and a word that is only another word, do count', () => {
  assert.is(compared({ 'Secret a/c': secret('abcdefghij') }, { 'Secret a/c': secret('abcdefghijk') }).length, 1);
  const [one, other] = ['controller', 'supervisor'].map((word) => ({ 'ConfigMap a/b': { data: { word } } }));
  assert.is(compared(one ?? {}, other ?? {}).length, 1);
});

test('a failure that is known is explained, another one is not, and the table says which', () => {
  const outcome = (addon: string, ...failures: string[]): Outcome => {
    return { stage: 'hooks', addon, count: 1, failures, remarks: [] };
  };
  const known = [
    { stage: 'hooks', addon: 'web', failure: '^no disk', why: 'none is here' },
    { stage: 'hooks', addon: 'net', failure: 'verb', why: 'soon', pending: true },
  ] as const;
  const rows = [
    outcome('web-1.0', 'no disk at all'),
    outcome('net-v2', 'a verb'),
    outcome('cert-manager-1', 'no disk'),
    outcome('ok-1'),
  ].map((one) => judge(one, known));
  assert.is(
    formatTable({ commit: undefined, stages: ['hooks'], imported: { works: 4, differs: 0, missing: 0 }, rows }),
    [
      '| add-on | hooks |',
      '| --- | --- |',
      '| cert-manager | FAILED |',
      '| net | pending |',
      '| ok | ok |',
      '| web | explained |',
      '| ok | 1 of 4 |',
    ].join('\n'),
  );
  assert.equal(formatDetails(rows, { remarks: true }), [
    'explained hooks web-1.0: none is here (no disk at all)',
    'pending hooks net-v2: soon (a verb)',
    'FAILED hooks cert-manager-1: no disk',
  ]);
});

test.run();
