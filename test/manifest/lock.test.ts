import { formatLock, parseLock, type ManifestLock } from '../../src/manifest/lock.ts';
import { lockChanges, mergeLocks } from '../../src/manifest/lock-changes.ts';
import type { Digest } from '../../src/core/digest.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('lock');

const digest = (digit: string): Digest => `sha256:${digit.repeat(64)}`;

const LOCK: ManifestLock = {
  format: 1,
  images: [
    {
      id: 'one',
      reference: 'docker.io/library/one:1',
      digest: digest('1'),
      platforms: { 'linux/amd64': { digest: digest('2'), size: 500 } },
    },
  ],
  assets: [{ name: 'tool', source: 'https://example.com/tool', size: 7, digest: digest('3') }],
  hostPackages: [
    {
      os: 'rhel-9',
      arch: 'amd64',
      archives: ['collectd'],
      deps: ['git'],
      inputs: 'rocky:9',
      files: [
        {
          file: 'collectd-5.el9.x86_64.rpm',
          name: 'collectd',
          version: '1:5-2.el9',
          arch: 'x86_64',
          size: 9,
          digest: digest('4'),
          repository: 'epel',
        },
      ],
      required: ['git', 'glibc'],
    },
  ],
  containerBuilds: [
    {
      folder: 'rhel-8',
      arch: 'amd64',
      dockerfile: 'addons/one/Dockerfile',
      version: '1',
      inputs: digest('5'),
      requires: [],
    },
  ],
};

/** The lock with a part of it changed as text. */
function changed(from: string, to: string): ManifestLock {
  const text = formatLock(LOCK);
  assert.match(text, from);
  return parseLock(text.replaceAll(from, to), 'test');
}

test('a lock is read back as it was written, the same text whatever the order of its keys', () => {
  assert.equal(parseLock(formatLock(LOCK), 'test'), LOCK);
  const { images, ...rest } = LOCK;
  assert.is(formatLock({ ...rest, images }), formatLock(LOCK));
});

for (const [title, text] of [
  ['no JSON', '{'],
  ['another format', '{"format":0}'],
  ['a list', '[]'],
  ['no images', '{"format":1,"assets":[],"hostPackages":[],"containerBuilds":[]}'],
  ['an image without digest', formatLock(LOCK).replace(digest('1'), 'sha256:0')],
  ['a size that is no number', formatLock(LOCK).replace('"size":9', '"size":"9"')],
  ['a package without version', formatLock(LOCK).replace('"version":"1:5-2.el9"', '"v":1')],
  ['a build without inputs', formatLock(LOCK).replace(digest('5'), '')],
] as const) {
  test(`a lock is refused: ${title}`, () => {
    assert.throwsWith(() => parseLock(text, 'here'), 'PACKAGE_INVALID', /^here: Manifest\.lock: /);
  });
}

test('equal locks differ in nothing', () => {
  assert.equal(lockChanges(LOCK, LOCK, 'amd64'), []);
});

for (const [title, from, to, kind, name] of [
  ['a tag that moved', digest('1'), digest('9'), 'image', 'one'],
  ['another manifest for the platform', digest('2'), digest('9'), 'image', 'one'],
  ['an asset with other bytes', digest('3'), digest('9'), 'asset', 'tool'],
  ['an asset from elsewhere', 'example.com/tool', 'example.org/tool', 'asset', 'tool'],
  ['a newer package', '1:5-2.el9', '1:5-3.el9', 'package', 'rhel-9 collectd.x86_64'],
  ['a package rebuilt under its version', digest('4'), digest('9'), 'package', 'rhel-9 collectd.x86_64'],
  ['another need of the packages', '["git","glibc"]', '["git"]', 'deps', 'rhel-9'],
  ['other inputs of a build', digest('5'), digest('9'), 'container-build', 'rhel-8 addons/one/Dockerfile'],
] as const) {
  test(`${title} is a change`, () => {
    const changes = lockChanges(LOCK, changed(from, to), 'amd64');
    assert.equal(
      changes.map((change) => [change.kind, change.name]),
      [[kind, name]],
    );
    assert.ok(changes[0]?.locked !== undefined && changes[0].now !== undefined);
  });
}

test('what only one side has is a change without the other', () => {
  const none = { ...LOCK, assets: [], hostPackages: [] };
  assert.equal(
    lockChanges(LOCK, none, 'amd64').map(({ name, locked, now }) => [name, locked === undefined, now === undefined]),
    [
      ['tool', false, true],
      ['rhel-9 collectd.x86_64', false, true],
      ['rhel-9', false, true],
    ],
  );
  assert.ok(lockChanges(none, LOCK, 'amd64').every(({ locked }) => locked === undefined));
});

test('other architectures are not compared, and are kept when a lock is written for one', () => {
  const arm = parseLock(
    formatLock(LOCK).replaceAll('amd64', 'arm64').replaceAll(digest('2'), digest('8')).replaceAll('1:5-2', '1:6-1'),
    'test',
  );
  const both = mergeLocks(LOCK, arm, 'arm64');
  assert.equal(lockChanges(both, LOCK, 'amd64'), []);
  assert.equal(lockChanges(both, arm, 'arm64'), []);
  assert.match(lockChanges(LOCK, arm, 'arm64')[0]?.locked ?? '', 'not resolved for linux/arm64');
});

test('platforms of an image that is another one now are dropped', () => {
  const moved = changed(digest('1'), digest('9'));
  assert.equal(mergeLocks(LOCK, moved, 'amd64').images, moved.images);
});

test('a lock of a later format asks for a newer curlew, and anything else is no lock', () => {
  const error = assert.throwsWith(() => parseLock('{"format":2}', 'web'), 'UNSUPPORTED', /Manifest\.lock: .*but of 2$/);
  assert.match(error.hint ?? '', /newer curlew/);
  for (const text of ['{"format":"2"}', '{}', 'null']) {
    assert.throwsWith(() => parseLock(text, 'web'), 'PACKAGE_INVALID', /not a lock of format 1$/);
  }
});

test.run();
