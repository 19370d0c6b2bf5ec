import { surveyResources } from '../../../src/manifest/scaffold/survey.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/survey');

function pod(image: string): string {
  return `apiVersion: v1\nkind: Pod\nmetadata: { name: a }\nspec:\n  containers:\n    - name: a\n      image: ${image}\n`;
}

test('images come from pods wherever they stand: templates, jobs of jobs, lists, other resources', () => {
  const { images } = surveyResources(
    'x.yaml',
    `apiVersion: v1
kind: List
items:
  - apiVersion: apps/v1
    kind: DaemonSet
    metadata: { name: d }
    spec: { template: { spec: { initContainers: [{ name: i, image: init:1 }], containers: [{ name: c, image: c:1 }] } } }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: j }
spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: c, image: 'job:1' }] } } } } }
---
apiVersion: example.com/v1
kind: Database
metadata: { name: db }
spec:
  image: quay.io/db/db:5
  podTemplate: { spec: { containers: [{ name: c, image: side:1 }] } }
`,
  );
  assert.equal(images, ['init:1', 'c:1', 'job:1', 'quay.io/db/db:5', 'side:1']);
});

test('images come from variables and arguments that name them', () => {
  const { images } = surveyResources(
    'x.yaml',
    `${pod('op:1')}      env: [{ name: RELATED_IMAGE_X, value: quay.io/x/x:1 }, { name: URL, value: 'quay.io/y/y:1' }]
      args: [--agent-image=ghcr.io/a/agent:2, --listen=example.com/x:80, --image=none]
`,
  );
  assert.equal(images, ['op:1', 'quay.io/x/x:1', 'ghcr.io/a/agent:2']);
});

test('the schema of a definition names no images', () => {
  const text = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: x }
spec: { containers: [{ name: a, image: 'not:1' }] }
---
${pod('yes:1')}`;
  assert.equal(surveyResources('x.yaml', text).images, ['yes:1']);
});

test('namespaces are told by how many objects name them', () => {
  const object = (kind: string, namespace: string): string =>
    `apiVersion: v1\nkind: ${kind}\nmetadata: { name: x${namespace === '' ? '' : `, namespace: ${namespace}`} }\n`;
  const text = [object('Service', 'b'), object('Secret', 'a'), object('Service', 'b'), object('ConfigMap', '')];
  const found = surveyResources('x.yaml', [...text, object('Namespace', ''), object('ClusterRole', '')].join('---\n'));
  assert.equal(found.namespaces, ['b', 'a']);
  assert.equal(found.createdNamespaces, ['x']);
  assert.is(found.homeless, 1);
});

for (const [title, text, message] of [
  ['a mistake of syntax', `${pod('a:1')}---\na: [1\n`, /flow|bracket|]/i],
  ['a tab as indentation', 'apiVersion: v1\nkind: X\n\tx: 1\n', /tab/i],
  ['a chart that nobody has rendered', pod('"{{ .Values.image }}"'), /that is not rendered/],
  ['values of a chart', 'replicaCount: 1\nimage: { tag: x }\n', /no apiVersion and kind/],
  ['a list of something else', '- 1\n- 2\n', /no apiVersion and kind/],
  ['a list whose items are nothing', 'apiVersion: v1\nkind: List\nitems: [1]\n', /no apiVersion and kind/],
  ['a kustomization', 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n', /kustomization/],
  ['a byte that is no text', `${pod('a:1')}# \u0000\n`, /control character/],
  ['text that is not UTF-8', `${pod('a:1')}# \u{FFFD}\n`, /UTF-8/],
  ['an anchor that is not there', 'apiVersion: v1\nkind: X\nx: *none\n', /alias/i],
  [
    'aliases of aliases of aliases',
    `apiVersion: v1\nkind: X\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n${Array.from({ length: 12 }, (_, index) => {
      const one = `*a${index}`;
      return `a${index + 1}: &a${index + 1} [${Array.from({ length: 10 }, () => one).join(', ')}]\n`;
    }).join('')}`,
    /aliases/,
  ],
  [
    'a million brackets',
    `apiVersion: v1\nkind: X\nx: ${'['.repeat(100_000)}${']'.repeat(100_000)}\n`,
    /too deep|larger|more than/,
  ],
  ['a document larger than 1 MiB', `apiVersion: v1\nkind: X\nx: ${'y'.repeat(1_100_000)}\n`, /1 MiB/],
  ['more documents than are read', '---\napiVersion: v1\nkind: X\n'.repeat(1001), /1000 documents/],
] as const) {
  test(`refused with its place: ${title}`, () => {
    const error = assert.throwsWith(() => surveyResources('x.yaml', text), 'MANIFEST_INVALID', /x\.yaml/);
    assert.ok(error.diagnostics.length > 0);
    assert.match(error.diagnostics.map((found) => `${found.message} ${found.hint ?? ''}`).join('\n'), message);
    assert.ok(error.diagnostics.every(({ place }) => place.file === 'x.yaml' && place.line >= 1));
  });
}

for (const text of ['', '# nothing\n', '---\n---\n']) {
  test(`refused when nothing stands in it: ${JSON.stringify(text)}`, () => {
    assert.throwsWith(() => surveyResources('x.yaml', text), 'MANIFEST_INVALID', /no Kubernetes resource/);
  });
}

/** Files of other programs, as their authors write them. */
const HAULER = `apiVersion: content.hauler.cattle.io/v1
kind: Images
metadata: { name: shop-images }
spec:
  images:
    - name: registry.example/shop/web:2.1
      platform: linux/amd64
---
apiVersion: content.hauler.cattle.io/v1
kind: Charts
metadata: { name: shop-charts }
spec:
  charts:
    - { name: web, repoURL: https://charts.example/stable, version: 2.1.0 }
    - { name: db, repoURL: 'oci://registry.example/charts' }
    - { name: ./local }
---
apiVersion: content.hauler.cattle.io/v1alpha1
kind: Files
metadata: { name: shop-files }
spec:
  files:
    - { path: 'https://files.example/shop.tar.gz', name: shop.tar.gz }
`;
const ZARF = `kind: ZarfPackageConfig
metadata: { name: shop, version: 0.1.0 }
components:
  - name: web
    required: true
    charts:
      - { name: web, namespace: shop, version: 2.1.0, url: 'oci://registry.example/charts/web' }
      - { name: db, namespace: shop, version: 1.0.0, url: 'https://git.example/db.git', gitPath: charts/db }
    images: ['registry.example/shop/web:2.1']
`;
const COMPOSE = `name: shop
services:
  web: { image: 'registry.example/shop/web:2.1', ports: ['80:80'] }
  worker: { build: ./worker }
`;

for (const [title, text, ...expected] of [
  [
    'a hauler manifest',
    HAULER,
    'a hauler manifest',
    'image web registry.example/shop/web:2.1',
    'helm template web web --repo https://charts.example/stable --version 2.1.0, helm template db oci://registry.example/charts/db;|',
    'asset https://files.example/shop.tar.gz',
  ],
  [
    'a zarf.yaml',
    ZARF,
    'a zarf.yaml',
    'helm template web oci://registry.example/charts/web --version 2.1.0; lines',
    'image web registry.example/shop/web:2.1',
  ],
  ['a compose file', COMPOSE, 'a compose file', 'kompose convert', 'image web registry.example/shop/web:2.1'],
  ['a file of values', 'image: { repository: a/b, tag: "1" }\n', 'the values of a chart', '--values FILE'],
  ['an installer spec', 'apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nspec: {}\n', 'an installer spec'],
  ['a kustomization without its kind', 'resources: [a.yaml]\n', 'a kustomization', 'kubectl kustomize'],
] as const) {
  test(`a refusal says what the file is and what to do instead: ${title}`, () => {
    const error = assert.throwsWith(() => surveyResources('x.yaml', text), 'MANIFEST_INVALID', /x\.yaml/);
    const said = error.diagnostics.map((found) => `${found.message}; ${found.hint ?? ''};|`).join('\n');
    for (const one of expected) assert.ok(said.includes(one), `${one} in ${said}`);
  });
}

test.run();
