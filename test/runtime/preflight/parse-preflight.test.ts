import { parsePreflight } from '../../../src/runtime/preflight/parse-preflight.ts';
import { NO_INSTALLATION, templateData } from '../../../src/runtime/preflight/situation.ts';
import * as assert from '../../support/assert.ts';
import { parse, specText } from '../../support/preflight.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/parse');
const DATA = templateData({
  ...NO_INSTALLATION,
  primaryHosts: ['10.0.0.1'],
  secondaryHosts: ['10.0.0.2'],
  isJoin: true,
});

function findings(body: string): readonly string[] {
  return parse(body).diagnostics.map(
    ({ severity, code, place, message, hint }) =>
      `${place.line}:${place.column} ${severity} ${code}: ${message}${hint === undefined ? '' : ` (${hint})`}`,
  );
}

test('a spec becomes data', () => {
  const { preflight, diagnostics } = parse(`  collectors:
    - diskUsage: {collectorName: root, path: /}
    - cpu: {exclude: 'true'}
  analyzers:
    - diskUsage:
        checkName: Disk
        collectorName: root
        strict: true
        outcomes:
          - fail: {when: total < 30Gi, message: too small, uri: https://example.test/}
          - pass: {message: fine}
`);
  assert.equal(diagnostics, []);
  assert.is(preflight?.name, 'test');
  assert.equal(
    preflight?.collectors.map(({ kind, name, excluded, settings }) => [kind, name, excluded, settings.text('path')]),
    [
      ['diskUsage', 'root', false, '/'],
      ['cpu', undefined, true, undefined],
    ],
  );
  const [analyzer] = preflight?.analyzers ?? [];
  assert.equal(
    [analyzer?.checkName, analyzer?.collectorName, analyzer?.strict, analyzer?.excluded],
    ['Disk', 'root', true, false],
  );
  assert.equal(
    analyzer?.outcomes.map(({ verdict, when, message, uri }) => [verdict, when, message, uri]),
    [
      ['fail', 'total < 30Gi', 'too small', 'https://example.test/'],
      ['pass', '', 'fine', undefined],
    ],
  );
});

test('loops in a template make collectors, and what they exclude is left out', () => {
  const text = specText(`  collectors:
    {{kurl- if and .IsJoin (not .IsUpgrade) }}
    {{kurl- range .RemoteHosts }}
    - tcpConnect:
        collectorName: "Reach {{kurl . }}"
        address: "{{kurl . }}:6783"
        timeout: 10s
    {{kurl- end }}
    {{kurl- end }}
    - tcpPortStatus: {port: 6783, exclude: '{{kurl .IsUpgrade }}'}
`);
  const { preflight, diagnostics } = parsePreflight('spec.yaml', text, DATA);
  assert.equal(diagnostics, []);
  assert.equal(
    preflight?.collectors.map(({ settings, excluded }) => [settings.text('address'), excluded]),
    [
      ['10.0.0.1:6783', false],
      ['10.0.0.2:6783', false],
      [undefined, false],
    ],
  );
});

test('mistakes are told all at once, each with its place', () => {
  assert.equal(
    findings(`  collectors:
    - cpuu: {}
    - tcpPortStatus: {port: many}
    - diskUsage: {paht: /}
    - memory: x
  analyzers:
    - memory:
        outcomes:
          - fine: {}
    - cpu: {}
`),
    [
      '7:7 warning preflight/unknown: unknown collector "cpuu": nothing is collected (did you mean cpu?)',
      '8:23 error preflight/schema: "port" must be a non-negative integer',
      '9:7 error preflight/schema: diskUsage needs "path"',
      '9:19 warning preflight/unknown: diskUsage has no setting "paht" (did you mean path?)',
      '10:7 error preflight/schema: memory must be a map (write "memory: {}")',
      '14:13 error preflight/schema: an outcome is one of pass, warn and fail, with when and message below it',
      '15:7 error preflight/schema: outcomes must be a list of pass, warn and fail',
    ],
  );
});

test('places are those of the template, not of what it becomes', () => {
  const text = specText(`  collectors:
    {{kurl- range until 20 }}
    - cpu: {}
    {{kurl- end }}
    - tcpPortStatus: {port: many}
`);
  const { diagnostics } = parsePreflight('spec.yaml', text, DATA);
  assert.equal(
    diagnostics.map(({ place }) => [place.line, place.column]),
    [[10, 23]],
  );
});

test('another kind or version of document is refused', () => {
  const { preflight, diagnostics } = parsePreflight(
    'f',
    'apiVersion: troubleshoot.sh/v1beta1\nkind: Preflight\n',
    DATA,
  );
  assert.is(preflight, undefined);
  assert.equal(
    diagnostics.map(({ message }) => message),
    ['apiVersion must be troubleshoot.sh/v1beta2', 'kind must be HostPreflight'],
  );
  assert.match(parsePreflight('f', '- a\n', DATA).diagnostics[0]?.message ?? '', 'not a HostPreflight');
});

test('a template with a syntax error gives one finding with its place', () => {
  assert.equal(findings('  collectors:\n    {{kurl if }}\n'), [
    '7:5 error preflight/template: a value or function is missing',
  ]);
});

test('anchors that stand for millions of values are refused at once', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let at = 1; at < 20; at += 1) {
    lines.push(`a${at}: &a${at} [${Array.from({ length: 10 }, () => `*a${at - 1}`).join(', ')}]`);
  }
  const { preflight, diagnostics } = parsePreflight(
    'f',
    specText(`  collectors: []\n${lines.map((line) => `  ${line}`).join('\n')}\n`),
    DATA,
  );
  assert.is(preflight, undefined);
  assert.equal(
    diagnostics.map(({ code }) => code),
    ['yaml/aliases'],
  );
  const deep = parsePreflight('f', `a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`, DATA);
  assert.is(deep.preflight, undefined);
  assert.match(deep.diagnostics[0]?.code ?? '', /^yaml\//);
});

test('a yes or no may be a text, as templates make it; anything else counts as no and is told', () => {
  const { preflight } = parse(
    "  collectors:\n    - cpu: {exclude: 'TRUE'}\n    - cpu: {exclude: ''}\n    - cpu: {exclude: 1}\n",
  );
  assert.equal(
    preflight?.collectors.map(({ excluded }) => excluded),
    [true, false, true],
  );
  assert.equal(findings('  collectors:\n    - cpu: {exclude: maybe}\n'), [
    '7:13 warning preflight/schema: "exclude" is neither true nor false: false is assumed',
  ]);
});

test.run();
