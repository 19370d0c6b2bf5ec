/** Lint of the paths in kustomizations. */
import * as assert from '../../support/assert.ts';
import { lintFiles, told, toldOf } from '../../support/lint.ts';
import { suite } from '../../support/suite.ts';

const test = suite('manifest/lint/kustomization');

const MISSING = [
  'resources: [gone.yaml]',
  'components:\n- gone/',
  'patches:\n- path: ./gone.yaml',
  'crds: [sub/gone.yaml]',
];

for (const text of MISSING) {
  test(`a path that leads to no file is told: ${text.replace('\n', ' ')}`, async ({ signal }) => {
    const found = await toldOf('kustomization.yaml', `${text}\n`, { signal });
    assert.equal(
      found.map((line) => line.replace(/:\d+:\d+/, '')),
      ['kustomization.yaml warning kustomization/missing-file'],
    );
  });
}

test('a path is told at its place, with what fails', async ({ signal }) => {
  const report = await lintFiles({ 'addons/ekco/1/kustomization.yaml': 'resources:\n- gone.yaml\n' }, { signal });
  assert.equal(told(report), ['kustomization.yaml:2:3 warning kustomization/missing-file']);
  const [{ message, hint, source } = {}] = report.diagnostics;
  assert.equal(
    [message, hint, source],
    [
      'the add-on has no file "gone.yaml", and no script of it names one',
      'add the file, or remove the line: kubectl apply -k fails without it',
      '- gone.yaml',
    ],
  );
});

test('paths that are there, elsewhere, filled in, or written by a hook are not told', async ({ signal }) => {
  const resources = [
    'there.yaml',
    './there.yaml',
    'sub',
    'sub/',
    'moved/inner.yaml',
    '../../shared',
    'https://example.com/x.yaml',
    'github.com/someone/something/config?ref=main',
    'git@example.com:someone/something',
    '${NAME}.yaml',
    '__NAME__.yaml',
    'rendered.yaml',
    'asset.yaml',
    'scripted.yaml',
  ];
  const files = {
    'kustomization.yaml': `resources:\n${resources.map((one) => `- "${one}"\n`).join('')}patches:\n- patch: 'a: b'\n`,
    'there.yaml': 'a: b\n',
    'sub/inner.yaml': 'a: b\n',
    Manifest: 'asset asset.yaml https://example.com/asset.yaml\n',
    'install.sh': 'ekco() { echo >"$DIR/kustomize/ekco/rendered.yaml"; }\n',
    'more.sh': '# shellcheck shell=bash\necho scripted.yaml\n',
  };
  const named = Object.fromEntries(Object.entries(files).map(([path, text]) => [`addons/ekco/1/${path}`, text]));
  const found = told(await lintFiles(named, { signal }));
  assert.equal(
    found.filter((line) => line.includes('kustomization')),
    [],
  );
});

test('a list of paths in another file is no kustomization', async ({ signal }) => {
  assert.equal(await toldOf('other.yaml', 'resources: [gone.yaml]\n', { signal }), []);
});

test.run();
