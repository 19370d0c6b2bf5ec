import { parseDocument } from 'yaml';
import { checkSpec } from '../../../src/manifest/lint/troubleshoot.ts';
import { fillTemplate } from '../../../src/manifest/lint/template.ts';
import * as assert from '../../support/assert.ts';
import { lintFiles, told, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/lint/troubleshoot');

const HEAD = 'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\nspec:\n';

/** Indented by two. */
function lines(...texts: readonly string[]): string {
  return texts.map((text) => `  ${text}\n`).join('');
}

const PORT = lines('collectors:', '- tcpPortStatus:', '    collectorName: port', '    port: 6781');
const JUDGED = lines(
  'analyzers:',
  '- tcpPortStatus:',
  '    collectorName: port',
  "    exclude: '{{kurl .IsUpgrade }}'",
  '    outcomes:',
  '    - fail: {when: "address-in-use", message: taken}',
  '    - pass: {message: free}',
);

for (const [title, text, expected] of [
  ['a whole one', HEAD + PORT + JUDGED, []],
  ['collectors without settings', HEAD + lines('collectors:', '- hostOS: {}', '- cpu: {exclude: true}'), []],
  [
    'loops and branches',
    `${HEAD + PORT}{{kurl- if .IsJoin}}\n  {{kurl- range $i, $a := .RemoteHosts}}\n${lines('- tcpConnect:', "    address: '{{kurl $a }}:6783'")}  {{kurl- end}}\n{{kurl- end}}\n`,
    [],
  ],
  [
    'numbers that are filled in',
    HEAD + lines('collectors:', '- tcpPortStatus: {port: {{kurl .Port }} }', '- udpPortStatus:', '    port: ${PORT}'),
    [],
  ],
  [
    'a collector that does not exist',
    HEAD + lines('collectors:', '- tcpPortStats: {port: 1}'),
    ['5:5 error preflight/unknown'],
  ],
  [
    'an analyzer that does not exist',
    HEAD + lines('analyzers:', '- hostOs: {outcomes: []}'),
    ['5:5 error preflight/unknown'],
  ],
  [
    'a setting that does not exist',
    HEAD + lines('collectors:', '- hostOS:', '    port: 1'),
    ['6:7 error preflight/unknown'],
  ],
  [
    'an outcome that does not exist',
    HEAD + lines('analyzers:', '- cpu:', '    outcomes:', '    - passed: {}'),
    ['7:9 error preflight/unknown'],
  ],
  ['a setting that lacks', HEAD + lines('collectors:', '- tcpPortStatus: {}'), ['5:5 error preflight/schema']],
  ['an analyzer without outcomes', HEAD + lines('analyzers:', '- cpu: {}'), ['5:5 error preflight/schema']],
  [
    'a text in place of a number',
    HEAD + lines('collectors:', '- tcpPortStatus: {port: "80"}'),
    ['5:21 error preflight/schema'],
  ],
  [
    'a number in place of a text',
    HEAD + lines('collectors:', '- diskUsage: {path: 5}'),
    ['5:17 error preflight/schema'],
  ],
  ['a collector that nothing follows', HEAD + lines('collectors:', '- hostOS:'), ['5:5 error preflight/schema']],
  [
    'two collectors in one item',
    HEAD + lines('collectors:', '- hostOS: {}', '  cpu: {}'),
    ['5:5 error preflight/schema'],
  ],
  ['collectors that are no list', HEAD + lines('collectors:', '  cpu: {}'), ['4:3 error preflight/schema']],
  ['another version', HEAD.replace('v1beta2', 'v1beta3') + PORT, ['1:1 error preflight/schema']],
  ['another kind', HEAD.replace('Host', '') + lines('collectors: []'), ['1:1 error preflight/schema']],
  ['no spec', 'apiVersion: troubleshoot.sh/v1beta2\nkind: HostPreflight\n', ['1:1 error preflight/schema']],
  ['an empty file', '', ['1:1 error preflight/schema']],
  ['a file that does not parse', 'a: b\n c: d\n', ['1:4 error yaml/syntax']],
] as const) {
  test(`host-preflight.yaml: ${title}`, async ({ signal }) => {
    const found = await toldOf('host-preflight.yaml', text, { signal });
    assert.equal(
      found.map((line) => line.replace('host-preflight.yaml:', '')),
      [...expected],
    );
  });
}

test('near names of collectors, analyzers and settings are proposed', async ({ signal }) => {
  const text =
    HEAD + lines('collectors:', '- tcpPortStatu: {}', '- diskUsage: {pth: /}', 'analyzers:', '- hostOss: {}');
  const { diagnostics } = await lintFiles({ 'addons/ekco/1/host-preflight.yaml': text }, { signal });
  const hints = diagnostics.flatMap(({ hint }) => (hint?.startsWith('did') === true ? [hint] : []));
  assert.equal(hints, ['did you mean "tcpPortStatus"?', 'did you mean "path"?', 'did you mean "hostOS"?']);
});

test('a HostPreflight is judged in whatever file it stands', async ({ signal }) => {
  const text = `a: 1\n---\n${HEAD}${lines('collectors:', '- cpus: {}')}`;
  assert.equal(await toldOf('deep/other.yaml', text, { signal }), ['deep/other.yaml:7:5 error preflight/unknown']);
});

function bundle(kind: string, label: string, ...spec: readonly string[]): string {
  const head = `apiVersion: v1\nkind: ${kind}\nmetadata:\n  labels:\n    ${label}\n`;
  const field = kind === 'Secret' ? 'stringData' : 'data';
  const inner = [
    'apiVersion: troubleshoot.sh/v1beta2',
    'kind: SupportBundle',
    'spec:',
    ...spec.map((line) => `  ${line}`),
  ];
  return `${head}${field}:\n  support-bundle-spec: |\n${inner.map((line) => `    ${line}\n`).join('')}`;
}

const LABEL = 'troubleshoot.sh/kind: support-bundle';

for (const [title, text, expected] of [
  ['a SupportBundle in a Secret', bundle('Secret', LABEL, 'collectors:', '- logs: {name: "${NS}/x"}'), []],
  [
    'a SupportBundle in a ConfigMap',
    bundle('ConfigMap', 'troubleshoot.io/kind: support-bundle', 'analyzers:', '- velero: {}'),
    [],
  ],
  [
    'an analyzer that is not known',
    bundle('Secret', LABEL, 'analyzers:', '- textAnalyse: {outcomes: []}'),
    ['12:9 warning troubleshoot/unknown'],
  ],
  [
    'a host collector',
    bundle('Secret', LABEL, 'hostCollectors:', '- hostOS: {}', '- cpux: {}'),
    ['13:9 warning troubleshoot/unknown'],
  ],
  [
    'a wrong form',
    bundle('Secret', LABEL, 'collectors:', '- logs:', '    name: 5'),
    ['13:11 warning troubleshoot/schema'],
  ],
  ['a spec that does not parse', bundle('Secret', LABEL, 'collectors: ["'), ['12:1 error yaml/syntax']],
  ['no label', bundle('Secret', 'app: x', 'collectors: []'), ['7:3 warning troubleshoot/label']],
  [
    'a spec in quotes',
    bundle('Secret', LABEL).replace(
      /\|[^]*/,
      '"kind: SupportBundle\\napiVersion: troubleshoot.sh/v1beta2\\nspec: {colectors: []}"\n',
    ),
    ['7:24 warning troubleshoot/unknown'],
  ],
  [
    'a SupportBundle of its own',
    'apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\nspec:\n  colectors: []\n',
    ['4:3 warning troubleshoot/unknown'],
  ],
  [
    'a SupportBundle of another program',
    'apiVersion: longhorn.io/v1beta2\nkind: SupportBundle\nspec: {nodeID: x}\n',
    ['1:1 warning troubleshoot/no-spec'],
  ],
  ['nothing of the kind', 'kind: Secret\n', ['1:1 warning troubleshoot/no-spec']],
] as const) {
  test(`troubleshoot.yaml: ${title}`, async ({ signal }) => {
    const found = await toldOf('troubleshoot.yaml', text, { signal });
    assert.equal(
      found.map((line) => line.replace('troubleshoot.yaml:', '')),
      [...expected],
    );
  });
}

test('a spec that aliases blow up is refused, not expanded', () => {
  const levels = 'bcdefghijklmnopqrst'.replaceAll(/./g, (key) => {
    const before = String.fromCharCode(key.charCodeAt(0) - 1);
    return `  ${key}: &${key} [*${before}, *${before}, *${before}, *${before}]\n`;
  });
  const text = `${HEAD}  a: &a [x]\n${levels}`;
  const [remark] = checkSpec('HostPreflight', { tree: parseDocument(text), base: 0, template: fillTemplate(text) });
  assert.equal([remark?.code, remark?.message], ['preflight/schema', 'its aliases cannot be expanded']);
});

test('a spec with a thousand mistakes is told of twenty', async ({ signal }) => {
  const text = HEAD + lines('collectors:', ...Array.from({ length: 1000 }, () => '- cpux: {}'));
  const report = await lintFiles({ 'addons/ekco/1/host-preflight.yaml': text }, { signal });
  assert.is(told(report).length, 20);
});

test.run();
