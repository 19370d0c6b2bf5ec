import { createHash } from 'node:crypto';
import { readChannel } from '../../../src/cluster/channel/read.ts';
import type { Compat } from '../../../src/cluster/channel/channel.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/read');

const OURS = 'apiVersion: fleet.curlew.dev/v1alpha1\nkind: Channel\nmetadata: {name: stable}\nspec:\n  addons:\n';
const KOPS = 'kind: Addons\nmetadata: {name: dash}\nspec:\n  addons:\n';
const LOCATION = 'https://example.com/dist/channel.yaml?signature=secret';

function findings(text: string, compat?: Compat): readonly string[] {
  return readChannel(LOCATION, text, compat).diagnostics.map(
    ({ severity, code, place, message }) => `${place.line}:${place.column} ${severity} ${code} ${message}`,
  );
}
const entriesOf = (text: string, compat?: Compat) => {
  const { channel, diagnostics } = readChannel(LOCATION, text, compat);
  assert.equal(diagnostics, []);
  return channel?.entries ?? [];
};

test('a channel has packages, manifests and charts, with what they require and what happens to old objects', () => {
  const hash = `sha256:${'a'.repeat(64)}`;
  const [weave, rules, chart] = entriesOf(`${OURS}  - name: weave
    version: 2.8.1
    kubernetesVersion: ">=1.28.0 <1.32.0"
    id: k8s-128
    package: weave-2.8.1.tar.gz
    hash: ${hash}
    requires: [{name: containerd, version: ">=1.7.0"}, {name: kubernetes}]
    needsRollingUpdate: workers
    prune: auto
    drift: Revert
  - {name: rules, namespace: default, version: "1.0", manifest: ../shared/rules.yaml, prune: [{kind: ConfigMap, namespaces: [a]}]}
  - {name: grafana, version: 8.0.0, chart: {repoURL: "https://charts.example.com", name: grafana, values: {replicas: 2}}}
`);
  assert.equal(weave?.source, { type: 'package', package: 'weave-2.8.1.tar.gz' });
  assert.equal(
    [weave?.hash, weave?.drift, weave?.prune, weave?.needsRollingUpdate],
    ['a'.repeat(64), 'Revert', 'auto', 'workers'],
  );
  assert.equal(
    weave?.requires.map(({ name, version }) => [name, version]),
    [
      ['containerd', '>=1.7.0'],
      ['kubernetes', ''],
    ],
  );
  assert.equal(weave?.place, { file: 'https://example.com/dist/channel.yaml', line: 6, column: 5, length: 4 });
  const location = 'https://example.com/shared/rules.yaml';
  assert.equal(rules?.source, { type: 'manifest', manifest: '../shared/rules.yaml', location });
  assert.equal(rules?.prune, [
    { group: '', kind: 'ConfigMap', namespaces: ['a'], labelSelector: '', fieldSelector: '' },
  ]);
  assert.equal([rules?.namespace, rules?.drift, weave?.namespace], ['default', 'Warn', 'kube-system']);
  assert.equal(chart?.source?.type === 'chart' && chart.source.chart.values, { replicas: 2 });
});

test('a manifest as a channel may have what no channel can have', () => {
  const deep = `${'{a: '.repeat(40)}~${'}'.repeat(40)}`;
  const text = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\nyes: 9007199254740993\ndeep: ${deep}\n`;
  const { channel, diagnostics } = readChannel('page.yaml', text);
  assert.equal([channel?.kind, diagnostics], ['Manifest', []]);
});

test('values of a chart are read as helm reads them, and the fields of a channel as ever', () => {
  const [chart] = entriesOf(`${OURS}  - name: grafana
    version: 8.0.0
    chart:
      repoURL: https://charts.example.com
      name: grafana
      releaseName: yes
      values: &values {mode: 0400, yes: on, cpu: ~, args: [a, ~], uid: 9007199254740993, dates: {2024-01-01: 1:30}}
  - {name: other, version: 1.0.0, chart: {package: other.tgz, values: {<<: *values, mode: 1}}}
`).map(({ source }) => (source?.type === 'chart' ? source.chart : undefined));
  assert.is(chart?.releaseName, 'yes');
  const values = { cpu: null, args: ['a', null], uid: 9007199254740993n, dates: { '2024-01-01': '1:30' } };
  assert.equal(chart?.values, { mode: 256, true: true, ...values });
});

test('a chart comes from a repository, a registry or an archive, and is a release in the namespace of its add-on', () => {
  const entries =
    entriesOf(`${OURS}  - {name: web, version: 8.0.0, chart: {repoURL: "https://charts.example.com", name: web}}
  - {name: db, namespace: data, version: 1.0.0, chart: {oci: "oci://example.com/charts/db", version: 2.1.0, releaseName: main, namespace: db}}
  - {name: log, version: 1.0.0, chart: {package: ../charts/log-3.0.0.tgz, wait: true, atomic: true}}
`);
  const charts = entries.map(({ source }) => (source?.type === 'chart' ? source.chart : undefined));
  assert.equal(
    charts.map((chart) => [chart?.releaseName, chart?.namespace, chart?.version]),
    [
      ['web', 'kube-system', '8.0.0'],
      ['main', 'db', '2.1.0'],
      ['log', 'kube-system', undefined],
    ],
  );
  assert.is(charts[2]?.package, 'https://example.com/charts/log-3.0.0.tgz');
  assert.equal([charts[1]?.wait, charts[2]?.wait, charts[2]?.atomic], [false, true, true]);
});

test('a chart without a place or a name, of a range of versions, or with a login in its address is refused', () => {
  const repo = 'repoURL: "https://charts.example.com"';
  const text = `${OURS}  - {name: a, version: 1.0.0, chart: {name: a}}
  - {name: b, version: 1.0.0, chart: {${repo}}}
  - {name: c, version: 1.0.0, chart: {${repo}, name: c, version: "^1.0.0"}}
  - {name: d, version: 1.0.0, chart: {repoURL: "https://me:word@example.com", name: d}}
  - {name: E_e, version: 1.0.0, chart: {${repo}, name: e}}
  - {name: f, version: 1.0.0, chart: {package: file:///etc/f.tgz}}
  - {name: g, version: 1.0.0, chart: {${repo}, name: --post-renderer=sh}}
`;
  assert.equal(findings(text), [
    '6:31 error channel/value chart must be a map with one of repoURL, oci, package',
    '7:31 error channel/value chart must be a map with the name of the chart',
    '8:87 error channel/value version must be one version, such as 1.2.3',
    '9:39 error channel/value repoURL must be the URL of a Helm repository, without a login',
    '10:41 error channel/value releaseName must be a name of a release (default: the name of the add-on)',
    '11:39 error channel/value package must be no file of this machine: the channel is from another one',
    '12:78 error channel/value name must be the name of a chart',
  ]);
});

test('an index of kops has the name of the index for its entries, and its own prune list', () => {
  const [one, two] = entriesOf(`${KOPS}  - version: 1.5.0
    manifest: v1.5.0.yaml
    selector: {k8s-addon: dash.addons.k8s.io}
  - name: cilium
    manifest: s3://other/cilium.yaml
    manifestHash: ${'0a'.repeat(32)}
    needsPKI: true
    needsRollingUpdate: all
    prune: {kinds: [{group: apps, kind: DaemonSet, labelSelector: "a=b"}]}
`);
  assert.equal([one?.name, one?.selector], ['dash', { 'k8s-addon': 'dash.addons.k8s.io' }]);
  assert.equal(two?.source, {
    type: 'manifest',
    manifest: 's3://other/cilium.yaml',
    location: 's3://other/cilium.yaml',
  });
  assert.equal([two?.needsPKI, two?.needsRollingUpdate, two?.hash], [true, 'all', '0a'.repeat(32)]);
  assert.equal(two?.prune, [
    { group: 'apps', kind: 'DaemonSet', namespaces: [], labelSelector: 'a=b', fieldSelector: '' },
  ]);
});

test('a prune kind that selects the whole cluster is an error, and in an index of kops a warning unless its entry has a selector', () => {
  const prune =
    '[{kind: ConfigMap}, {kind: Secret, labelSelector: "app=web"}, {kind: Pod, labelSelector: " ", namespaces: [""]}, {kind: Job, labelSelector: "a b"}]';
  const whole = (kind: string): string => `prune selects every ${kind} of the cluster, not only those of the add-on`;
  assert.equal(findings(`${OURS}  - {name: a, version: 1.0.0, manifest: a.yaml, prune: ${prune}}\n`), [
    `6:58 error channel/prune ${whole('ConfigMap')}`,
    `6:119 error channel/prune ${whole('Pod')}`,
    '6:181 error channel/value labelSelector cannot be read',
  ]);
  const index = (selector: string): string =>
    `${KOPS}  - {name: a, manifest: a.yaml, ${selector}prune: {kinds: [{kind: ConfigMap}]}}\n`;
  assert.equal(findings(index(''), 'kops'), [`5:50 warning channel/prune ${whole('ConfigMap')}`]);
  assert.equal(findings(index(''), 'native'), [`5:50 error channel/prune ${whole('ConfigMap')}`]);
  const [entry] = entriesOf(index('selector: {k8s-addon: a}, '));
  assert.equal(entry?.prune, [
    { group: '', kind: 'ConfigMap', namespaces: [], labelSelector: 'k8s-addon=a', fieldSelector: '' },
  ]);
});

test('namespaces of a prune kind must be names, and are for kinds that are in a namespace', () => {
  const prune =
    '[{kind: Secret, namespaces: [a, "b*"]}, {group: rbac.authorization.k8s.io, kind: ClusterRole, namespaces: [a]}, {group: example.com, kind: ClusterRole, namespaces: [a]}]';
  const found = (severity: string, line: number, columns: readonly number[]): readonly string[] => [
    `${line}:${columns[0]} ${severity} channel/value "b*" cannot be the name of a namespace`,
    `${line}:${columns[1]} ${severity} channel/prune prune selects nothing: a ClusterRole is in no namespace`,
  ];
  const native = `${OURS}  - {name: a, version: 1.0.0, manifest: a.yaml, prune: ${prune}}\n`;
  assert.equal(findings(native), found('error', 6, [72, 150]));
  const index = `${KOPS}  - {name: a, manifest: a.yaml, prune: {kinds: ${prune}}}\n`;
  assert.equal(findings(index, 'kops'), found('warning', 5, [64, 142]));
});

test('all mistakes in a channel are found at once, each where it is', () => {
  const text = `${OURS}  - name: a
    verison: 1.0.0
    version: latest
    kubernetesVersion: ">=1.30"
    manifest: a.yaml
    chart: {}
  - {name: b, version: 1.10, package: b.yaml}
  - {name: c, version: 1.0.0, kubernetesVersion: ">=1.31.0 <1.30.0", manifest: c.yaml, needsRollingUpdate: worker}
  - {version: 1.0.0, manifest: d.yaml}
  - {name: e, version: 1.0.0, manifest: e.yaml, hash: abc, prune: all, requires: [{name: c, version: "~1.0"}]}
  - {name: e, version: 1.0.0, manifest: file:///etc/kubernetes/admin.conf}
`;
  assert.equal(findings(text), [
    '7:5 error channel/unknown-field "verison" is not a field',
    '8:5 error channel/version latest is not a semantic version',
    '9:5 error channel/range the range ">=1.30" cannot be read: ">=1.30" is not a comparison with a version',
    '11:5 error channel/source manifest and chart exclude each other',
    '12:15 error channel/value version is read as the number 1.1',
    '12:30 error channel/value package must be the file name of a package, such as weave-2.8.1.tar.gz',
    '13:31 error channel/never no version is in the range ">=1.31.0 <1.30.0"',
    '13:88 error channel/value needsRollingUpdate must be one of control-plane, workers, all',
    '14:6 error channel/name an add-on must have a name',
    '15:49 error channel/value hash must be sha256: and 64 hex digits in lower case',
    '15:60 error channel/value prune must be "auto" or a list of kinds',
    '15:93 error channel/range the range "~1.0" cannot be read: "~1.0" is not a comparison with a version',
    '16:31 error channel/value manifest must be no file of this machine: the channel is from another one',
  ]);
  assert.is(readChannel(LOCATION, text).channel, undefined);
});

test('what kops accepts in its indexes is a warning there', () => {
  const text = `${KOPS}  - version: 1.10
    id: 116
    kubernetesversion: ">=1.16.0"
    manifest: a.yaml
    color: red
  - {version: nope, kubernetesVersion: "!=1.2.x", manifest: b.yaml}
  - {kubernetesVersion: "~1.2.x"}
`;
  assert.equal(findings(text, 'kops'), [
    '5:5 warning channel/value version is read as the number 1.1',
    '6:5 warning channel/value id is read as the number 116',
    '7:5 warning channel/unknown-field "kubernetesversion" is read as "kubernetesVersion"',
    '9:5 warning channel/unknown-field "color" is not a field',
    '10:6 warning channel/version nope is not a semantic version',
    '10:21 warning channel/never no version is in the range "!=1.2.x"',
    '11:6 warning channel/range kops reads "~1.2.x" as 1.2.0',
    '11:6 warning channel/source nothing says what to apply',
  ]);
  const { channel } = readChannel(LOCATION, text, 'kops');
  assert.equal(
    channel?.entries.map(({ version, id, kubernetesVersion }) => [version, id, kubernetesVersion]),
    [
      ['1.1', '116', '>=1.16.0'],
      ['nope', '', '!=1.2.x'],
      [undefined, '', '~1.2.x'],
    ],
  );
  assert.ok(findings(text, 'kops-2017').includes('10:6 error channel/version nope is not a semantic version'));
});

test('entries that say the same, and two add-ons with one selector, are found', () => {
  const text = `${KOPS}  - {name: a, version: 1.0.0, manifest: a.yaml, selector: {k8s-addon: a}}
  - {name: a, version: 1.0.0, manifest: a.yaml, selector: {k8s-addon: a}}
  - {name: b, version: 1.0.0, manifest: b.yaml, selector: {k8s-addon: a}}
`;
  assert.equal(findings(text), [
    '6:6 warning channel/duplicate a 1.0.0 is already in line 5',
    '7:6 warning channel/selector b has the selector of a in line 5',
  ]);
  const twice = `${OURS}  - {name: a, version: 1.0.0, package: a-1.0.0.tar.gz}\n`;
  assert.equal(findings(`${twice}${twice.split('\n').at(-2)}\n`), [
    '7:6 error channel/duplicate a 1.0.0 is already in line 6',
  ]);
  assert.equal(findings(`${KOPS}  - {name: a, manifest: a.yaml, selector: {k8s-addon: a, k8s-addon: b}}\n`), [
    '5:58 error yaml/duplicate "k8s-addon" is listed twice',
  ]);
});

test('only the first document counts, and comments are no document', () => {
  const text = `# comment\n---\n${KOPS}  - {name: a, manifest: a.yaml}\n---\nkind: Addons\n`;
  assert.equal(findings(text), ['8:1 warning channel/document only the first document of this file counts']);
  assert.equal(
    readChannel(LOCATION, text).channel?.entries.map(({ name, place }) => [name, place.line]),
    [['a', 7]],
  );
  assert.equal(findings(`---\r\n${KOPS}  - {name: a, manifest: a.yaml}\r\n---\r\n`), []);
  for (const empty of ['', ' \n\n', '# nothing\n', '---\n']) assert.equal(entriesOf(empty), []);
});

test('another document is a manifest, which is a channel of one add-on', () => {
  const text = '\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Secret\n\n';
  const { channel, diagnostics } = readChannel('https://example.com/a.yaml', text);
  assert.equal(diagnostics, []);
  const [entry] = channel?.entries ?? [];
  assert.equal([channel?.kind, entry?.name], ['Manifest', 'manifest-9aa7792e30e6']);
  assert.is(entry?.hash, createHash('sha256').update(text.trim()).digest('hex'));
  assert.equal(entry?.source, {
    type: 'manifest',
    manifest: 'https://example.com/a.yaml',
    location: 'https://example.com/a.yaml',
  });
});

test('a wrong kind is an error with the kind that is meant', () => {
  const [first] = readChannel(LOCATION, 'kind: Addon\nspec: {addons: []}\n').diagnostics;
  assert.equal([first?.severity, first?.code, first?.hint], ['error', 'channel/kind', 'did you mean "Addons"?']);
  assert.equal(findings('apiVersion: kops/v1\nkind: Channel\nspec: {addons: []}\n'), [
    '1:1 error channel/kind apiVersion of a Channel must be fleet.curlew.dev/v1alpha1',
  ]);
  assert.equal(findings('- a\n'), ['1:1 error channel/document a channel must be a map with kind, metadata and spec']);
  assert.equal(findings('kind: Addons\nspec: {addons: {a: b}}\n'), ['2:8 error channel/value addons must be a list']);
  assert.equal(findings('apiVersion: v1\nkind: Addons\n', 'kops').length, 1);
  // For kops, it is an index without entries.
  assert.equal(findings('kind: Addons\n', 'kops'), ['1:1 warning channel/entries there are no add-ons']);
  assert.is(readChannel(LOCATION, 'kind: Addons\n', 'kops').channel?.entries.length, 0);
  assert.equal(findings('kind: Addons\nspec: {addons: []}\n', 'kops'), []);
  assert.is(readChannel(LOCATION, 'apiVersion: v1\nkind: Addons\n', 'kops').channel?.kind, 'Manifest');
});

test('bombs, absurd sizes and broken YAML are findings', () => {
  const bomb = `a: &a [x, x, x, x, x, x, x, x, x, x]\n${Array.from({ length: 9 }, (_, at) => {
    const [name, before] = [String.fromCharCode(98 + at), String.fromCharCode(97 + at)];
    return `${name}: &${name} [${Array.from({ length: 10 }, () => `*${before}`).join(', ')}]\n`;
  }).join('')}`;
  const codes = (text: string) => readChannel(LOCATION, text).diagnostics.map(({ code }) => code);
  assert.equal(codes(`${KOPS}  - {name: a}\n${bomb}`), ['yaml/aliases']);
  assert.equal(codes('not: [valid'), ['yaml/syntax']);
  assert.equal(codes(`kind: Addons\n${'#'.repeat(5 << 20)}\n`), ['yaml/size']);
  assert.equal(codes(`${KOPS}  - ${'['.repeat(1000)}\n`), ['yaml/depth']);
  const stairs = Array.from({ length: 1500 }, (_, deep) => `${' '.repeat(deep)}a:\n`).join('');
  assert.equal(codes(`kind: Addons\n${stairs}`), ['yaml/depth']);
  assert.equal(codes(`${KOPS}${'  - {name: a}\n'.repeat(10_001)}`), ['channel/entries']);
});

test.run();
