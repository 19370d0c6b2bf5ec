import { installerYaml, mergeInstallers } from '../../src/spec/merge.ts';
import { parseInstaller, parseMerged } from '../../src/spec/parse.ts';
import type { JsonObject } from '../../src/formats/yaml/yaml.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/merge');

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: site}\nspec:\n';
const merge = (base: string, overlay: string) =>
  parseMerged({ file: 'base.yaml', text: `${HEAD}${base}` }, { file: 'over.yaml', text: `${HEAD}${overlay}` });

function specOf(base: string, overlay: string): unknown {
  const { document, diagnostics } = merge(base, overlay);
  assert.equal(diagnostics, []);
  return document?.['spec'];
}

test('maps are merged, the overlay wins, lists are replaced, and the name is merged', () => {
  const base =
    '  kubernetes: {version: 1.27.x, HACluster: true, clusterName: a}\n  kurl: {additionalNoProxyAddresses: [a]}\n';
  const overlay =
    '  kubernetes: {clusterName: b}\n  kurl: {additionalNoProxyAddresses: [b], airgap: true}\n  ekco: {version: latest}\n';
  const { document, installer } = merge(base, overlay);
  assert.equal(document, {
    apiVersion: 'cluster.kurl.sh/v1beta1',
    kind: 'Installer',
    metadata: { name: 'merged' },
    spec: {
      kubernetes: { version: '1.27.x', HACluster: true, clusterName: 'b' },
      kurl: { additionalNoProxyAddresses: ['b'], airgap: true },
      ekco: { version: 'latest' },
    },
  });
  assert.is(installer?.addons[0]?.settings['clusterName'], 'b');
});

test('where one side is empty the other counts as it is, and a part may have no spec', () => {
  const one = `${HEAD}  ekco: {version: latest}\n`;
  const head = HEAD.replace('spec:\n', '');
  for (const [base, overlay, name] of [
    [one, ' \n', 'site'],
    ['', one, 'site'],
    [one, head, 'merged'],
    [head, one, 'merged'],
    [HEAD, one, 'merged'],
    [one, HEAD, 'merged'],
  ] as const) {
    const { installer, diagnostics } = parseMerged({ file: 'a', text: base }, { file: 'b', text: overlay });
    assert.equal(diagnostics, []);
    assert.is(installer?.name, name);
    assert.is(installer?.addons[0]?.name, 'ekco');
  }
  assert.is(parseMerged({ file: 'a', text: '' }, { file: 'b', text: '' }).installer, undefined);
});

test('a null in the overlay keeps what the base says', () => {
  const spec = specOf('  rook: {version: 1.0.4, nodes: a}\n', '  rook: {version: null, nodes: ~}\n');
  assert.equal(spec, { rook: { version: '1.0.4', nodes: 'a' } });
});

test('docker.daemonConfig is merged as JSON', () => {
  const base = `  docker: {version: 20.10.17, daemonConfig: '{"b": {"x": 1, "y": 1}, "a": [1]}'}\n`;
  const spec = specOf(base, `  docker: {daemonConfig: '{"b": {"y": 2}, "a": [2], "c": true}'}\n`) as {
    docker: { daemonConfig: string };
  };
  const merged = '{\n  "a": [\n    2\n  ],\n  "b": {\n    "x": 1,\n    "y": 2\n  },\n  "c": true\n}';
  assert.is(spec.docker.daemonConfig, merged);
  assert.equal(specOf(base, '  docker: {daemonConfig: ""}\n'), specOf(base, '  docker: {}\n'));
});

for (const [title, config] of [
  ['no JSON', '{'],
  ['a list', '[1]'],
  ['null', 'null'],
  ['nested too deeply', '{"a":'.repeat(100) + '1' + '}'.repeat(100)],
] as const) {
  test(`a daemonConfig that is ${title} is an error where it stands`, () => {
    const { diagnostics, installer } = merge(
      `  docker: {version: "1", daemonConfig: '{"a": 1}'}\n`,
      `  docker:\n    daemonConfig: '${config}'\n`,
    );
    assert.is(installer, undefined);
    assert.equal(
      diagnostics.map(({ message, place }) => `${place.file}:${place.line}:${place.column} ${message}`),
      ['over.yaml:6:5 docker.daemonConfig of the overlay is not a JSON object'],
    );
  });
}

test('names of add-ons and settings are the same whatever their spelling', () => {
  const spec = specOf(
    '  certManager: {version: 1.9.1}\n  kubernetes: {version: "1", HACluster: true}\n',
    '  cert-manager: {version: 1.9.2}\n  kubernetes: {haCluster: false}\n',
  );
  assert.equal(spec, { certManager: { version: '1.9.2' }, kubernetes: { version: '1', HACluster: false } });
});

test('an overlay of another kind or version is refused, and what else is wrong is told too', () => {
  const base = { file: 'base.yaml', text: `${HEAD}  a: {version: "1"}\n` };
  const kind = parseMerged(base, { file: 'over.yaml', text: 'apiVersion: v1\nkind: ConfigMap\nspec: {}\n' });
  assert.is(kind.installer, undefined);
  assert.equal(
    kind.diagnostics.map(({ code, place }) => `${place.file}:${place.line} ${code}`),
    [
      'over.yaml:1 installer/api-version',
      'over.yaml:1 installer/merge',
      'over.yaml:2 installer/kind',
      'over.yaml:2 installer/merge',
    ],
  );
  const legacy = parseMerged(base, { file: 'over.yaml', text: base.text.replace('cluster.', '') });
  assert.match(legacy.diagnostics[0]?.message ?? '', /^the overlay has apiVersion "kurl.sh\/v1beta1", the base has /);
  assert.is(parseMerged(base, { file: 'over.yaml', text: '# nothing\n' }).installer, undefined);
});

test('an overlay whose line begins with a non-breaking space is refused', () => {
  const { diagnostics } = merge('  a: {version: "1"}\n', '  a:\n\u00a0   x: 1\n');
  assert.equal(
    diagnostics.map(({ code, place }) => `${place.file}:${place.line} ${code}`),
    ['over.yaml:6 yaml/space'],
  );
});

test('a mistake is told in the file that makes it', () => {
  const { diagnostics } = merge(
    '  rook: {version: "1", cephReplicaCount: "3"}\n  kurl: {}\n',
    '  kurl: {airgap: "yes"}\n  ekco: {}\n',
  );
  assert.equal(
    diagnostics.map(({ code, place }) => `${place.file}:${place.line} ${code}`),
    ['base.yaml:5 installer/type', 'over.yaml:5 installer/type', 'over.yaml:6 installer/version'],
  );
});

test('attack: __proto__ in either changes no prototype', () => {
  const evil = JSON.parse(
    '{"spec": {"__proto__": {"polluted": true}, "a": {"__proto__": {"polluted": true}}}}',
  ) as JsonObject;
  mergeInstallers(evil, evil);
  mergeInstallers({ spec: { a: {} } }, evil);
  assert.is(({} as { polluted?: unknown }).polluted, undefined);
});

test('the YAML of a document is read as the same document', () => {
  const text = `${HEAD}  a: {version: "1.10", x: "true", y: 'a: b', z: "l1\\nl2\\n", w: [1, {b: c}]}\n`;
  const { document } = parseInstaller('a', text);
  assert.equal(parseInstaller('b', installerYaml(document ?? {})).document, document);
});

test.run();
