import { partsWithSecrets } from '../../src/spec/secret-parts.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('spec: which parts of a spec have secrets');

const NO_SCHEMAS = new Map<string, unknown>();

function textOf(spec: string): string {
  return `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: site}\nspec: {${spec}}\n`;
}

for (const [title, text, parts] of [
  ['an add-on', textOf('web: {version: latest, s3SecretKey: canary}, aaa: {version: latest}'), ['web']],
  ['an add-on without a version', textOf('kotsadm: {version: "", adminPassword: canary}'), ['kotsadm']],
  ['an add-on that is never installed', textOf('kubernetes: {bootstrapToken: canary}'), ['kubernetes']],
  ['a section', textOf('kurl: {adminPassword: canary}'), ['kurl']],
  ['an address with a password', textOf('kurl: {proxyAddress: "http://user:canary@proxy:3128"}'), ['kurl']],
  ['a presigned package', textOf('web: {version: "1", s3Override: "https://h/x?sig=canary"}'), ['web']],
  ['a key one level too high', textOf('adminPassword: canary'), ['adminPassword']],
  ['a key beside the spec', `${textOf('')}status: {token: canary}\n`, ['status']],
  ['a text that is not YAML', 'spec: {\npassword: canary\n', ['its text']],
] as const) {
  test(`${title} counts`, () => assert.equal(partsWithSecrets(text, NO_SCHEMAS), parts));
}

test('a schema decides about its add-on, and a spec without secrets has no such parts', () => {
  const text = textOf('web: {version: "1", seed: canary, tokens: a}, kurl: {proxyAddress: "http://proxy:3128"}');
  const seed = { properties: { seed: { writeOnly: true }, tokens: { writeOnly: false } } };
  assert.equal(partsWithSecrets(text, new Map([['web', seed]])), ['web']);
  const tokens = { properties: { tokens: { writeOnly: false } } };
  assert.equal(partsWithSecrets(text, new Map([['web', tokens]])), []);
});

test.run();
