import { readFile } from 'node:fs/promises';
import type { InstallerAddon } from '../../src/spec/installer.ts';
import { checkShipped, inTime } from '../../src/spec/shipped-schema.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/shipped-schema');

const place = { file: 'i.yaml', line: 6, column: 3, length: 4 };
const SCHEMA = {
  type: 'object',
  required: ['version', 'size'],
  properties: { version: { type: 'string' }, replicas: { type: 'integer', minimum: 1 }, size: { enum: ['s', 'l'] } },
};

function check(settings: InstallerAddon['settings'], schema: unknown = SCHEMA): readonly string[] {
  const addon = { specName: 'demo', name: 'demo', requested: 'latest', settings, s3Override: undefined, place };
  return checkShipped(addon, schema).map(({ severity, message, hint = '' }) => `${severity} ${message} ${hint}`.trim());
}

test('what fits says nothing, and the limit of hooks needs no schema', () => {
  assert.equal(check({ size: 's', replicas: 2, hookTimeout: '2m' }), []);
  assert.equal(check({ size: 's', hookTimeout: '2m' }, { ...SCHEMA, additionalProperties: false }), []);
});

test('what every add-on has need not stand in a closed schema', () => {
  const schema = { properties: { size: { type: 'string' } }, additionalProperties: false };
  const s3Override = 'https://h/p.tar.gz';
  const addon = { specName: 'demo', name: 'demo', requested: '1', settings: { size: 's' }, s3Override, place };
  assert.equal(checkShipped(addon, schema), []);
  assert.equal(checkShipped(addon, { required: ['version', 's3Override'] }), []);
});

test('a number is fit for a text, as it is for a shell; a text is none for a number', () => {
  const schema = { properties: { size: { type: 'string' }, many: { type: 'integer' }, on: { type: 'boolean' } } };
  assert.equal(check({ size: 3 }, schema), []);
  assert.equal(check({ many: '3', on: 'true' }, schema), [
    'error demo.many must be a whole number, but is "3" write it without quotes',
    'error demo.on must be true or false, but is "true" write it without quotes',
  ]);
});

test('a text that is YAML by its schema is read, and a map in its place is shown how to write', () => {
  const schema = { properties: { config: { type: 'string', contentMediaType: 'application/yaml' } } };
  for (const config of ['a: 1', '{ a: 1 }', '', '# nothing']) assert.equal(check({ config }, schema), []);
  assert.match(check({ config: 'a: 1\nb: [1' }, schema).join(), /^error demo\.config must be a map in YAML: line 2: /);
  assert.equal(check({ config: '- a' }, schema), ['error demo.config must be a map in YAML: it is not a map']);
  const [map = ''] = check({ config: { a: 1 } }, schema);
  assert.match(map, /^error demo\.config must be a string, but is .* write it as text: config: \|$/);
});

test('a list or map in a text of YAML that the schema describes is named where it is null or of another kind', () => {
  const list = { type: 'array' };
  const contentSchema = {
    properties: { server: { type: 'object', properties: { extraArgs: list } }, authToken: list },
  };
  const schema = { properties: { config: { type: 'string', contentMediaType: 'application/yaml', contentSchema } } };
  for (const config of ['server: { extraArgs: [], other: null }', 'other: null', '', 'a: 1']) {
    assert.equal(check({ config }, schema), []);
  }
  const hint = 'write a value, or remove the key';
  assert.equal(check({ config: 'server:\n  extraArgs:\n' }, schema), [
    `error demo.config.server.extraArgs must be a list, but is null ${hint}`,
  ]);
  assert.equal(check({ config: 'server:\n  # extraArgs: []\n' }, schema), [
    `error demo.config.server must be a map, but is null ${hint}`,
  ]);
  assert.equal(check({ config: '{server: {extraArgs: {v: "4"}}, authToken: hunter2}' }, schema), [
    'error demo.config.server.extraArgs must be a list, but is a map',
    'error demo.config.authToken must be a list, but is something else',
  ]);
});

test('the lists and maps that the package of kubernetes has for kubeadm are not removed by a null', async () => {
  const schema: unknown = JSON.parse(await readFile('packages/kubernetes/template/files/schema.json', 'utf8'));
  const found = (settings: InstallerAddon['settings']): string =>
    check({ version: '1.37.2', ...settings }, schema).join();
  assert.match(
    found({ clusterConfiguration: 'apiServer:\n  extraArgs:\n' }),
    'apiServer.extraArgs must be a list, but is null',
  );
  assert.match(found({ clusterConfiguration: 'networking: null' }), 'networking must be a map, but is null');
  const node = 'nodeRegistration: { taints: null, kubeletExtraArgs: null }';
  for (const name of ['initConfiguration', 'joinConfiguration'])
    assert.match(
      found({ [name]: node }),
      `error demo.${name}.nodeRegistration.kubeletExtraArgs must be a list, but is null`,
    );
  // Defaults as kubeadm prints them.
  assert.is(
    found({
      initConfiguration: 'nodeRegistration: { taints: null }',
      kubeProxyConfiguration: 'conntrack: { min: null }',
    }),
    '',
  );
});

test('a value that does not fit is shown, unless it is secret; of lists and maps only what they are', () => {
  const whole = { type: 'integer' };
  const schema = {
    properties: {
      many: whole,
      list: whole,
      map: { type: 'string' },
      few: { type: 'array', minItems: 2 },
      hidden: { type: 'integer', writeOnly: true },
      shared: { ...whole, format: 'password' },
      adminPassword: whole,
      tokenCount: { ...whole, writeOnly: false },
      place: whole,
      deep: { properties: { 'po/rt': whole, apiKey: whole } },
    },
  };
  const value = (settings: InstallerAddon['settings']): string => check(settings, schema).join(' ');
  assert.is(value({ many: 'three' }), 'error demo.many must be a whole number, but is "three"');
  assert.is(value({ many: 1.5 }), 'error demo.many must be a whole number, but is 1.5');
  assert.is(value({ many: 'x'.repeat(70) }), `error demo.many must be a whole number, but is "${'x'.repeat(60)}"…`);
  assert.is(value({ list: ['a'] }), 'error demo.list must be a whole number, but is a list');
  assert.is(value({ map: { a: 1 } }), 'error demo.map must be a string, but is a map');
  assert.is(value({ few: ['a'] }), 'error demo.few must NOT have fewer than 2 items');
  assert.is(value({ tokenCount: 'many' }), 'error demo.tokenCount must be a whole number, but is "many"');
  assert.is(value({ deep: { 'po/rt': 'http' } }), 'error demo.deep.po/rt must be a whole number, but is "http"');
  for (const settings of [
    { hidden: 'hunter2' },
    { shared: 'hunter2' },
    { adminPassword: 'hunter2' },
    { place: 'https://me:hunter2@db.example' },
    { deep: { apiKey: 'hunter2' } },
  ]) {
    assert.match(value(settings), /^error demo\.[\w.]+ must be a whole number, but is something else$/);
  }
});

test('what does not fit is told all at once, with its place', () => {
  assert.equal(check({ replicas: 0 }), [
    'error demo requires the setting "size" write one of "s", "l"',
    'error demo.replicas must be >= 1, but is 0',
  ]);
  const [found] = checkShipped(
    { specName: 'demo', name: 'demo', requested: '1', settings: { size: 'm' }, s3Override: undefined, place },
    SCHEMA,
  );
  assert.equal(found?.place, place);
});

test('an unknown name is a warning with the near one, or an error where the schema allows no other', () => {
  assert.equal(check({ size: 's', replica: 2, other: 1 }), [
    'warning demo has no setting "replica" did you mean "replicas"?',
  ]);
  assert.equal(check({ size: 's', replica: 2 }, { ...SCHEMA, additionalProperties: false }), [
    'error demo has no setting "replica" did you mean "replicas"?',
  ]);
});

test('a finding stands at the setting it is about, and says what is wanted there', () => {
  const spot = (line: number) => ({ ...place, line });
  const places = new Map([
    ['size', spot(7)],
    ['sizes', spot(8)],
    ['deep', spot(9)],
  ]);
  const schema = {
    ...SCHEMA,
    properties: { ...SCHEMA.properties, deep: { properties: { port: {} }, additionalProperties: false } },
    additionalProperties: false,
  };
  const settings = { size: 'm', sizes: 's', deep: { 'po/rt': 1 } };
  const addon = { specName: 'demo', name: 'demo', requested: '1', settings, s3Override: undefined, place, places };
  const found = checkShipped(addon, schema).map((one) => `${one.place.line} ${one.message} ${one.hint ?? ''}`.trim());
  assert.equal(found.toSorted(), [
    '7 demo.size must be one of "s", "l", but is "m"',
    // A name that is there already was not meant.
    '8 demo has no setting "sizes" it has: version, replicas, size, deep',
    '9 demo.deep has no setting "po/rt" did you mean "port"?',
  ]);
});

test('misspelled and missing settings are reported beside those that do not fit', () => {
  assert.equal(check({ siez: 's', replicas: 0 }), [
    'error demo requires the setting "size" write one of "s", "l"',
    'error demo.replicas must be >= 1, but is 0',
    'warning demo has no setting "siez" did you mean "size"?',
  ]);
});

for (const [title, schema] of [
  ['a number', 7],
  ['null', null],
  ['a text', 'schema'],
  ['no JSON Schema', { type: 'wrong' }],
  ['one that points elsewhere', { $ref: 'https://example.com/x.json' }],
  ['too large', { description: 'x'.repeat(200_000), type: 'string' }],
] as const) {
  test(`attack: a schema that is ${title} judges nothing`, () => assert.equal(check({ any: 1 }, schema), []));
}

test('attack: a schema with as many mistakes as settings is told in part', () => {
  const settings = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`s${index}`, 1]));
  assert.is(check(settings, { type: 'object', additionalProperties: { type: 'boolean' } }).length, 20);
});

test('work that waits for its turn longer than the limit is not given up', () => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  const waiting = (): string => Atomics.wait(cell, 0, 0, 600);
  assert.is(inTime(waiting), 'timed-out');
});

test('what takes too long to be judged is an error, and ends', () => {
  const late = 'cannot validate the settings of demo: its schema takes longer than 500 ms';
  const steps = Array.from({ length: 40 }, (_, at) => {
    const next = { $ref: `#/$defs/a${at + 1}` };
    return [`a${at}`, at === 39 ? { type: 'integer' } : { allOf: [next, next] }] as const;
  });
  for (const [schema, size] of [
    [{ properties: { size: { pattern: '^(a+)+$' } } }, `${'a'.repeat(40)}!`],
    [{ $defs: Object.fromEntries(steps), properties: { size: { $ref: '#/$defs/a0' } } }, 'x'],
  ] as const) {
    assert.equal(check({ size }, schema), [`error ${late} simplify its patterns and references`]);
  }
});

test.run();
