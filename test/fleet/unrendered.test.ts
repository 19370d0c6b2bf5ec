/** What the files of a fleet tell about values before any cluster is asked. */
import { readFleet } from '../../src/fleet/read.ts';
import { unrenderedIn } from '../../src/fleet/unrendered.ts';
import * as assert from '../support/assert.ts';
import { addon, channel, chart, cluster, documents } from '../support/fleet-files.ts';
import { suite } from '../support/suite.ts';

const test = suite('fleet/unrendered');

function found(...all: readonly object[]): readonly string[] {
  const fleet = readFleet([{ path: 'fleet/all.yaml', folder: 'fleet', text: documents(...all) }]);
  assert.equal(fleet.diagnostics, []);
  return unrenderedIn(fleet).map(({ severity, code, message }) => `${severity} ${code}: ${message}`);
}

const PROD = { env: 'prod' };
const web = (valuesTemplate: string): object => addon('web', { source: { chart: chart('web') }, valuesTemplate });
const START = 'error fleet/template: cannot render the values:';

test('values of each selected cluster are rendered, and a reason is one finding with its clusters', () => {
  const names = ['a1', 'b1', 'c1', 'd1', 'e1'];
  const clusters = names.map((name) => cluster(name, PROD, name === 'c1' ? { networks: { pods: '10.0.0.0/8' } } : {}));
  const template = 'pods: {{ .Cluster.networks.pods }}';
  assert.equal(found(...clusters, cluster('test'), web(template)), [
    `${START} unknown field .pods (a1, b1, d1 and 1 more)`,
  ]);
  assert.equal(found(...clusters, web('size: {{ .Cluster.labels.size | default "small" }}')), []);
  assert.match(found(...clusters, web('- a'))[0] ?? '', 'the result is not a map (a1, b1, c1 and 2 more)');
});

test('what only the answer of a cluster tells is no finding, and what it cannot change is one', () => {
  const lyon = cluster('lyon', PROD);
  const known = cluster('lyon', PROD, { kubernetes: { version: 'v1.31.2' } });
  for (const template of [
    '{{ if gt .Cluster.kubernetes.minor 30 }}a: 1{{ else }}{{ fail "too old" }}{{ end }}',
    '{{ fail .Cluster.server }}',
    '{{ fail .Cluster.facts.version }}',
    '{{ fail (toJson .Cluster) }}',
  ])
    assert.equal(found(lyon, web(template)), []);
  assert.equal(found(lyon, web('a: {{ .Cluster.kubernets.minor }}')), [
    `${START} unknown field .kubernets: did you mean .kubernetes? (lyon)`,
  ]);
  assert.equal(found(lyon, web('a: {{ .Cluster.kubernetes.patch }}')), [`${START} unknown field .patch (lyon)`]);
  assert.equal(found(known, web('{{ if lt .Cluster.kubernetes.minor 32 }}{{ fail "too old" }}{{ end }}')), [
    `${START} fail: too old (lyon)`,
  ]);
});

test('a channel without an entry for the version that a file says is a finding', () => {
  const entry = { name: 'web', version: '1.2.3', kubernetesVersion: '>=1.32.0', chart: chart('web') };
  const all = [channel('stable', entry), addon('web', { source: { channel: { name: 'stable' } } })];
  assert.equal(found(cluster('lyon', PROD), ...all), []);
  assert.equal(found(cluster('lyon', PROD, { kubernetes: { version: 'v1.31.2' } }), ...all), [
    'error fleet/template: no entry of the channel fits Kubernetes v1.31.2 (lyon)',
  ]);
});

test.run();
