import { osRow } from '../../../src/core/os.ts';
import { rpmRepositoryFile } from '../../../src/build/host-packages/rpm-repositories.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/host-packages/rpm-repositories');

test('a repository with a key has its packages checked, one without has not', () => {
  const text = rpmRepositoryFile(
    [
      { id: 'one', url: 'https://one.example/$basearch/', key: 'https://one.example/KEY' },
      { id: 'two', url: { amd64: 'http://two.example/x86/', arm64: 'http://two.example/arm/' } },
    ],
    'arm64',
  );
  assert.is(
    text,
    [
      '[one]',
      'name=one',
      'baseurl=https://one.example/$basearch/',
      'enabled=1',
      'gpgcheck=1',
      'gpgkey=https://one.example/KEY',
      '',
      '[two]',
      'name=two',
      'baseurl=http://two.example/arm/',
      'enabled=1',
      'gpgcheck=0',
      '',
    ].join('\n'),
  );
});

test('a list of mirrors is told from a folder', () => {
  const text = rpmRepositoryFile(osRow('amazon-2023').repositories, 'amd64');
  assert.match(text, /^mirrorlist=https:\/\/\S+\.list$/m);
  assert.not.match(text, /baseurl/);
});

test('an id or address that would be read as something else is refused', () => {
  const file = (id: string, url: string) => (): string => rpmRepositoryFile([{ id, url }], 'amd64');
  assert.throwsWith(file('main', 'https://one.example/'), 'USAGE', /"main"/);
  assert.throwsWith(file('a]\n[b', 'https://one.example/'), 'USAGE');
  assert.throwsWith(file('one', 'https://one.example/\ngpgcheck=0'), 'USAGE', /repository one: a control character/);
});

test.run();
