import { resolvePackages, type ResolvedPackage } from '../../src/bundle/resolve.ts';
import { digestOf } from '../../src/core/digest.ts';
import { parseInstaller } from '../../src/spec/parse.ts';
import { makeCatalog } from '../../src/store/release/make-catalog.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('bundle/resolve');

const rows = [
  ['ekco', '0.28.14', 'amd64'],
  ['ekco', '0.28.2', 'amd64'],
  ['ekco', '0.29.0', 'arm64'],
  ['cert-manager', '1.9.1', 'amd64'],
  ['containerd', '1.6.33', 'amd64'],
  ['demo', '1+x', 'amd64'],
] as const;
const catalog = makeCatalog(
  'r1',
  rows.map(([name, version, arch]) => ({
    name,
    version,
    arch,
    tree: 'addons',
    requires: [],
    fulfills: [],
    entry: { digest: digestOf(name), sha256: digestOf(version), size: 1, unpacked: 2, images: [] },
  })),
);

function resolve(spec: string): readonly ResolvedPackage[] {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${spec}`;
  const { installer } = parseInstaller('i.yaml', text);
  if (installer === undefined) throw new Error('the spec of the test is wrong');
  return resolvePackages(installer, catalog, 'amd64');
}

test('add-ons are resolved with reasons, keys and in the order of installation', () => {
  const found = resolve(
    '  demo: {version: 1+x}\n  certManager: {version: latest}\n  ekco: {version: 0.28.x}\n  containerd: {version: 1.6.33}\n',
  );
  assert.equal(
    found.map(({ key, because }) => `${key} ${because}`),
    [
      'r1/containerd-1.6.33.tar.gz exact',
      'r1/ekco-0.28.14.tar.gz greatest patch of 0.28',
      'r1/cert-manager-1.9.1.tar.gz latest',
      'r1/demo-1-x.tar.gz exact',
    ],
  );
});

test('case 27: a bundle has the packages of its spec, each under the name of its folder, and no other', () => {
  const names = resolve('  certManager: {version: 1.9.1}\n').map(({ name, version }) => `${name}-${version}`);
  assert.equal(names, ['cert-manager-1.9.1']);
  assert.throwsWith(() => resolve('  kubernetes: {version: 0.0.0}\n'), 'SPEC_INVALID', /kubernetes/);
});

test('latest means the first version that there is for the architecture', () => {
  assert.is(resolve('  ekco: {version: latest}\n')[0]?.version, '0.28.14');
});

test('all that cannot be found is told at once, with places and near names', () => {
  const error = assert.throwsWith(
    () => resolve('  ekcoo: {version: latest}\n  ekco: {version: 0.28.15}\n  demo: {version: latest}\n'),
    'SPEC_INVALID',
    /2 add-ons/,
  );
  assert.equal(
    error.diagnostics.map(({ place, hint }) => `${place.line} ${hint}`),
    ['4 did you mean ekco?', '5 did you mean 0.28.14?'],
  );
});

test('a version that exists for another architecture only is not found', () => {
  assert.throwsWith(() => resolve('  ekco: {version: 0.29.0}\n'), 'SPEC_INVALID');
});

test('an s3Override is refused by name', () => {
  const error = assert.throwsWith(
    () => resolve('  ekco: {version: latest, s3Override: "https://u:p@host/x.tar.gz"}\n'),
    'UNSUPPORTED',
    /^ekco/,
  );
  assert.not.match(error.message, 'u:p');
});

test.run();
