import * as assert from '../../support/assert.ts';
import { lintFiles, told } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';
import { tarOf } from '../../support/tar-file.ts';

const test = suite('manifest/lint/images');

const LISTED = `image app quay.io/org/app:1.2\nimage pinned quay.io/org/pinned:1@sha256:${'a'.repeat(64)}\n`;
const USED = 'a: quay.io/org/app quay.io/org/pinned\n';

function pod(image: string, more = ''): string {
  return `kind: Pod\nspec:\n  containers:\n    - name: a\n      image: ${image}\n${more}`;
}

for (const [title, yaml, expected] of [
  ['a listed image', pod('quay.io/org/app:1.2'), []],
  ['a listed image in quotes', pod('"quay.io/org/app:1.2"'), []],
  ['the tag of an image that is pinned', pod('quay.io/org/pinned:1'), []],
  ['the digest of an image that is pinned', pod(`quay.io/org/pinned@sha256:${'a'.repeat(64)}`), []],
  ['another digest', pod(`quay.io/org/pinned:1@sha256:${'b'.repeat(64)}`), ['x.yaml:5:14 warning image/not-listed']],
  [
    'a digest that the Manifest lacks',
    pod(`quay.io/org/app:1.2@sha256:${'b'.repeat(64)}`),
    ['x.yaml:5:14 warning image/not-listed'],
  ],
  ['another tag', pod('quay.io/org/app:1.3'), ['x.yaml:5:14 warning image/not-listed']],
  ['a short name', pod('nginx:1'), ['x.yaml:5:14 warning image/not-listed']],
  ['an image that is completed later', pod('quay.io/org/app:${TAG}') + pod('$IMAGE').replace('kind', '---\nkind'), []],
  ['an image of a Go template', pod("'{{ .Values.image }}'"), []],
  ['the same image twice', `${pod('a/b:1')}---\n${pod('a/b:1')}`, ['x.yaml:5:14 warning image/not-listed']],
  [
    'an init container',
    pod('quay.io/org/app:1.2').replace('containers', 'initContainers').replace(':1.2', ':1.1'),
    ['x.yaml:5:14 warning image/not-listed'],
  ],
  [
    'a list of resources',
    `kind: List\nitems:\n  - kind: Job\n    spec: {template: {spec: {containers: [{image: "a/b:1"}]}}}\n`,
    ['x.yaml:4:51 warning image/not-listed'],
  ],
  [
    'a resource with an image',
    'kind: CephCluster\nspec:\n  cephVersion:\n    image: quay.io/ceph/ceph:v19\n',
    ['x.yaml:4:12 warning image/not-listed'],
  ],
  ['a picture that is no container image', 'logo:\n  image: banner\n  other: {image: assets/banner.png}\n', []],
  ['the schema of a resource', 'kind: CustomResourceDefinition\nspec:\n  image: a/b:1\n', []],
  [
    'a variable',
    'env:\n  - name: RELATED_IMAGE_X\n    value: quay.io/x/y:1\n',
    ['x.yaml:3:12 info image/not-listed-value'],
  ],
  [
    'a setting',
    'data:\n  ROOK_CSI_IMAGE: "quay.io/x/y:1"\n  ROOK_IMAGE_PULL_POLICY: Always\n',
    ['x.yaml:2:19 info image/not-listed-value'],
  ],
  ['a variable that is no image', 'env:\n  - {name: IMAGE_QUALITY, value: "high:9"}\n', []],
  ['a kustomization', 'images:\n  - name: up/app\n    newName: quay.io/org/app\n    newTag: "1.2"\n', []],
  [
    'a kustomization with another tag',
    'images:\n  - name: quay.io/org/app\n    newTag: "1.3"\n',
    ['x.yaml:3:13 warning image/not-listed'],
  ],
  [
    'a kustomization with another digest',
    `images:\n  - name: quay.io/org/app\n    digest: sha256:${'b'.repeat(64)}\n`,
    ['x.yaml:3:13 warning image/not-listed'],
  ],
  [
    'an image that a kustomization tags',
    `${pod('quay.io/org/app:0')}---\nimages:\n  - name: quay.io/org/app\n    newTag: "1.2"\n`,
    [],
  ],
  [
    'an image that a kustomization renames',
    `${pod('up/app:1.2')}---\nimages:\n  - name: up/app\n    newName: quay.io/org/app\n`,
    [],
  ],
  [
    'a pull at each start',
    pod('quay.io/org/app:1.2', '      imagePullPolicy: Always\n'),
    ['x.yaml:6:24 warning image/pull-always'],
  ],
  ['a pull if it is not there', pod('quay.io/org/app:1.2', '      imagePullPolicy: IfNotPresent\n'), []],
] as const) {
  test(`images: ${title}`, async ({ signal }) => {
    const report = await lintFiles(
      { 'addons/ekco/1/Manifest': LISTED, 'addons/ekco/1/x.yaml': yaml, 'addons/ekco/1/used.yaml': USED },
      { signal },
    );
    assert.equal(told(report), [...expected]);
  });
}

test('the tag latest without a policy is pulled at each start', async ({ signal }) => {
  const report = await lintFiles(
    { 'addons/ekco/1/Manifest': 'image a a/b:latest\n', 'addons/ekco/1/x.yaml': pod('a/b') },
    { signal },
  );
  assert.equal(told(report), ['Manifest:1:9 warning image/latest', 'x.yaml:5:14 warning image/pull-always']);
});

test('the hint names the line with another tag', async ({ signal }) => {
  const { diagnostics } = await lintFiles(
    {
      'addons/ekco/1/Manifest': LISTED,
      'addons/ekco/1/x.yaml': pod('quay.io/org/app:1.3'),
      'addons/ekco/1/u.yaml': USED,
    },
    { signal },
  );
  assert.is(diagnostics[0]?.hint, 'line 1 lists quay.io/org/app:1.2');
  assert.is(diagnostics[0]?.source, '      image: quay.io/org/app:1.3');
});

test('the names of an image in an archive of the add-on are listed, in each form', async ({ signal }) => {
  const rows = JSON.stringify([{ Config: 'x.json', RepoTags: ['quay.io/org/app:1.2', 'app:mine'], Layers: [] }]);
  const annotations = { 'org.opencontainers.image.ref.name': 'quay.io/org/oci:1' };
  const index = JSON.stringify({ manifests: [{ digest: `sha256:${'a'.repeat(64)}`, annotations }] });
  const files = {
    'addons/ekco/1/Manifest':
      'image app images/app.tar\nimage oci oci.tar\nimage bad bad.tar quay.io/org/named:main\nimage up ../../../../up.tar\n',
    'addons/ekco/1/images/app.tar': tarOf([{ path: 'manifest.json', data: rows }]),
    'addons/ekco/1/oci.tar': tarOf([
      { path: 'oci-layout', data: '{}' },
      { path: 'index.json', data: index },
    ]),
    'addons/ekco/1/bad.tar': 'junk',
  };
  const found = async (...images: readonly string[]): Promise<readonly string[]> => {
    const report = await lintFiles(
      { ...files, 'addons/ekco/1/x.yaml': images.map((one) => pod(one)).join('---\n') },
      { signal },
    );
    return report.diagnostics.filter(({ code }) => code === 'image/not-listed').map(({ hint }) => hint ?? '');
  };
  assert.equal(await found('quay.io/org/app:1.2', 'app:mine', 'quay.io/org/oci:1', 'quay.io/org/named:main'), []);
  assert.equal(await found('quay.io/org/app:1.3', 'quay.io/org/bad:1'), [
    'line 1 lists images/app.tar, which contains quay.io/org/app:1.2',
    'image <id> quay.io/org/bad:1',
  ]);
});

test('an image that no file names is remarked, unless no file names any', async ({ signal }) => {
  const Manifest = 'image app quay.io/org/app:1.2\nimage lost quay.io/org/lost:1\nimage arg quay.io/org/arg:1\n';
  const script = 'ekco() { run quay.io/org/arg; }\n';
  const files = { 'addons/ekco/1/Manifest': Manifest, 'addons/ekco/1/install.sh': script };
  assert.equal(told(await lintFiles(files, { signal })), []);
  const used = { ...files, 'addons/ekco/1/x.yaml': pod('quay.io/org/app:1.2') };
  assert.equal(told(await lintFiles(used, { signal })), ['Manifest:2:12 info image/unused']);
});

for (const [title, line, expected] of [
  ['a tag that moves', 'image a a/b:main', ['Manifest:1:9 warning image/floating']],
  ['a tag that moves, with a digest', `image a a/b:nightly@sha256:${'a'.repeat(64)}`, []],
  ['a version', 'image a a/b:v1', []],
  ['a file from the web', 'asset f https://h/f', ['Manifest:1:9 info asset/no-digest']],
  ['a file from the web with its digest', `asset f https://h/f#sha256=${'a'.repeat(64)}`, []],
  ['a last line without its end', '# nothing', ['Manifest:1:10 info manifest/no-final-newline']],
] as const) {
  test(`pins: ${title}`, async ({ signal }) => {
    const text = title.startsWith('a last') ? line : `${line}\n`;
    assert.equal(told(await lintFiles({ 'addons/ekco/1/Manifest': text }, { signal })), [...expected]);
  });
}

test.run();
