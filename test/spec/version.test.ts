import { resolveVersion } from '../../src/spec/version.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('installer/version');

const ROOK = ['1.0.4', '1.19.7', '1.0.4-14.2.21', '1.4.9'];
const WEAVE = ['2.6.5-20230417', '2.8.1-20230417', '2.8.1-20220720', '2.8.1', '2.6.5-20221006', '2.6.5', '2.5.2'];

for (const [title, addon, requested, available, version] of [
  ['25: kubernetes 1.18.x', 'kubernetes', '1.18.x', ['1.19.16', '1.18.9', '1.18.20', '1.18.10'], '1.18.20'],
  ['25: rook 1.0.x', 'rook', '1.0.x', ROOK, '1.0.4-14.2.21'],
  ['25: rook latest is the first, not the greatest', 'rook', 'latest', ROOK, '1.0.4'],
  ['25: weave 2.8.x', 'weave', '2.8.x', WEAVE, '2.8.1-20230417'],
  ['25: weave 2.6.x', 'weave', '2.6.x', WEAVE, '2.6.5-20230417'],
  ['25: docker 19.03.x', 'docker', '19.03.x', ['20.10.17', '19.03.4', '19.03.15', '19.03.10'], '19.03.15'],
  ['an exact version', 'rook', '1.4.9', ROOK, '1.4.9'],
  ['an exact version that is not semver', 'x', '10to14', ['v5', '10to14'], '10to14'],
  ['a patch before a pre-release of a later one', 'x', '1.2.x', ['1.2.4-rc1', '1.2.3'], '1.2.3'],
  ['a pre-release where there is nothing else', 'x', '1.2.x', ['1.2.4-rc1', '1.2.4-rc2'], '1.2.4-rc2'],
  ['1.2.x does not mean 1.20', 'x', '1.2.x', ['1.20.9', '1.2.1'], '1.2.1'],
] as const) {
  test(`${title} resolves to ${version}`, () => {
    assert.is(resolveVersion(addon, requested, available).version, version);
  });
}

test('25: a pattern without match says so', () => {
  const dates = ['2025-10-15T17-29-55Z', 'v5'];
  const error = assert.throwsWith(() => resolveVersion('minio', '2025.10.x', dates), 'SPEC_INVALID');
  assert.match(error.message, 'latest patch version not found for 2025.10.x');
});

test('an unknown version names a near one, or those that there are', () => {
  const near = assert.throwsWith(() => resolveVersion('rook', '1.19.8', ROOK), 'SPEC_INVALID', /no version 1\.19\.8/);
  assert.is(near.hint, 'did you mean 1.19.7?');
  const far = assert.throwsWith(() => resolveVersion('rook', 'nightly', ROOK), 'SPEC_INVALID');
  assert.is(far.hint, `available: ${ROOK.join(', ')}`);
  assert.throwsWith(() => resolveVersion('rook', 'latest', []), 'SPEC_INVALID');
});

test('each resolution has its reason', () => {
  assert.is(resolveVersion('rook', 'latest', ROOK).because, 'latest');
  assert.is(resolveVersion('rook', '1.4.9', ROOK).because, 'exact');
  assert.is(resolveVersion('rook', '1.4.x', ROOK).because, 'greatest patch of 1.4');
});

test.run();
