import { parseManifest } from '../../src/manifest/parse.ts';
import { planManifest } from '../../src/manifest/directives.ts';
import * as assert from '../support/assert.ts';
import { corpus } from '../support/corpus.ts';
import { suite } from '../support/suite.ts';

const test = suite('manifest/plan');

test('host packages are collected into one step for each system and output, without repetition', () => {
  const { manifest } = parseManifest('M', 'yum9 a\nyum b\napt24 d\nyum c\nyum2023 b\napt d\n');
  assert.equal(
    planManifest(manifest).map((step) => (step.kind === 'os-packages' ? [step.os, step.output, step.packages] : step)),
    [
      ['ubuntu-16.04', 'archives', ['d']],
      ['ubuntu-18.04', 'archives', ['d']],
      ['ubuntu-20.04', 'archives', ['d']],
      ['ubuntu-22.04', 'archives', ['d']],
      ['ubuntu-24.04', 'deps', ['d']],
      ['rhel-7', 'archives', ['b', 'c']],
      ['rhel-7-force', 'archives', ['b', 'c']],
      ['rhel-8', 'archives', ['b', 'c']],
      ['rhel-9', 'archives', ['a']],
      ['rhel-9', 'deps', ['b', 'c']],
      ['amazon-2023', 'archives', ['b']],
      ['amazon-2023', 'deps', ['b', 'c']],
    ],
  );
});

test('a plan survives JSON', () => {
  const text = `image a ./a.tar\nasset f https://h/f#sha256=${'AB'.repeat(32)}\ndockerout rhel-8 a/D 1.0\n`;
  const steps = planManifest(parseManifest('M', text).manifest);
  assert.equal(JSON.parse(JSON.stringify(steps)), [
    { kind: 'image', id: 'a', archive: './a.tar', remoteLoad: true },
    { kind: 'asset', fileName: 'f', source: 'https://h/f', local: false, digest: `sha256:${'ab'.repeat(32)}` },
    { kind: 'container-build', destination: 'rhel-8', dockerfile: 'a/D', version: '1.0' },
  ]);
});

test("words as in kURL's documentation: an asset that is a source alone, a build argument by its name", () => {
  const text =
    'asset https://h/a/tool.tar.gz?x=1\nasset ./b/c\n' +
    'dockerout rhel-8 D --build-arg=VERSION=1.0\ndockerout rhel-9 D --build-arg=PACKAGE_VERSION=2.0\n';
  const { manifest, diagnostics } = parseManifest('M', text);
  assert.equal(
    diagnostics.map(({ code, severity }) => `${severity} ${code}`),
    ['info asset/one-word', 'info asset/one-word', 'info dockerout/build-arg', 'info dockerout/build-arg'],
  );
  assert.equal(JSON.parse(JSON.stringify(planManifest(manifest))), [
    { kind: 'asset', fileName: 'tool.tar.gz', source: 'https://h/a/tool.tar.gz?x=1', local: false },
    { kind: 'asset', fileName: 'c', source: './b/c', local: true },
    { kind: 'container-build', destination: 'rhel-8', dockerfile: 'D', version: '1.0' },
    { kind: 'container-build', destination: 'rhel-9', dockerfile: 'D', version: '2.0', argument: 'PACKAGE_VERSION' },
  ]);
});

test('two assets of one name are refused, also where the name comes from the source', () => {
  const { diagnostics } = parseManifest('M', 'asset https://h/a/f\nasset https://h/b/f\nasset f ./g\n');
  assert.equal(
    diagnostics
      .filter(({ severity }) => severity === 'error')
      .map(({ code, place }) => `${place.line}:${place.column} ${code}`),
    ['2:19 asset/duplicate-name', '3:7 asset/duplicate-name'],
  );
});

test('a Manifest of nothing but comments asks for nothing, without a finding', () => {
  const { manifest, diagnostics } = parseManifest('M', '# nothing\n\n  # but this');
  assert.equal([planManifest(manifest), diagnostics], [[], []]);
});

test('612 Manifests of the shapes of real ones parse and plan with no finding but :latest', () => {
  const combinations = new Map<string, number>();
  const keywords = new Map<string, number>();
  let latest = 0;
  for (const { name, version, manifest: text } of corpus()) {
    const { manifest, diagnostics } = parseManifest(`${name}/${version}`, text);
    assert.equal(
      diagnostics.filter(({ code }) => code !== 'image/latest'),
      [],
    );
    latest += diagnostics.length;
    const steps = planManifest(manifest);
    const images = manifest.requests.filter(({ kind }) => kind === 'image').length;
    assert.is(steps.filter(({ kind }) => kind === 'image').length, images);
    const own = manifest.requests.map(({ keyword }) => keyword.text);
    for (const keyword of own) keywords.set(keyword, (keywords.get(keyword) ?? 0) + 1);
    const combination = [...new Set(own)].toSorted().join('+');
    combinations.set(combination, (combinations.get(combination) ?? 0) + 1);
  }
  assert.is(latest, 49);
  assert.equal(Object.fromEntries(combinations), {
    image: 298,
    'asset+image': 195,
    'apt+image+yum+yumol': 43,
    'apt24+asset+dockerout+image+yum+yum2023': 38,
    'apt+asset+image+yum': 15,
    'asset+dockerout+image+yum': 11,
    'apt+image+yum': 6,
    'apt24+apt26+asset+dockerout+image+yum+yum2023': 2,
    'apt+yum+yum2023+yum8+yum9': 1,
    '': 3,
  });
  const { image, asset, dockerout, yum, apt } = Object.fromEntries(keywords);
  assert.equal({ image, asset, dockerout, yum, apt }, { image: 2698, asset: 262, dockerout: 285, yum: 163, apt: 71 });
});

test.run();
