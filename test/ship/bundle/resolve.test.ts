import { resolvePackages, type ResolvedPackage } from '../../../src/ship/bundle/resolve.ts';
import { digestOf } from '../../../src/core/digest.ts';
import { parseInstaller } from '../../../src/spec/parse.ts';
import { makeCatalog } from '../../../src/ship/release/make-catalog.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/bundle/resolve');

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

function resolve(spec: string, from = catalog): readonly ResolvedPackage[] {
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec:\n${spec}`;
  const { installer } = parseInstaller('i.yaml', text);
  if (installer === undefined) throw new Error('the spec of the test is wrong');
  return resolvePackages(installer, from, 'amd64');
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

test('an add-on or a version that there is only for another architecture is answered with the option for it', () => {
  const other = { ...catalog, addons: catalog.addons.filter(({ name }) => name === 'ekco') };
  const only = { ...other, addons: other.addons.map((one) => ({ ...one, versions: one.versions.slice(0, 1) })) };
  for (const [requested, from, what] of [
    ['0.29.0', catalog, 'ekco 0.29.0'],
    ['latest', only, 'ekco'],
  ] as const) {
    const { message, hint } = assert.throwsWith(
      () => resolve(`  ekco: {version: ${requested}}\n`, from),
      'SPEC_INVALID',
    );
    assert.is(message, `${what}: no package for amd64`);
    assert.match(
      hint ?? '',
      'the release has it for arm64: curlew bundle --arch arm64 makes a bundle for such machines',
    );
  }
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

const channels = makeCatalog(
  'r1',
  (
    [
      ['kubernetes', '1.30.4', 'amd64', ''],
      ['kubernetes', '1.31.2', 'amd64', ''],
      ['weave', '2.8.1', 'amd64', '<1.31.0'],
      ['weave', '2.9.0', 'amd64', '>=1.31.0 <1.33.0'],
      ['weave', '2.9.1', 'amd64', '>=1.33.0'],
      ['ekco', '0.28.14', 'amd64', ''],
      ['ekco', '0.29.0', 'arm64', ''],
      ['demo', '10to14', 'amd64', ''],
    ] as const
  ).map(([name, version, arch, kubernetesVersion]) => ({
    name,
    version,
    arch,
    tree: 'addons',
    requires: [],
    fulfills: [],
    kubernetesVersion,
    entry: {
      digest: digestOf(name),
      sha256: digestOf(version),
      toc: digestOf(version),
      size: 1,
      unpacked: 2,
      images: [],
    },
  })),
  undefined,
  ['beta', 'stable'],
);

test('a channel of the release has the version for the Kubernetes of the spec, after that is resolved', () => {
  for (const [kubernetes, weave] of [
    ['1.30.x', 'weave 2.8.1 channel stable for Kubernetes 1.30.4'],
    ['1.31.2', 'weave 2.9.0 channel stable for Kubernetes 1.31.2'],
    ['latest', 'weave 2.9.0 channel stable for Kubernetes 1.31.2'],
  ] as const) {
    const found = resolve(`  weave: {version: "channel:stable"}\n  kubernetes: {version: ${kubernetes}}\n`, channels);
    const [own] = found.filter(({ name }) => name === 'weave');
    assert.is(`${own?.name} ${own?.version} ${own?.because}`, weave);
    assert.is(own?.requested, 'channel:stable');
  }
});

for (const [why, spec, message, hint] of [
  [
    'the release does not have it',
    'weave: {version: "channel:stabel"}\n  kubernetes: {version: latest}',
    /^weave: cannot resolve channel:stabel: release r1 does not have this channel$/,
    /did you mean channel:stable\?/,
  ],
  [
    'no channel has a name like it',
    'weave: {version: "channel:nightly"}\n  kubernetes: {version: latest}',
    /does not have this channel$/,
    /channels of the release: beta, stable; curlew publish --channel nightly adds it/,
  ],
  [
    'it does not have the add-on',
    'demo: {version: "channel:stable"}\n  kubernetes: {version: latest}',
    /^demo: cannot resolve channel:stable: it has no entry of this add-on$/,
    /write one of its versions/,
  ],
  [
    'the release does not have the add-on',
    'weav: {version: "channel:stable"}\n  kubernetes: {version: latest}',
    /^weav: release r1 does not contain this add-on/,
    /did you mean weave\?/,
  ],
  [
    'the spec has no Kubernetes',
    'weave: {version: "channel:stable"}',
    /the version of Kubernetes decides, and the spec has none that the release has$/,
    /^add "kubernetes: \{version: [\d.]+\}"/,
  ],
  [
    'it is that of Kubernetes',
    'kubernetes: {version: "channel:stable"}',
    /^kubernetes: cannot resolve channel:stable: the version of Kubernetes decides what the others get$/,
    /"latest" or "1\.31\.x"/,
  ],
  [
    'its package is for another architecture',
    'ekco: {version: "channel:stable"}\n  kubernetes: {version: latest}',
    /ekco 0\.29\.0 has no package for amd64$/,
    /build it for this architecture/,
  ],
] as const) {
  test(`a channel is refused if ${why}`, () => {
    const error = assert.throwsWith(() => resolve(`  ${spec}\n`, channels), 'SPEC_INVALID', message);
    assert.match(error.hint ?? '', hint);
  });
}

test('if no entry of a channel is for this Kubernetes, the nearest ones are named', () => {
  const only = { ...channels, addons: channels.addons.map((one) => ({ ...one })) };
  const weave = only.addons.find(({ name }) => name === 'weave');
  if (weave !== undefined) weave.versions = weave.versions.filter(({ version }) => version !== '2.9.0');
  const error = assert.throwsWith(
    () => resolve('  weave: {version: "channel:stable"}\n  kubernetes: {version: 1.31.2}\n', only),
    'SPEC_INVALID',
    /^weave: cannot resolve channel:stable: no entry is for Kubernetes 1\.31\.2$/,
  );
  assert.is(error.hint, 'nearest: weave 2.8.1 (<1.31.0), weave 2.9.1 (>=1.33.0)');
});

test('a release without channels says how to publish one', () => {
  const error = assert.throwsWith(
    () => resolve('  ekco: {version: "channel:stable"}\n'),
    'SPEC_INVALID',
    /release r1 does not have this channel$/,
  );
  assert.is(error.hint, 'channels of the release: none; curlew publish --channel stable adds it');
});

test.run();
