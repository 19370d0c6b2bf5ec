import { digestOf } from '../../../src/core/digest.ts';
import type { BundleJson } from '../../../src/core/bundle.ts';
import type { ManifestLock } from '../../../src/manifest/lock.ts';
import { formatSbom } from '../../../src/build/sbom/cyclonedx.ts';
import type { Described } from '../../../src/build/sbom/described.ts';
import * as assert from '../../support/assert.ts';
import { describedPackage, LOCK, schemaProblems } from '../../support/described.ts';
import { suite } from '../../support/suite.ts';

const test = suite('sbom/cyclonedx', { timeoutMs: 60_000 });

interface Document {
  readonly serialNumber: string;
  readonly metadata: { readonly component: { readonly 'bom-ref': string; readonly version: string } };
  readonly components: readonly {
    readonly 'bom-ref': string;
    readonly type: string;
    readonly name: string;
    readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
    readonly externalReferences?: readonly { readonly url: string; readonly type: string }[];
  }[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[];
}

const PACKAGE: Described = { contents: digestOf('toc'), packages: [describedPackage()], bundle: undefined };

function bundleOf(...names: readonly string[]): Described {
  const packages = names.map((name) => describedPackage(LOCK, name));
  const listed = packages.map(({ addon: { name, version, tree, arch, digest } }) => {
    return { name, version, tree, arch, requested: version, digest, sha256: digestOf(name), size: 1 };
  });
  const json: BundleJson = {
    format: 1,
    release: 'r1',
    arch: 'amd64',
    installer: digestOf(''),
    packages: listed,
    tool: '1.2.3',
  };
  return { contents: digestOf('toc'), packages, bundle: { json, tool: digestOf('tool') } };
}

function documentOf(described: Described): Document {
  return JSON.parse(formatSbom(described, '9.9.9').text) as Document;
}

test('the SBOM of a package fits the schema of CycloneDX 1.6, and every component has its digest', async () => {
  const document = documentOf(PACKAGE);
  assert.equal(await schemaProblems(document), []);
  assert.is(document.metadata.component['bom-ref'], 'addons/web/1.0.0/');
  assert.equal(
    document.components.map(({ type }) => type),
    ['container', 'library', 'library', 'file', 'file', 'file'],
  );
  for (const { hashes } of document.components) assert.match(hashes?.[0]?.content ?? '', /^[0-9a-f]{64}$/);
  const [root] = document.dependencies;
  assert.is(root?.ref, 'addons/web/1.0.0/');
  assert.equal(
    root?.dependsOn,
    document.components.map((one) => one['bom-ref']),
  );
  assert.equal(document.components[3]?.externalReferences, [{ url: 'https://example.com/tool', type: 'distribution' }]);
});

test('the schema is really asked', async () => {
  assert.not.equal(await schemaProblems({ ...documentOf(PACKAGE), serialNumber: 'x' }), []);
});

test('a bundle has its packages, what each depends on, and the tool; what two packages hold stands once', async () => {
  const document = documentOf(bundleOf('aaa', 'bbb'));
  assert.equal(await schemaProblems(document), []);
  const refs = document.components.map((one) => one['bom-ref']);
  assert.is(new Set(refs).size, refs.length);
  assert.is(refs.length, 2 + 6 + 1);
  const dependsOn = new Map(document.dependencies.map(({ ref, dependsOn: on = [] }) => [ref, on]));
  assert.equal(dependsOn.get('bundle'), ['addons/aaa/1.0.0/', 'addons/bbb/1.0.0/', 'bin/curlew']);
  assert.is(dependsOn.get('addons/aaa/1.0.0/')?.length, 6);
  assert.equal(dependsOn.get('addons/aaa/1.0.0/'), dependsOn.get('addons/bbb/1.0.0/'));
});

test('the same gives the same bytes, and another gives another serial number', () => {
  assert.is(formatSbom(PACKAGE, '1').text, formatSbom({ ...PACKAGE }, '1').text);
  const serials = [PACKAGE, bundleOf('aaa'), bundleOf('bbb'), { ...PACKAGE, contents: digestOf('x') }].map(
    (one) => formatSbom(one, '1').serialNumber,
  );
  assert.is(new Set([...serials, formatSbom(PACKAGE, '2').serialNumber]).size, 5);
  for (const serial of serials) {
    assert.match(serial, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});

test('more components than an SBOM can hold are refused', () => {
  const described = describedPackage();
  const [asset] = LOCK.assets;
  const assets = Array.from({ length: 100_001 }, (_, n) => ({ ...asset, name: `asset-${n}` }));
  const lock = { ...LOCK, assets } as ManifestLock;
  const many: Described = { ...PACKAGE, packages: [{ ...described, lock }], bundle: undefined };
  assert.throwsWith(() => formatSbom(many, '1'), 'PACKAGE_INVALID', /more than 100000 components/);
});

test.run();
