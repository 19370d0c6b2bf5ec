import { parseInstaller } from '../../src/installer/parse.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/parse');

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: site\nspec:\n';

function codes(text: string): readonly string[] {
  return parseInstaller('i.yaml', text).diagnostics.map(({ code }) => code);
}

test('a spec is read with versions, settings, sections and places', () => {
  const { installer, diagnostics } = parseInstaller(
    'i.yaml',
    `${HEAD}  certManager:\n    version: "1.9.x"\n    replicas: 2\n    s3Override: https://host/p.tar.gz\n  kurl:\n    airgap: true\n  ekco: {version: latest}\n`,
  );
  assert.equal(diagnostics, []);
  assert.is(installer?.name, 'site');
  assert.equal(installer?.addons, [
    {
      specName: 'certManager',
      name: 'cert-manager',
      requested: '1.9.x',
      settings: { replicas: 2 },
      s3Override: 'https://host/p.tar.gz',
      place: { file: 'i.yaml', line: 6, column: 3, length: 11 },
    },
    {
      specName: 'ekco',
      name: 'ekco',
      requested: 'latest',
      settings: {},
      s3Override: undefined,
      place: { file: 'i.yaml', line: 12, column: 3, length: 4 },
    },
  ]);
  assert.equal(installer?.sections, [{ specName: 'kurl', settings: { airgap: true } }]);
});

test('the legacy apiVersion, CRLF, a leading document marker and merge keys are accepted', () => {
  const text = `---\napiVersion: kurl.sh/v1beta1\nkind: Installer\nx: &x {version: "1"}\nspec:\n  a: {<<: *x, b: 1}\n`;
  assert.equal(codes(text.replaceAll('\n', '\r\n')), ['installer/unknown-key']);
  assert.equal(parseInstaller('i.yaml', text).installer?.addons[0]?.requested, '1');
});

test('an unknown top key is a warning with the near name', () => {
  const { installer, diagnostics } = parseInstaller('i.yaml', `${HEAD}  a: {version: "1"}\nmetdata: {}\n`);
  assert.is(diagnostics[0]?.severity, 'warning');
  assert.is(diagnostics[0]?.hint, 'did you mean "metadata"?');
  assert.equal(diagnostics[0]?.place, { file: 'i.yaml', line: 7, column: 1, length: 7 });
  assert.ok(installer);
});

test('all mistakes are told at once, in the order of the file', () => {
  const found = parseInstaller('i.yaml', 'apiVersion: v9\nkind: Pod\nspec:\n  a: {}\n  b: 1\n  c: {version: 1.10}\n');
  assert.is(found.installer, undefined);
  assert.equal(
    found.diagnostics.map(({ code, place }) => `${place.line}:${place.column} ${code}`),
    [
      '1:1 installer/api-version',
      '2:1 installer/kind',
      '4:3 installer/version',
      '5:3 installer/addon',
      '6:7 installer/version',
    ],
  );
  assert.match(found.diagnostics.at(-1)?.hint ?? '', 'quotes');
});

for (const [title, text, code] of [
  ['an empty file', '', 'installer/document'],
  ['a list', '- a\n', 'installer/document'],
  ['a text', 'hello', 'installer/document'],
  ['no spec', 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\n', 'installer/spec'],
  ['a spec that is a list', `${HEAD}  - a\n`, 'installer/spec'],
  ['a tab as indent', `${HEAD}\ta: {version: "1"}\n`, 'yaml/syntax'],
  ['a broken flow map', `${HEAD}  a: {version: "1"\n`, 'yaml/syntax'],
  ['two documents', `${HEAD}  a: {version: "1"}\n---\na: b\n`, 'yaml/syntax'],
  ['a double key', `${HEAD}  a: {version: "1"}\n  a: {version: "2"}\n`, 'yaml/duplicate'],
  ['one add-on under two names', `${HEAD}  fooBar: {version: "1"}\n  foo-bar: {version: "2"}\n`, 'installer/twice'],
  ['a map as key', `${HEAD}  ? {a: b}\n  : {version: "1"}\n`, 'yaml/key'],
  ['a name that leaves the folder', `${HEAD}  ../x: {version: "1"}\n`, 'installer/name'],
  ['a version that leaves the folder', `${HEAD}  a: {version: ../../x}\n`, 'installer/version'],
  ['a version with a slash', `${HEAD}  a: {version: 1/2}\n`, 'installer/version'],
  ['a version that is a list', `${HEAD}  a: {version: [1]}\n`, 'installer/version'],
  ['an s3Override that is no URL', `${HEAD}  a: {version: "1", s3Override: /etc/passwd}\n`, 'installer/s3-override'],
  ['an s3Override of another scheme', `${HEAD}  a: {version: "1", s3Override: "file:///x"}\n`, 'installer/s3-override'],
  ['a NUL in a setting', `${HEAD}  a: {version: "1", x: "\\0"}\n`, 'yaml/value'],
  ['a number that is none', `${HEAD}  a: {version: "1", x: .nan}\n`, 'yaml/value'],
  ['a number too long to keep', `${HEAD}  a: {version: "1", x: 99999999999999999999}\n`, 'yaml/value'],
  ['a setting that becomes BASH_ENV', `${HEAD}  bash: {version: "1", env: /tmp/x}\n`, 'installer/variable'],
  ['a setting that becomes LD_PRELOAD', `${HEAD}  ld: {version: "1", preload: /tmp/x}\n`, 'installer/variable'],
  ['a non-breaking space', `${HEAD}\u00a0 a: {version: "1"}\n`, 'yaml/space'],
  [
    'metadata that is a text',
    `apiVersion: kurl.sh/v1beta1\nkind: Installer\nmetadata: x\nspec: {}\n`,
    'installer/metadata',
  ],
] as const) {
  test(`${title} is an error`, () => {
    const { installer, diagnostics } = parseInstaller('i.yaml', text);
    assert.is(installer, undefined);
    assert.ok(
      diagnostics.some((found) => found.code === code),
      JSON.stringify(diagnostics),
    );
  });
}

test('attack: a billion laughs is refused', () => {
  const levels = Array.from({ length: 9 }, (_, i) => `l${i + 1}: &l${i + 1} [${`*l${i},`.repeat(9)}]`);
  assert.equal(codes(`l0: &l0 [lol]\n${levels.join('\n')}\n${HEAD}  a: {version: "1"}\n`), ['yaml/aliases']);
});

test('attack: an anchor inside itself is refused', () => {
  const found = codes(`${HEAD}  a: &a {version: "1", x: *a}\n`);
  assert.ok(
    found.every((code) => code.startsWith('yaml/')),
    found.join(),
  );
  assert.is(parseInstaller('i.yaml', `${HEAD}  a: &a {version: "1", x: *a}\n`).installer, undefined);
});

test('attack: anchors and nesting of a million levels are refused', () => {
  assert.is(parseInstaller('i.yaml', `${HEAD}  a: {version: "1", x: ${'['.repeat(200_000)}`).installer, undefined);
  const nested = `${HEAD}  a: {version: "1", x: ${'['.repeat(60)}${']'.repeat(60)}}\n`;
  assert.is(parseInstaller('i.yaml', nested).installer, undefined);
});

test('attack: a file that is too large is not parsed', () => {
  assert.equal(codes(`${HEAD}${' '.repeat(2 << 20)}`), ['yaml/size']);
});

test('attack: unknown tags make no objects', () => {
  const text = `${HEAD}  a: {version: "1", x: !!js/function "function(){}"}\n`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  assert.is(diagnostics[0]?.code, 'yaml/tag');
  assert.is(installer?.addons[0]?.settings['x'], 'function(){}');
});

test('attack: __proto__ as a key changes no prototype', () => {
  parseInstaller('i.yaml', `${HEAD}  a: {version: "1", __proto__: {polluted: true}}\n`);
  assert.is(({} as { polluted?: unknown }).polluted, undefined);
});

test.run();
