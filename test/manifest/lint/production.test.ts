import * as assert from '../../support/assert.ts';
import { lintFiles, told, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/lint/production');

const ON = { '.curlew-lint.json': '{"rules": {"production/*": "warning"}}' };
const SCRIPT = 'ekco() { :; }\nekco_uninstall() { :; }\n';

test('production files are asked for only where a configuration wants them, and only of the newest version', async ({
  signal,
}) => {
  assert.equal(told(await lintFiles({}, { signal })), []);
  const files = { ...ON, 'addons/ekco/0.9/Manifest': '', 'addons/ekco/0.9/install.sh': SCRIPT };
  assert.equal(
    told(await lintFiles(files, { signal })),
    ['categories', 'host-preflight', 'schema', 'template', 'test', 'troubleshoot']
      .map((rule) => `addons/ekco/1:1:1 warning production/${rule}`)
      .concat('install.sh:1:1 warning production/uninstall'),
  );
});

test('an add-on with all of them is clean', async ({ signal }) => {
  const head = 'apiVersion: troubleshoot.sh/v1beta2\n';
  const files = {
    ...ON,
    'addons/ekco/1/install.sh': SCRIPT,
    'addons/ekco/1/host-preflight.yaml': `${head}kind: HostPreflight\nspec: {}\n`,
    'addons/ekco/1/troubleshoot.yaml': `${head}kind: SupportBundle\nspec: {}\n`,
    'addons/ekco/1/schema.json': '{}',
    'addons/ekco/categories.json': '{}',
    'addons/ekco/template/generate.sh': '',
    'addons/ekco/template/testgrid/ekco.yaml': '',
  };
  assert.equal(told(await lintFiles(files, { signal })), []);
});

test('what lies under packages needs none of them', async ({ signal }) => {
  const files = { ...ON, 'packages/host/fio/Manifest': '' };
  assert.equal(told(await lintFiles(files, { signal, patterns: ['host'] })), []);
});

test('two folders whose packages have one name are an error', async ({ signal }) => {
  const files = {
    'addons/a-1/2/Manifest': '',
    'addons/a-1/2/install.sh': 'a-1() { :; }\n',
    'addons/a/1-2/Manifest': '',
    'addons/a/1-2/install.sh': 'a() { :; }\n',
    'addons/a/1+2/Manifest': '',
    'addons/a/1+2/install.sh': 'a() { :; }\n',
  };
  const found = told(await lintFiles(files, { signal }));
  assert.equal(
    found.map((line) => line.replace(/.* /, '')),
    ['addon/same-package', 'addon/same-package'],
  );
});

for (const version of ['latest', '1.2.x']) {
  test(`the version ${version} means something else to an installer spec`, async ({ signal }) => {
    const files = { [`addons/a/${version}/Manifest`]: '', [`addons/a/${version}/install.sh`]: 'a() { :; }\n' };
    assert.equal(told(await lintFiles(files, { signal })), [`addons/a/${version}:1:1 warning addon/version-reserved`]);
  });
}

for (const [title, schema, expected] of [
  ['of settings', { type: 'object', properties: { a: { type: 'string', format: 'hostname' } } }, []],
  ['with words of its own', { type: 'object', title: 'x', 'x-order': 1 }, []],
  ['with a type that there is not', { type: 'object', properties: { a: { type: 'strng' } } }, ['x']],
  ['with a pattern that does not parse', { properties: { a: { pattern: '(' } } }, ['x']],
  ['that leads elsewhere', { $ref: 'https://example.com/x.json' }, ['x']],
  ['of another draft', { $schema: 'https://json-schema.org/draft/2019-09/schema' }, ['x']],
] as const) {
  test(`schema.json: a schema ${title}`, async ({ signal }) => {
    const found = await toldOf('schema.json', JSON.stringify(schema), { signal });
    assert.equal(
      found,
      expected.map(() => 'schema.json:1:1 warning addon/schema-invalid'),
    );
  });
}

for (const [title, path, text, expected] of [
  ['in the Manifest', 'Manifest', 'image a a/b:__version__\n', ['Manifest:1:13 warning addon/placeholder']],
  [
    'in a script, once each',
    'install.sh',
    'ekco() { echo __A_B__ __A_B__ __c__; }\n',
    ['install.sh:1:15 warning addon/placeholder', 'install.sh:1:31 warning addon/placeholder'],
  ],
  ['that sed fills', 'install.sh', 'ekco() { sed "s/__A_B__/$A/;s|__C__|x|" "$1"; echo "${1//__D__/d}"; }\n', []],
  [
    'in a path of a script',
    'install.sh',
    'ekco() { cat "$1/__A__/b"; }\n',
    ['install.sh:1:18 warning addon/placeholder'],
  ],
  ['in YAML', 'x.yaml', 'a: x-__version__.y\n', ['x.yaml:1:6 warning addon/placeholder']],
  ['in a text of another language', 'x.py', '__version__ = 1\n', []],
  ['that is a label of Prometheus', 'x.yaml', 'a: [__address__, __meta_x__, __name__]\n', []],
  ['that is a parameter of a scrape', 'x.yaml', 'a: [__param_target__]\n', []],
  [
    'in what a definition says of its fields',
    'x.yaml',
    'kind: CustomResourceDefinition\na: sets __LABEL__\n---\nkind: Service\na: __OTHER__\n',
    ['x.yaml:5:4 warning addon/placeholder'],
  ],
  [
    "that Calico's container fills in",
    'x.yaml',
    'data:\n  cni_network_config: |\n    {"mtu": __CNI_MTU__, "a": "__ETCD_ENDPOINTS__", "b": "__MINE__"}\n',
    ['x.yaml:3:59 warning addon/placeholder'],
  ],
  [
    "named as Calico's, elsewhere",
    'x.yaml',
    'data:\n  config: __CNI_MTU__\n',
    ['x.yaml:2:11 warning addon/placeholder'],
  ],
  ['that is part of a word', 'x.yaml', 'a: [a__b__c, $__rate__, __b]\n', []],
] as const) {
  test(`a placeholder ${title}`, async ({ signal }) => {
    assert.equal(await toldOf(path, text, { signal }), [...expected]);
  });
}

test.run();
