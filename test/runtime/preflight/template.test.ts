import { KURL_DELIMITERS, renderText, renderTemplate } from '../../../src/formats/go-template/render.ts';
import type { ValueMap } from '../../../src/formats/go-template/values.ts';
import { TemplateProblem } from '../../../src/formats/go-template/lex.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/template');

const DATA: ValueMap = {
  IsUpgrade: false,
  IsJoin: true,
  RemoteHosts: ['10.0.0.1', '10.0.0.2'],
  Installer: { Spec: { rook: { version: '1.0.4', blockDeviceFilter: 'sd[b-z]', minimumNodeCount: 3 }, openebs: {} } },
};

function render(text: string, data: ValueMap = DATA): string {
  const { text: rendered, diagnostics } = renderTemplate(text, data, { file: 'spec.yaml', ...KURL_DELIMITERS });
  return rendered ?? diagnostics.map(({ place, message }) => `${place.line}:${place.column} ${message}`).join('\n');
}

function problem(text: string): string {
  try {
    return renderText(text, DATA);
  } catch (error) {
    if (error instanceof TemplateProblem) return error.message;
    throw error;
  }
}

test('plain text and plain braces stay as they are', () => {
  assert.is(render('a: {{ .Name }}\n'), 'a: {{ .Name }}\n');
  assert.is(render(''), '');
});

test('case 30: fields are found whatever case kURL gives them, and what is not set is empty', () => {
  assert.is(render('{{kurl .Installer.Spec.Rook.BlockDeviceFilter }}'), 'sd[b-z]');
  assert.is(render('[{{kurl .Installer.Spec.Docker.Version }}]'), '[]');
  assert.is(render('{{kurl not .Installer.Spec.Docker.Version }}'), 'true');
  assert.is(render('{{kurl .IsUpgrade}}'), 'false');
});

test('"and" and "or" hand on the value that decides, and behind a pipe comes the last argument', () => {
  assert.is(render('{{kurl and .Installer.Spec.Rook.Version .IsJoin (not .IsUpgrade) | not }}'), 'false');
  assert.is(render('{{kurl and .IsJoin .Installer.Spec.Docker.Version | not }}'), 'true');
  assert.is(render('{{kurl or (.IsUpgrade) (gt .Installer.Spec.Rook.MinimumNodeCount 2)}}'), 'true');
  assert.is(render('{{kurl or .Installer.Spec.Docker.Version "none" }}'), 'none');
  assert.is(render('{{kurl gt .Installer.Spec.Docker.Count 2 }}'), 'false');
});

test('if, else if and else choose one branch', () => {
  const text = '{{kurl if .IsUpgrade }}a{{kurl else if .IsJoin }}b{{kurl else }}c{{kurl end }}';
  assert.is(render(text), 'b');
  assert.is(render(text, { ...DATA, IsUpgrade: true }), 'a');
  assert.is(render(text, { ...DATA, IsJoin: false }), 'c');
});

test('a range makes its body once for each item, and its else when there is none', () => {
  assert.is(render('{{kurl range .RemoteHosts }}<{{kurl . }}>{{kurl else }}none{{kurl end }}'), '<10.0.0.1><10.0.0.2>');
  assert.is(
    render('{{kurl range $i, $host := .RemoteHosts }}{{kurl $i }}={{kurl $host }};{{kurl end }}'),
    '0=10.0.0.1;1=10.0.0.2;',
  );
  assert.is(
    render('{{kurl range .RemoteHosts }}x{{kurl else }}none{{kurl end }}', { ...DATA, RemoteHosts: [] }),
    'none',
  );
  assert.is(
    render('{{kurl range $k, $v := .Installer.Spec.Rook }}{{kurl $k }} {{kurl end }}'),
    'blockDeviceFilter minimumNodeCount version ',
  );
  assert.is(
    render('{{kurl range until 3 }}{{kurl if eq . 1 }}{{kurl continue }}{{kurl end }}{{kurl . }}{{kurl end }}'),
    '02',
  );
  assert.is(
    render('{{kurl range until 9 }}{{kurl if eq . 2 }}{{kurl break }}{{kurl end }}{{kurl . }}{{kurl end }}'),
    '01',
  );
});

test('with takes a value as the dot, and variables keep theirs', () => {
  assert.is(render('{{kurl with .Installer.Spec.Rook }}{{kurl .Version }}{{kurl end }}'), '1.0.4');
  assert.is(render('{{kurl $v := .Installer.Spec.Rook.Version }}{{kurl $v }}'), '1.0.4');
  assert.is(render('{{kurl $v := 1 }}{{kurl if .IsJoin }}{{kurl $v = 2 }}{{kurl end }}{{kurl $v }}'), '2');
  assert.is(render('{{kurl range .RemoteHosts }}{{kurl $.IsJoin }} {{kurl end }}'), 'true true ');
});

test('trim marks take the white space beside them away', () => {
  assert.is(render('a\n  {{kurl- if .IsJoin }}\n  b\n  {{kurl- end }}\nc\n'), 'a\n  b\nc\n');
  assert.is(render('a {{kurl- "x" -}} b'), 'axb');
  assert.is(render('a {{kurl- /* nothing */ -}} b'), 'ab');
});

test('functions of sprig and of Go that specs use', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['"10.0.0.1/" | trimSuffix "/"', '10.0.0.1'],
    ['default "x" .Installer.Spec.Docker.Version', 'x'],
    ['ternary "yes" "no" .IsJoin', 'yes'],
    ['coalesce "" .Installer.Spec.Docker.Version "z"', 'z'],
    ['list 1 2 3 | join ","', '1,2,3'],
    ['len .RemoteHosts', '2'],
    ['index .RemoteHosts 1', '10.0.0.2'],
    ['printf "%s-%03d" "a" 7', 'a-007'],
    ['printf "%q" "a"', '"a"'],
    ['has "10.0.0.1" .RemoteHosts', 'true'],
    ['upper "abc" | replace "B" "-"', 'A-C'],
    ['add 1 2 3', '6'],
    ['eq 1 2 1', 'true'],
    ['eq "a" \'a\'', 'a string and a number cannot be compared'],
    ['contains "b" "abc"', 'true'],
    ['`raw "text"`', 'raw "text"'],
    ['"\\u0041\\t"', 'A\t'],
    ['splitList "," "a,b" | first', 'a'],
    ['dict "a" 1 | toString', 'map[a:1]'],
    ['.RemoteHosts', '[10.0.0.1 10.0.0.2]'],
  ];
  for (const [expression, expected] of cases) assert.match(render(`{{kurl ${expression} }}`), expected);
});

test('toJson writes JSON as Go does, and fromJson reads it', () => {
  assert.is(render('{{kurl toJson .RemoteHosts }}'), '["10.0.0.1","10.0.0.2"]');
  assert.is(
    render('{{kurl dict "b" "<&>" "a" (list 1 true) "10" 1.5 "9" .Installer.Spec.Docker.Version | toJson }}'),
    '{"10":1.5,"9":null,"a":[1,true],"b":"\\u003c\\u0026\\u003e"}',
  );
  assert.is(render('{{kurl toJson .Installer.Spec.Docker }}'), 'null');
  assert.is(
    render('{{kurl $x := fromJson "{\\"a\\":[{\\"b\\":2}],\\"n\\":null}" }}{{kurl (index $x.a 0).b }}[{{kurl $x.n }}]'),
    '2[]',
  );
  assert.is(
    render('{{kurl .Installer.Spec | toJson | fromJson | toJson }}'),
    render('{{kurl toJson .Installer.Spec }}'),
  );
  assert.match(problem('{{ fromJson "{a" }}'), /the text is not JSON/);
});

test('semverCompare follows the constraints of Masterminds', () => {
  const cases: readonly (readonly [constraint: string, version: string, holds: boolean])[] = [
    ['>= 20.10.17', '20.10.17', true],
    ['>= 20.10.17', '19.03.15', false],
    ['1.6.0 - 1.6.4', '1.6.4', true],
    ['1.6.0 - 1.6.4', '1.6.5', false],
    ['> v1.96.2', '1.100.0', true],
    ['< 1.29.0', '1.28.15', true],
    ['1.x', '1.9.3', true],
    ['~1.2', '1.2.9', true],
    ['~1.2', '1.3.0', false],
    ['^0.2.3', '0.2.9', true],
    ['^0.2.3', '0.3.0', false],
    ['>1.2 <2 || 3', '3.5.0', true],
    ['!=1.2.x', '1.2.3', false],
    ['> 1.0.0', '1.1.0-beta.1', false],
    ['> 1.0.0-0', '1.1.0-beta.1', true],
    ['<= 1.2', '1.2.9', true],
  ];
  for (const [constraint, version, holds] of cases) {
    assert.is(
      render(`{{kurl semverCompare "${constraint}" "${version}" }}`),
      String(holds),
      `${version} ${constraint}`,
    );
  }
  assert.match(render('{{kurl semverCompare ">=1" "nightly" }}'), 'is not a semantic version');
  assert.match(render('{{kurl semverCompare "bla" "1.0.0" }}'), 'invalid constraint');
});

test('a syntax error is told with its line and column', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['a\n  {{kurl if .IsJoin }}\nb', '2:3 this if has no end'],
    ['a\n{{kurl end }}', '2:1 {{end}} without an opening action'],
    ['a: {{kurl .IsJoin', '1:4 this action is not closed'],
    ['{{kurl "abc }}', '1:8 this text has no closing quote'],
    ['{{kurl (not .IsJoin }}', '1:8 this parenthesis is not closed'],
    ['{{kurl .IsJoin .IsUpgrade }}', '1:16 only a function can be followed by arguments'],
    ['{{kurl | not }}', '1:8 a value or function is missing'],
    ['{{kurl ? }}', '1:8 unexpected "?" in an action'],
    ['{{kurl $x }}', '1:8 $x is not declared'],
    ['{{kurl template "x" }}', '1:8 template is not supported'],
    ['{{kurl break }}', '1:1 break outside a range'],
    ['{{kurl if true }}{{kurl else }}{{kurl else }}{{kurl end }}', '1:32 this is a second else'],
  ];
  for (const [text, expected] of cases) assert.is(render(text), expected);
});

test('an unknown function or field names its place and what may be meant', () => {
  const { diagnostics } = renderTemplate('x\n  {{kurl trimSufix "/" "a" }}', DATA, { file: 'f', ...KURL_DELIMITERS });
  assert.equal(
    diagnostics.map(({ code, place: { line, column }, message, hint }) => [code, line, column, message, hint]),
    [['preflight/template', 2, 10, 'unknown function "trimSufix"', 'did you mean trimSuffix?']],
  );
  assert.is(render('{{kurl .IsUpgade }}'), '1:8 unknown field .IsUpgade');
  assert.is(render('{{kurl not 1 2 }}'), '1:8 not takes 1 arguments, not 2');
  assert.is(render('{{kurl fail "no rook here" }}'), '1:8 fail: no rook here');
});

test('nothing of Object.prototype is a value', () => {
  assert.is(render('[{{kurl .Installer.constructor }}{{kurl .Installer.__proto__ }}]'), '[]');
  assert.match(render('{{kurl constructor }}'), 'unknown function "constructor"');
});

test('an endless range ends with an error', () => {
  assert.match(render('{{kurl range untilStep 0 1 0 }}x{{kurl end }}'), 'a step of 0 never ends');
  assert.match(render('{{kurl range until 1000000000 }}x{{kurl end }}'), 'items, more than');
  assert.match(
    render('a\n{{kurl range 1000000000000 }}x{{kurl end }}'),
    /^2:\d+ the template needs more than 100000 steps$/,
  );
  const nested = '{{kurl range until 1000 }}'.repeat(6);
  assert.match(render(`${nested}x${'{{kurl end }}'.repeat(6)}`), 'the template needs more than');
});

test('no template becomes endlessly long or deep', () => {
  assert.match(render('{{kurl repeat 100000000 "x" }}'), 'the text would be too long');
  assert.match(render(`{{kurl range until 2000 }}${'x'.repeat(1000)}{{kurl end }}`), 'the output is longer than');
  assert.match(render(`{{kurl ${'('.repeat(100_000)} }}`), 'nested too deeply');
  assert.match(render('{{kurl if true }}'.repeat(1000)), 'nested too deeply');
  assert.match(render('x'.repeat((1 << 20) + 1)), 'the file is larger than');
});

test('a spot of the rendered text leads back to the template', () => {
  const text = 'a: 1\n{{kurl- range .RemoteHosts }}\nb: {{kurl . }}\n{{kurl- end }}\nc: 3\n';
  const { text: rendered, placeOf } = renderTemplate(text, DATA, { file: 'f', ...KURL_DELIMITERS });
  assert.is(rendered, 'a: 1\nb: 10.0.0.1\nb: 10.0.0.2\nc: 3\n');
  const lineOf = (line: number): number => placeOf({ file: 'f', line, column: 1, length: 1 }).line;
  assert.equal([1, 2, 3, 4].map(lineOf), [1, 3, 3, 5]);
});

test('messages of outcomes are templates with plain braces', () => {
  assert.is(renderText('{{ not .IsUpgrade }}', DATA), 'true');
  assert.match(problem('{{ nosuch }}'), 'unknown function');
});

test.run();
