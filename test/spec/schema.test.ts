import { Ajv } from 'ajv';
import { readFile } from 'node:fs/promises';
import { parseInstaller } from '../../src/spec/parse.ts';
import { INSTALLER_SCHEMA } from '../../src/spec/schema.ts';
import { ADDON_NAMES, SETTINGS } from '../../src/spec/settings.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/schema');

const validate = new Ajv({ strict: true }).compile(INSTALLER_SCHEMA);
const KINDS = [true, 'a text', 3, ['a', 'b'], [['a'], ['b']], { a: 'b' }, 1.5] as const;

test('docs/schemas/installer.schema.json is what the table makes of it (npm run docs)', async () => {
  assert.equal(JSON.parse(await readFile('docs/schemas/installer.schema.json', 'utf8')), INSTALLER_SCHEMA);
});

test('schema and tool agree on every setting with a value of every kind', () => {
  for (const { specName, field } of SETTINGS) {
    for (const value of KINDS) {
      const version = ADDON_NAMES.includes(specName) ? { version: '1.0' } : {};
      const spec = { [specName]: { ...version, [field]: value } };
      const document = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', spec };
      const { installer, diagnostics } = parseInstaller('i.yaml', JSON.stringify(document));
      assert.is(validate(document), installer !== undefined, `${JSON.stringify(spec)} ${JSON.stringify(diagnostics)}`);
    }
  }
});

for (const [title, document, fits] of [
  ['other add-ons', { spec: { mine: { version: '1', any: { thing: 1 } } } }, true],
  ['an add-on without a version', { spec: { mine: {} } }, false],
  ['an add-on with settings and without a version', { spec: { mine: { x: 1 } } }, false],
  ["an add-on of kURL's without anything", { spec: { rook: {} } }, false],
  ["settings of an add-on of kURL's alone", { spec: { rook: { isBlockStorageEnabled: true } } }, true],
  ['an empty section', { spec: { kurl: {} } }, true],
  ['an add-on with an empty version', { spec: { mine: { version: '' } } }, true],
  ['`spec:` alone', { spec: null }, true],
  ['an add-on that is a text', { spec: { rook: 'latest' } }, false],
  ['a setting that kURL does not know', { spec: { rook: { version: '1', x: 1 } } }, true],
  ['another kind', { kind: 'Pod', spec: {} }, false],
  ['another apiVersion', { apiVersion: 'v1', spec: {} }, false],
  ['no spec', {}, false],
] as const) {
  test(`${title}: schema and tool agree`, () => {
    const whole = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', ...document };
    assert.is(validate(whole), fits);
    assert.is(parseInstaller('i.yaml', JSON.stringify(whole)).installer !== undefined, fits);
  });
}

test.run();
