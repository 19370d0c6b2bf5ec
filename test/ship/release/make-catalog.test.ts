import { Ajv } from 'ajv';
import { readFile } from 'node:fs/promises';
import { formatCatalog, parseCatalog, type Catalog } from '../../../src/core/catalog.ts';
import { digestOf } from '../../../src/core/digest.ts';
import {
  formatAddons,
  formatSupportedVersions,
  makeCatalog,
  type ListedPackage,
} from '../../../src/ship/release/make-catalog.ts';
import { parseOrderFile } from '../../../src/ship/release/version-order.ts';
import { releasesToTry } from '../../../src/ship/release/release-name.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('release/catalog');

const fitsSchema = new Ajv().compile(
  JSON.parse(await readFile('docs/schemas/catalogue-1.schema.json', 'utf8')) as object,
);

const listed = (name: string, version: string, arch: 'amd64' | 'arm64' = 'amd64'): ListedPackage => ({
  name,
  version,
  arch,
  tree: 'addons',
  requires: [],
  fulfills: [],
  entry: { digest: digestOf(name + version), sha256: digestOf(version), size: 1, unpacked: 2, images: [] },
});

test('versions stand in descending order, the first is the latest; architectures share a version', () => {
  const { addons } = makeCatalog('r1', [
    listed('rook', '1.0.4'),
    listed('rook', 'nightly'),
    listed('rook', '1.10.0'),
    listed('rook', '1.9.1'),
    listed('rook', '1.0.4-14.2.21'),
    listed('rook', '1.10.0', 'arm64'),
    listed('ekco', '1'),
  ]);
  assert.equal(
    addons.map(({ name }) => name),
    ['ekco', 'rook'],
  );
  assert.equal(
    addons[1]?.versions.map(({ version }) => version),
    ['1.10.0', '1.9.1', '1.0.4-14.2.21', '1.0.4', 'nightly'],
  );
  assert.equal(Object.keys(addons[1]?.versions[0]?.packages ?? {}).toSorted(), ['amd64', 'arm64']);
});

test('the text does not depend on the order of packages and is read back as it was', () => {
  const packages = [listed('a', '1'), listed('b', '2'), listed('a', '3')];
  const text = formatCatalog(makeCatalog('r1', packages));
  assert.is(formatCatalog(makeCatalog('r1', packages.toReversed())), text);
  assert.equal(parseCatalog(text, 'x'), makeCatalog('r1', packages));
});

const good = makeCatalog('r1', [listed('a', '1')]);
function changed(change: (catalog: Record<string, unknown>, version: Record<string, unknown>) => void): string {
  const copy = structuredClone(good) as Catalog & Record<string, unknown>;
  change(copy, copy.addons[0]?.versions[0] as unknown as Record<string, unknown>);
  return JSON.stringify(copy);
}

for (const [title, text] of [
  ['no JSON', '{'],
  ['an array', '[]'],
  ['a release with a slash', changed((all) => (all['release'] = '../x'))],
  ['no add-ons', changed((all) => (all['addons'] = undefined))],
  ['a name that leaves the folder', changed((all) => (all['addons'] = [{ name: '../x', versions: [] }]))],
  ['an add-on twice', changed((all) => (all['addons'] = [...good.addons, ...good.addons]))],
  ['an add-on without versions', changed((all) => (all['addons'] = [{ name: 'a', versions: [] }]))],
  ['a version that leaves the folder', changed((_, version) => (version['version'] = '../../x'))],
  ['an unknown tree', changed((_, version) => (version['tree'] = '/etc'))],
  ['no packages', changed((_, version) => (version['packages'] = {}))],
  ['an unknown architecture', changed((_, version) => (version['packages'] = { '../x': {} }))],
  ['a digest that is none', changed((_, version) => (version['packages'] = { amd64: { digest: 'x' } }))],
  ['requires that are no list', changed((_, version) => (version['requires'] = 'x'))],
  ['a size below zero', formatCatalog(good).replace('"size":1', '"size":-1')],
] as const) {
  test(`a catalog with ${title} is refused`, () => {
    const error = assert.throwsWith(() => parseCatalog(text, 'store/index.json'), 'PACKAGE_INVALID');
    assert.match(error.message, 'store/index.json');
    // That a name stands once only is beyond what a schema can say.
    if (title !== 'no JSON' && title !== 'an add-on twice') assert.ok(!fitsSchema(JSON.parse(text)));
  });
}

test('the published schema says yes to what is written', () => {
  const many = makeCatalog('v2026.11.20-0', [listed('rook', '1.0.4-14.2.21'), listed('a', '1+b', 'arm64')]);
  assert.ok(fitsSchema(JSON.parse(formatCatalog(many))), JSON.stringify(fitsSchema.errors));
  assert.ok(!fitsSchema({ ...many, release: 'index.json' }));
});

test('an order file comes first, what it does not name follows in descending order', () => {
  const packages = ['1.0.4', '1.0.4-14.2.21', '1.10.0', 'nightly', '1.9.1'].map((version) => listed('rook', version));
  const orders = new Map([['rook', parseOrderFile('["1.0.4","2.0.0","1.9.1"]', 'versions.json')]]);
  assert.equal(
    makeCatalog('r1', packages, orders).addons[0]?.versions.map(({ version }) => version),
    ['1.0.4', '1.9.1', '1.10.0', '1.0.4-14.2.21', 'nightly'],
  );
});

for (const [what, text] of [
  ['no JSON', '["1.0"'],
  ['no list', '{"1.0":1}'],
  ['numbers', '[1.0]'],
  ['a version that leaves the folder', '["../1.0"]'],
  ['a version twice', '["1.0","1.0"]'],
] as const) {
  test(`an order file with ${what} is refused`, () => {
    assert.match(assert.throwsWith(() => parseOrderFile(text, 'a/versions.json'), 'MANIFEST_INVALID').message, 'a/');
  });
}

const host = (version: string): ListedPackage => ({ ...listed('host', version), tree: 'packages' });

test('kurl.md 3.4: a list per add-on begins with latest, kubernetes is listed, host-fio is told as fio: host', () => {
  const kubernetes = { ...listed('kubernetes', '1.19.16'), tree: 'packages' } as const;
  const conformance = { ...listed('kubernetes-conformance', '1.19.16'), tree: 'packages' } as const;
  const all = [host('fio'), host('openssl'), kubernetes, conformance, listed('rook', '1.0.4'), listed('rook', '1.5.9')];
  const orders = new Map([['rook', ['1.0.4']]]);
  const generated = JSON.parse(formatSupportedVersions(makeCatalog('r1', all, orders))) as object;
  assert.equal(Object.keys(generated).toSorted(), ['_comment', 'supportedVersions']);
  assert.equal((generated as { supportedVersions: unknown }).supportedVersions, {
    fio: ['host'],
    kubernetes: ['latest', '1.19.16'],
    rook: ['latest', '1.0.4', '1.5.9'],
  });
  assert.not.match(formatSupportedVersions(makeCatalog('r1', [host('openssl'), kubernetes])), 'fio');
});

test('kurl.md 3.4: addons-gen.json holds what categories.json of each add-on holds, and nothing of packages', () => {
  const rook = {
    ...listed('rook', '1.5.9'),
    fulfills: ['object-store'],
    requires: ['kubernetes'],
    recommends: ['ekco'],
  };
  const catalog = makeCatalog('r1', [rook, host('fio')]);
  const text = formatAddons(parseCatalog(formatCatalog(catalog), 'index.json'));
  assert.equal((JSON.parse(text) as { addOns: unknown }).addOns, [
    { name: 'rook', fulfills: ['object-store'], requires: ['kubernetes'], recommends: ['ekco'] },
  ]);
});

test('a catalog of a later format is not misread', () => {
  const text = changed((all) => (all['format'] = 2));
  assert.throwsWith(() => parseCatalog(text, 'x'), 'UNSUPPORTED');
});

test('a day’s releases are numbered in the zone of the clock’s UTC', () => {
  const now = new Date('2026-01-02T00:30:00+02:00');
  const two = (current: string | undefined): readonly string[] => {
    const tried = releasesToTry(now, current);
    return [tried.next().value ?? '', tried.next().value ?? ''];
  };
  assert.equal(two(undefined), ['v2026.01.01-0', 'v2026.01.01-1']);
  assert.equal(two('v2026.01.02-99'), ['v2026.01.01-0', 'v2026.01.01-1']);
  assert.equal(two('v2026.01.01-x'), ['v2026.01.01-0', 'v2026.01.01-1']);
  assert.equal(two('v2026.01.01-10'), ['v2026.01.01-11', 'v2026.01.01-12']);
});

test.run();
