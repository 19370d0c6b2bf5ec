import { aptSources } from '../../../src/build/host-packages/apt-sources.ts';
import { ubuntuRepositories } from '../../../src/core/repositories.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/host-packages/apt-sources');

test("a distribution's archive, where it is for the architecture", () => {
  const text = aptSources(ubuntuRepositories('jammy'), 'arm64');
  assert.is(
    text,
    [
      'Types: deb',
      'URIs: http://ports.ubuntu.com/ubuntu-ports/',
      'Suites: jammy jammy-updates jammy-security',
      'Components: main restricted universe multiverse',
      'Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg',
      '',
    ].join('\n'),
  );
});

test('a flat repository without a key is taken on trust, and separated from the one before', () => {
  const flat = { id: 'own', url: 'https://example.org/debs/' };
  const stanza = 'Types: deb\nURIs: https://example.org/debs/\nSuites: ./\nTrusted: yes\n';
  assert.is(aptSources([flat, flat], 'amd64'), `${stanza}\n${stanza}`);
});

for (const [what, repository] of [
  ['a line more in an address', { id: 'x', url: 'http://h/\nTrusted: yes' }],
  ['two words as a suite', { id: 'x', url: 'http://h/', suites: ['a b'] }],
  ['two words as a key', { id: 'x', url: 'http://h/', key: '/a b' }],
] as const) {
  test(`${what} is refused`, () => {
    assert.throwsWith(() => aptSources([repository], 'amd64'), 'USAGE', /repository x: a blank/);
  });
}

test.run();
