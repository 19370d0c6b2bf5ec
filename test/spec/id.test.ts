import * as assert from '../support/assert.ts';
import { installerId, objectHash } from '../../src/spec/id.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/id');

function id(spec: string, name = 'x'): string {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: ${name}}\nspec: ${spec}\n`;
  const { installer, diagnostics } = parseInstaller('i.yaml', text);
  if (installer === undefined) throw new Error(JSON.stringify(diagnostics));
  return installerId(installer);
}

const SMALL = '{kubernetes: {version: 1.19.9}}';

test('24: the ids are those of kURL', () => {
  assert.is(id(SMALL), 'd44632a');
  const six =
    '{kubernetes: {version: 1.19.9}, weave: {version: 2.5.2}, rook: {version: 1.0.4}, contour: {version: 0.14.0}, registry: {version: 2.7.1}, prometheus: {version: 0.33.0}}';
  assert.is(id(six), '8900d06');
  assert.is(
    id('{kubernetes: {version: 1.19.9}, kurl: {additionalNoProxyAddresses: ["10.0.0.1"], airgap: true}}'),
    '3caf437',
  );
});

test('24: the name and the order of keys do not count, versions do as they are written', () => {
  const spec = '{kubernetes: {version: 1.19.9}, kurl: {airgap: true, nameserver: 1.1.1.1}}';
  const other = '{kurl: {nameserver: 1.1.1.1, airgap: true}, kubernetes: {version: 1.19.9}}';
  assert.is(id(spec, 'y'), id(other));
  assert.is.not(id('{kubernetes: {version: latest}}'), id(SMALL));
  assert.match(id('{kubernetes: {version: latest}, a: {version: "1"}}'), /^[0-9a-f]{7}$/);
});

test('settings under their old names count as those of today', () => {
  assert.is(
    id('{weave: {version: "1", encryptNetwork: false, IPAllocRange: /22}, collectd: {version: 0.0.1}}'),
    id('{weave: {version: "1", isEncryptionDisabled: true, podCidrRange: /22}, collectd: {version: v5}}'),
  );
});

for (const [value, hash] of [
  [['10.0.0.1'], '71b9bed91a5cbcbd3d53b14213e4f647627049bf'],
  [{ a: 1 }, 'ca1a41f90da606b052ecf10c8286817813bc8861'],
  [[{ a: 1 }, { b: [2, { c: true }] }, 'x'], 'c2a9d9f242624ce6640b0d0325e73235b7363497'],
  [
    {
      spec: {
        collectors: [{ cpu: {} }],
        analyzers: [{ cpu: { outcomes: [{ fail: { when: 'count < 2', message: 'm' } }] } }],
      },
    },
    'f090a7191e51731099ff591d79d4814f3bc8618c',
  ],
] as const) {
  test(`the hash of ${JSON.stringify(value).slice(0, 60)}`, () => assert.is(objectHash(value), hash));
}

test.run();
