import { addonRef, compareVersions, isAddonName, isVersion } from '../../src/core/ref.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/ref');

test('versions of every shape in the corpus are put in order', () => {
  const ordered = [
    '0.9.0',
    '1.0.4',
    '1.0.4-14.2.21',
    '1.2.3-alpha.1',
    '1.2.3-rc1',
    '1.2.3',
    '1.2.10',
    '1.10.0',
    '10to14',
    '2025-10-15T17-29-55Z',
  ];
  assert.equal(ordered.toReversed().toSorted(compareVersions), ordered);
});

test('a leading v does not count, and the order stays total', () => {
  assert.ok(compareVersions('v5', '4.9') > 0);
  assert.not.equal(compareVersions('v5', '5'), 0);
});

test('a name that is refused comes with the rule for names', () => {
  assert.match(assert.throwsWith(() => addonRef('Web_App', '1'), 'PACKAGE_INVALID').hint ?? '', 'lower-case letters');
});

for (const name of ['cert-manager', 'k8s', 'a', 'rook_1', 'host.fio']) {
  test(`"${name}" is a name`, () => assert.ok(isAddonName(name)));
}
for (const name of ['', '..', 'a..b', '-a', 'a-', 'A', 'a/b', 'a\n', 'x'.repeat(300), 'a\u0000']) {
  test(`${JSON.stringify(name.slice(0, 20))} is no name`, () => assert.not.ok(isAddonName(name)));
}
for (const version of ['1.0', 'v5', '10to14', '2025-10-15T17-29-55Z', '1.2.3+build.1']) {
  test(`"${version}" is a version`, () => assert.ok(isVersion(version)));
}
for (const version of ['', '.', '..', '1/2', '1..2', '1 2', '-1', '1\n']) {
  test(`${JSON.stringify(version)} is no version`, () => assert.not.ok(isVersion(version)));
}

test.run();
