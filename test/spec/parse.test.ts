import { parseInstaller, parseMerged } from '../../src/spec/parse.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/parse');

const HEAD = 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata:\n  name: site\nspec:\n';

function codes(text: string): readonly string[] {
  return parseInstaller('i.yaml', text).diagnostics.map(({ code }) => code);
}

test('an s3Override may have its scheme in capitals, as every address of a store', () => {
  for (const s3Override of ['S3://bucket/p.tar.gz', 'HTTPS://host/p.tar.gz']) {
    const { installer } = parseInstaller('i.yaml', `${HEAD}  a: {version: "1", s3Override: "${s3Override}"}\n`);
    assert.is(installer?.addons[0]?.s3Override, s3Override);
  }
});

test('a spec is read with versions, settings, sections and places', () => {
  const { installer, diagnostics } = parseInstaller(
    'i.yaml',
    `${HEAD}  certManager:\n    version: "1.9.x"\n    hookTimeout: 2m\n    s3Override: https://host/p.tar.gz\n  kurl:\n    airgap: true\n  ekco: {version: latest}\n`,
  );
  assert.equal(diagnostics, []);
  assert.is(installer?.name, 'site');
  assert.equal(installer?.addons, [
    {
      specName: 'certManager',
      name: 'cert-manager',
      requested: '1.9.x',
      settings: { hookTimeout: '2m' },
      s3Override: 'https://host/p.tar.gz',
      place: { file: 'i.yaml', line: 6, column: 3, length: 11 },
      places: new Map([
        ['version', { file: 'i.yaml', line: 7, column: 5, length: 7 }],
        ['hookTimeout', { file: 'i.yaml', line: 8, column: 5, length: 11 }],
        ['s3Override', { file: 'i.yaml', line: 9, column: 5, length: 10 }],
      ]),
    },
    {
      specName: 'ekco',
      name: 'ekco',
      requested: 'latest',
      settings: {},
      s3Override: undefined,
      place: { file: 'i.yaml', line: 12, column: 3, length: 4 },
      places: new Map([['version', { file: 'i.yaml', line: 12, column: 10, length: 7 }]]),
    },
  ]);
  assert.equal(installer?.sections, [{ specName: 'kurl', settings: { airgap: true } }]);
});

test('the legacy apiVersion, CRLF, a leading document marker and merge keys are accepted', () => {
  const text = `---\napiVersion: kurl.sh/v1beta1\nkind: Installer\nx: &x {version: "1"}\nspec:\n  a: {<<: *x, b: 1}\n`;
  assert.equal(codes(text.replaceAll('\n', '\r\n')), ['installer/unknown-key']);
  assert.equal(parseInstaller('i.yaml', text).installer?.addons[0]?.requested, '1');
});

test('a file that is not text is one finding', () => {
  const { diagnostics } = parseInstaller('b.tar.gz', '\u001f\u008b\0\0: x\n: y\n\t- z\n');
  assert.equal(
    diagnostics.map(({ code, message }) => [code, message]),
    [['yaml/text', 'this is not a text file']],
  );
});

test('a misspelled "version" is named where the version is missing', () => {
  const [found] = parseInstaller('i.yaml', `${HEAD}  a: {verison: "1", size: 2}\n`).diagnostics;
  assert.equal([found?.message, found?.hint], ['a has no version', 'is "verison" the version?']);
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

test('an add-on without a version is not installed, and its settings are variables all the same', () => {
  for (const version of ['', 'version: "", ', 'version: null, ']) {
    const { installer, diagnostics } = parseInstaller('i.yaml', `${HEAD}  contour: {${version}httpPort: 80}\n`);
    assert.equal(installer?.addons, []);
    assert.is(installer?.sections[0]?.settings['httpPort'], 80);
    assert.equal(
      diagnostics.map(({ severity, message }) => `${severity} ${message}`),
      ['warning contour has no version: it is not installed'],
    );
  }
  const hintOf = (settings: string): string =>
    parseInstaller('i.yaml', `${HEAD}  contour: {${settings}}\n`).diagnostics[0]?.hint ?? '';
  assert.match(
    hintOf('httpPort: 80'),
    'merged over a spec that has one (installer-spec-file=FILE), it keeps that version',
  );
  assert.not.match(hintOf('version: "", httpPort: 80'), 'merged');
  assert.equal(codes(`${HEAD}  contour: {httpPort: x}\n`), ['installer/version', 'installer/type']);
  assert.equal(codes(`${HEAD}  ../x: {}\n`), ['installer/name']);
});

test('an add-on without a version is an error at its line, unless it is one of kURL with other settings', () => {
  for (const line of ['web:', 'web: ~', 'web: {}', 'web: {version: ~}', 'web: {replicas: 2}', 'kubernetes:']) {
    const { installer, diagnostics } = parseInstaller('i.yaml', `${HEAD}  x: {version: latest}\n  ${line}\n`);
    assert.is(installer, undefined);
    assert.equal(
      diagnostics.map(({ severity, code, place }) => `${severity} ${code} ${place.line}`),
      [`error installer/version ${HEAD.split('\n').length + 1}`],
    );
  }
  assert.equal(codes(`${HEAD}  kurl:\n  web: {version: ""}\n`), ['installer/version']);
});

test('two settings with one variable are an error that names both', () => {
  for (const [spec, message] of [
    ['x: {version: "1", a-b: 1, "a b": 2}', 'x.a-b and x.a b would be the same variable X_A_B'],
    ['x: {version: "1", aB: 1, a_b: 2}', 'x.aB and x.a_b would be the same variable X_A_B'],
    ['x: {version: "1", yZ: 1}\n  x-y: {version: "1", z: 2}', 'x.yZ and x-y.z would be the same variable X_Y_Z'],
    [
      'x: {version: "1", yVersion: 1}\n  x-y: {version: "1"}',
      'x.yVersion and x-y.version would be the same variable X_Y_VERSION',
    ],
  ]) {
    const { diagnostics } = parseInstaller('i.yaml', `${HEAD}  ${spec}\n`);
    assert.equal(
      diagnostics.map((found) => `${found.severity} ${found.message}`),
      [`error ${message}`],
    );
  }
  assert.equal(codes(`${HEAD}  x: {version: "1", aB: 1, ab: 2}\n  weave: {version: "1", podCidrRange: /22}\n`), []);
});

test('switches of YAML 1.1 and numbers in another form are warnings with the quoted form', () => {
  const settings = 'a: no, b: Off, c: yes, d: 1.10, e: 0123, f: [1, 010], g: 1e3';
  const { installer, diagnostics } = parseInstaller('i.yaml', `${HEAD}  x: {version: "1", ${settings}}\n`);
  assert.ok(installer);
  assert.equal(
    diagnostics.map(({ severity, hint }) => `${severity} ${hint}`),
    [
      ...['false, or "no"', 'false, or "Off"', 'true, or "yes"'].map(
        (text) => `warning write ${text} to mean the text`,
      ),
      ...['1.10', '0123', '010', '1e3'].map((text) => `warning write "${text}"`),
    ],
  );
  const fine = "a: false, b: 'no', c: \"1.10\", d: 12, e: -0.5, f: [1, 'off'], g: true, h: nothing, i: 1.2.3";
  assert.equal(codes(`${HEAD}  x: {version: "1", ${fine}}\n`), []);
  const secret = parseInstaller('i.yaml', `${HEAD}  x: {version: "1", password: 0481}\n`).diagnostics;
  assert.equal(secret.length, 1);
  assert.not.match(JSON.stringify(secret), '481');
});

test('in a merged spec a null keeps what the other has, and an add-on that neither gives a version is an error', () => {
  const merged = (base: string, overlay: string): readonly string[] =>
    parseMerged({ file: 'b.yaml', text: HEAD + base }, { file: 'o.yaml', text: HEAD + overlay }).diagnostics.map(
      ({ code, place }) => `${code} ${place.file}`,
    );
  assert.equal(merged('  web: {version: "1"}\n', '  web:\n'), []);
  assert.equal(merged('  web:\n', '  web: {version: "1"}\n'), []);
  assert.equal(merged('  web:\n  x: {version: "1"}\n', '  x: {a: no}\n'), [
    'installer/version b.yaml',
    'installer/unquoted o.yaml',
  ]);
});

test('a setting beside the add-ons is left out, and it is said below which it belongs', () => {
  const { installer, diagnostics } = parseInstaller(
    'i.yaml',
    `${HEAD}  applicationSlug: app\n  ekco: {version: latest}\n`,
  );
  assert.is(installer?.addons.length, 1);
  assert.equal(
    diagnostics.map(({ severity, hint }) => `${severity} ${hint}`),
    ['warning it is a setting of kotsadm: move it under that key'],
  );
  assert.is(parseInstaller('i.yaml', `${HEAD}  contour: latest\n`).installer, undefined);
  assert.is(parseInstaller('i.yaml', `${HEAD}  demo: latest\n`).installer, undefined);
});

test('`spec:` alone is a spec without add-ons', () => {
  const { installer, diagnostics } = parseInstaller('i.yaml', HEAD);
  assert.equal(installer, { name: 'site', addons: [], sections: [] });
  assert.equal(diagnostics, []);
});

test('a wrong type says what is wanted, what is there, and where', () => {
  const [found] = parseInstaller('i.yaml', `${HEAD}  rook:\n    version: "1"\n    cephReplicaCount: "3"\n`).diagnostics;
  assert.equal(found, {
    code: 'installer/type',
    severity: 'error',
    message: 'rook.cephReplicaCount must be a whole number, not "3"',
    place: { file: 'i.yaml', line: 8, column: 5, length: 16 },
    hint: 'write it without quotes',
  });
});

test('a setting that kURL does not know is a warning with the near name, or a remark with all names', () => {
  const text = `${HEAD}  rook: {version: "1", cephReplicaCuont: 3, verbosity: 3}\n  kurl: {verbosity: 3}\n`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  assert.ok(installer);
  assert.equal(
    diagnostics.map(({ severity, message, hint }) => [severity, message, hint]),
    [
      ['warning', 'kURL has no setting "cephReplicaCuont" of rook', 'did you mean "cephReplicaCount"?'],
      ['info', 'kURL has no setting "verbosity" of rook', 'docs/kurl-compatibility.md lists its settings'],
      ['warning', 'kURL has no setting "verbosity" of kurl', 'docs/kurl-compatibility.md lists its settings'],
    ],
  );
});

test('an add-on whose name is nearly one of kURL’s is a warning, any other is none', () => {
  const text = `${HEAD}  contianerd: {version: "1"}\n  cert-manager: {version: "1"}\n  something: {version: "1", at: all}\n`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  assert.is(installer?.addons.length, 3);
  assert.equal(
    diagnostics.map(({ code, place, hint }) => [code, place.line, hint]),
    [['installer/unknown-addon', 6, 'did you mean "containerd"?']],
  );
});

test('what follows the document and holds nothing is no second one', () => {
  for (const end of ['---\n', '---\r\n# end\r\n...\r\n', '...\n---\n---\n']) {
    const { installer, diagnostics } = parseInstaller('i.yaml', `---\n${HEAD}  a: {version: "1"}\n${end}`);
    assert.equal(diagnostics, [], JSON.stringify(end));
    assert.is(installer?.addons.length, 1);
  }
});

test('tabs are told once a line, without what the parser makes of the rest', () => {
  const text = `${HEAD}  a:\n\tversion: "1"\n  b:\n\tversion: "2"\n\tc: d\n`;
  assert.equal(
    parseInstaller('i.yaml', text).diagnostics.map(({ code, place, hint }) => [code, place.line, hint]),
    [6, 8, 9].map((line) => ['yaml/syntax', line + HEAD.split('\n').length - 5, 'indent with blanks']),
  );
});

test('a word that other YAML takes for a switch is told with the right one', () => {
  const text = `${HEAD}  kurl: {airgap: yes, ipv6: "Off", excludeBuiltinHostPreflights: "true"}\n`;
  assert.equal(
    parseInstaller('i.yaml', text).diagnostics.map(({ hint }) => hint),
    ['write true', 'write false', 'write it without quotes'],
  );
});

for (const [title, text, code] of [
  ['an empty file', '', 'installer/document'],
  ['a list', '- a\n', 'installer/document'],
  ['a text', 'hello', 'installer/document'],
  ['no spec', 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\n', 'installer/spec'],
  ['a spec that is a list', `${HEAD}  - a\n`, 'installer/spec'],
  ['a tab as indent', `${HEAD}\ta: {version: "1"}\n`, 'yaml/syntax'],
  ['a broken flow map', `${HEAD}  a: {version: "1"\n`, 'yaml/syntax'],
  ['two documents', `${HEAD}  a: {version: "1"}\n---\na: b\n`, 'yaml/documents'],
  [
    'a ConfigMap beside the spec',
    `apiVersion: v1\nkind: ConfigMap\n---\n${HEAD}  a: {version: "1"}\n`,
    'yaml/documents',
  ],
  ['a kind that is no Installer', `apiVersion: cluster.kurl.sh/v1beta1\nkind: Pod\nspec: {}\n`, 'installer/kind'],
  ['a version that tests fill in', `${HEAD}  a: {version: __testver__}\n`, 'installer/version'],
  ['a switch that is a text', `${HEAD}  kurl: {airgap: "true"}\n`, 'installer/type'],
  ['a switch that is a map', `${HEAD}  kurl: {airgap: {a: b}}\n`, 'installer/type'],
  ['a text that is a number', `${HEAD}  flannel: {version: "1", podCIDRRange: 22}\n`, 'installer/type'],
  ['a text that is a switch', `${HEAD}  kurl: {nameserver: yes, privateAddress: true}\n`, 'installer/type'],
  ['a number that is a text', `${HEAD}  rook: {version: "1", cephReplicaCount: "3"}\n`, 'installer/type'],
  ['a number that is not whole', `${HEAD}  rook: {version: "1", cephReplicaCount: 1.5}\n`, 'installer/type'],
  ['a list that is a text', `${HEAD}  kurl: {additionalNoProxyAddresses: 10.0.0.1}\n`, 'installer/type'],
  ['a list of numbers', `${HEAD}  kurl: {additionalNoProxyAddresses: [1]}\n`, 'installer/type'],
  ['commands that are texts', `${HEAD}  selinuxConfig: {chconCmds: [ls]}\n`, 'installer/type'],
  ['a document that is a text', `${HEAD}  kurl: {hostPreflights: "spec: {}"}\n`, 'installer/type'],
  [
    'one setting under two spellings',
    `${HEAD}  kubernetes: {version: "1", HACluster: true, haCluster: false}\n`,
    'installer/twice',
  ],
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

// The parser took all memory for the second of them.
for (const text of ['[', '{', '{a: ', '- ', '? ', '- [', '[ {'])
  test(`attack: a quarter of a megabyte of "${text}" is refused before it is parsed`, () => {
    assert.equal(codes(text.repeat(250_000 / text.length)), ['yaml/depth']);
  });

test('words of scripts in a spec may have brackets and dashes', () => {
  const script = `case $x in [a-z]) echo "${'['.repeat(300)}" ;; esac # ${'-'.repeat(300)}`;
  const text = `${HEAD}  a: {version: "1"}\n  b:\n    version: "1"\n    x: |\n      ${script}\n`;
  assert.ok(parseInstaller('i.yaml', text).installer !== undefined);
});

test('attack: anchors in a long chain are refused', () => {
  const chain = Array.from({ length: 10_000 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]\n`).join('');
  const { installer, diagnostics } = parseInstaller('i.yaml', `a0: &a0 x\n${chain}`);
  assert.is(installer, undefined);
  assert.ok(diagnostics.length > 0 && diagnostics.length < 100);
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
