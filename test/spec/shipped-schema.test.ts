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
    'error demo.many must be a whole number',
    'error demo.on must be true or false',
  ]);
});

test('what does not fit is told all at once, with its place', () => {
  assert.equal(check({ replicas: 0 }), [
    'error demo requires the setting "size" write one of "s", "l"',
    'error demo.replicas must be >= 1',
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
    '7 demo.size must be one of "s", "l"',
    // A name that is there already was not meant.
    '8 demo has no setting "sizes" it has: version, replicas, size, deep',
    '9 demo.deep has no setting "po/rt" did you mean "port"?',
  ]);
});

test('misspelled and missing settings are reported beside those that do not fit', () => {
  assert.equal(check({ siez: 's', replicas: 0 }), [
    'error demo requires the setting "size" write one of "s", "l"',
    'error demo.replicas must be >= 1',
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
