import * as fc from 'fast-check';
import { eachDocument } from '../../../src/manifest/lint/yaml-text.ts';
import { yamlFacts } from '../../../src/manifest/lint/yaml-facts.ts';
import type { Remark } from '../../../src/manifest/lint/spot.ts';
import * as assert from '../../support/assert.ts';
import { lintFiles, told, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('manifest/lint/yaml');

for (const [title, text, expected] of [
  ['plain YAML of several documents', 'a: 1\n---\nb: [x, {y: z}]\n---\n# nothing\n', []],
  ['an empty file', '', []],
  ['directives and an end mark', '%YAML 1.2\n---\na: 1\n...\n', []],
  ['a byte order mark', '\u{FEFF}a: 1\n', []],
  ['CR LF', 'a: 1\r\nb:\r\n  - c\r\n', []],
  ['a tag of another program', 'a: !Ref b\n', []],
  ['a mapping that is indented wrongly', 'a: b\n c: d\n', ['x.yaml:1:4 error yaml/syntax']],
  ['a mistake in the second document', 'a: 1\n---\nb: "x\n', ['x.yaml:4:1 error yaml/syntax']],
  ['a tab as indentation', 'a:\n\tb: c\n', ['x.yaml:2:1 error yaml/syntax']],
  ['mistakes of two documents', 'a: {\n---\n[b\n', ['x.yaml:2:1 error yaml/syntax', 'x.yaml:4:1 error yaml/syntax']],
  ['a key that stands twice', 'a: 1\nb: 2\na: 3\n', ['x.yaml:3:1 warning yaml/duplicate-key']],
  ['keys of the same name in two maps', 'a: {b: 1}\nc: {b: 1}\n', []],
  ['bytes that are no text', 'a: \u0001\n', ['x.yaml:1:4 error yaml/encoding']],
  ['shell variables', 'a: ${X}\nb: "$Y"\nc: $Z\nport: ${PORT:-"80"}\n', []],
  ['a shell command', 'a: $(kubectl get x -o yaml | sed "s/: /{/")\n', []],
  ['quotes that are escaped for echo', 'a: \\"$X\\"\nb: ${Y:-\'""\'}\nc:\n  - \\"d: e\\"\n', []],
  ['Go templates', '{{- if .X }}\na: {{ .Y }}\n{{ end }}\nb: "{{ .Z | quote }}"\n', []],
  ['branches of a template with the same key', '{{ if .X }}\na: 1\n{{ else }}\na: 2\n{{ end }}\n', []],
  ['a template that parses only when it is rendered', 'a: ${X}\n b: c\n', ['x.yaml:1:4 info yaml/template']],
] as const) {
  test(`YAML: ${title}`, async ({ signal }) => {
    assert.equal(await toldOf('x.yaml', text, { signal }), [...expected]);
  });
}

test('files of other kinds are not parsed as YAML', async ({ signal }) => {
  assert.equal(await toldOf('x.txt', 'a: b\n c: d\n', { signal }), []);
});

test('YAML that is not UTF-8 is told once', async ({ signal }) => {
  const report = await lintFiles(
    { 'addons/ekco/1/x.yml': Uint8Array.of(0x61, 0x3a, 0x20, 0xff, 0xfe, 0x0a) },
    { signal },
  );
  assert.equal(told(report), ['x.yml:1:4 error yaml/encoding']);
});

test('the same text in two versions is told for both', async ({ signal }) => {
  const text = 'a: b\n c: d\n';
  const report = await lintFiles(
    {
      'addons/ekco/1/x.yaml': text,
      'addons/ekco/2/Manifest': '',
      'addons/ekco/2/install.sh': 'ekco() { :; }\n',
      'addons/ekco/2/deep/y.yaml': text,
    },
    { signal },
  );
  assert.equal(told(report), ['x.yaml:1:4 error yaml/syntax', 'addons/ekco/2/deep/y.yaml:1:4 error yaml/syntax']);
  assert.is(report.diagnostics[1]?.source, 'a: b');
});

function remarksOf(text: string): readonly Remark[] {
  const remarks: Remark[] = [];
  eachDocument(
    text,
    (remark) => {
      remarks.push(remark);
    },
    () => undefined,
  );
  return remarks;
}

for (const [title, text] of [
  ['brackets nested a million deep', '['.repeat(1_000_000)],
  ['maps nested in one line', '{a: '.repeat(20_000)],
  ['lists nested in one line', '- '.repeat(200_000)],
  ['keys nested in one line', '? '.repeat(100_000)],
  ['a list of half a million items', `[${'a,'.repeat(500_000)}b]`],
  ['a document of 2 MiB', `a: &b "${'x'.repeat(2 << 20)}"`],
  ['a million lines', '\n'.repeat(1_000_000) + 'a: &b 1'],
  ['a hundred thousand documents', '--- 1\n'.repeat(100_000)],
] as const) {
  test(`not judged, and told once: ${title}`, () => {
    assert.equal(
      remarksOf(text).map(({ code }) => code),
      ['yaml/too-large'],
    );
  });
}

test('a plain document is judged, however large', () => {
  assert.equal(remarksOf(`a: "${'x'.repeat(2 << 20)}"\n${'\n'.repeat(30_000)}b: 1\n`), []);
});

for (const [title, text] of [
  [
    'aliases of aliases',
    `a: &a [x, x]\n${'bcdefghijklmnop'.replaceAll(/./g, (key) => `${key}: &${key} [*a, *a, *a, *a]\n`)}`,
  ],
  ['an anchor inside of itself', 'a: &a\n  b: *a\n'],
  ['openers of templates without end', `a: ${'${'.repeat(200_000)}\n`],
  ['holes by the hundred thousand', `a: ${'${x}'.repeat(100_000)}\n`],
  ['actions that never close', `${'{{ }'.repeat(100_000)}\n`],
] as const) {
  test(`harmless: ${title}`, () => {
    assert.ok(remarksOf(text).length <= 1);
  });
}

test('a file larger than 8 MiB is not judged, and that is told', async ({ signal }) => {
  assert.equal(await toldOf('x.yaml', 'a: 1\n'.repeat(2 << 20), { signal }), ['x.yaml:1:1 info yaml/too-large']);
});

/** Scraps of what may be judged, and of what may go wrong. */
const PARTS =
  'kind: HostPreflight\n¶kind: Secret\n¶kind: SupportBundle\n¶apiVersion: troubleshoot.sh/v1beta2\n¶spec:\n¶  collectors:\n¶' +
  '  - cpu: {}\n¶  - *a\n¶  - &a\n¶stringData:\n¶  support-bundle-spec: |\n¶    kind: SupportBundle\n¶    spec: 1\n¶' +
  '  analyzers: x\n¶---\n¶...\n¶%YAML 1.2\n¶# c\n¶\t¶images:\n¶- name: a/b\n¶  newTag: 1\n¶image: a/b:c\n¶{{ if }}\n¶' +
  '${X}¶$(¶"¶\'¶[¶}¶<<: ¶? ¶- ¶: ¶|\n¶>-2\n¶!!binary ¶\r\n¶\u{1F600}¶1: 2\n¶~\n¶\\"';

test('whatever the text, it is judged without an error of our own, and places lie inside of it', async () => {
  const part = fc.constantFrom(...PARTS.split('¶'));
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 25 }), async (parts) => {
      const text = parts.join('');
      const { remarks, uses, rewrites } = await yamlFacts(text);
      return [...remarks, ...uses, ...rewrites].every(({ from, to }) => from >= 0 && from <= text.length && to >= from);
    }),
    cases(2000),
  );
});

test('a cancelled run stops between two files', async () => {
  const controller = new AbortController();
  controller.abort(new Error('enough'));
  const ended = await lintFiles({ 'addons/ekco/1/x.yaml': 'a: 1\n' }, { signal: controller.signal }).catch(
    (error: unknown) => error,
  );
  assert.is(ended, controller.signal.reason);
});

test.run();
