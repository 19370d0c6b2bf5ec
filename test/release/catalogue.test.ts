import { formatCatalogue, parseCatalogue, type Catalogue } from '../../src/core/catalogue.ts';
import { digestOf } from '../../src/core/digest.ts';
import { makeCatalogue, type ListedPackage } from '../../src/release/catalogue.ts';
import { releasesToTry } from '../../src/release/release-name.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('release/catalogue');

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
  const { addons } = makeCatalogue('r1', [
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
  const text = formatCatalogue(makeCatalogue('r1', packages));
  assert.is(formatCatalogue(makeCatalogue('r1', packages.toReversed())), text);
  assert.equal(parseCatalogue(text, 'x'), makeCatalogue('r1', packages));
});

const good = makeCatalogue('r1', [listed('a', '1')]);
function changed(change: (catalogue: Record<string, unknown>, version: Record<string, unknown>) => void): string {
  const copy = structuredClone(good) as Catalogue & Record<string, unknown>;
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
  ['a size below zero', formatCatalogue(good).replace('"size":1', '"size":-1')],
] as const) {
  test(`a catalogue with ${title} is refused`, () => {
    const error = assert.throwsWith(() => parseCatalogue(text, 'store/index.json'), 'PACKAGE_INVALID');
    assert.match(error.message, 'store/index.json');
  });
}

test('a catalogue of a later format is not misread', () => {
  const text = changed((all) => (all['format'] = 2));
  assert.throwsWith(() => parseCatalogue(text, 'x'), 'UNSUPPORTED');
});

test('a day’s releases are numbered in the zone of the clock’s UTC', () => {
  const now = new Date('2026-01-02T00:30:00+02:00');
  assert.equal(releasesToTry(now, [], undefined), ['v2026.01.01-0']);
  const there = ['v2026.01.01-0', 'v2026.01.01-10', 'v2026.01.02-99', 'v2026.01.01-x'];
  assert.equal(releasesToTry(now, there, 'v2026.01.01-10'), ['v2026.01.01-11']);
  assert.equal(releasesToTry(now, there, 'v2026.01.01-0'), ['v2026.01.01-10', 'v2026.01.01-11']);
});

test.run();
