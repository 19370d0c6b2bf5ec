import { createHash } from 'node:crypto';
import {
  hashOfManifest,
  reachesLocalFile,
  reachesOtherBucket,
  resolveLocation,
} from '../../../src/cluster/channel/location.ts';
import { digestOf, hexOf } from '../../../src/core/digest.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/location');

for (const [channel, reference, location] of [
  ['https://example.com/a/b.yaml', 'c.yaml', 'https://example.com/a/c.yaml'],
  ['https://example.com/a/b.yaml?v=1', '../c.yaml?v=2', 'https://example.com/c.yaml?v=2'],
  ['https://example.com/a/b.yaml', '//other/c.yaml', 'https://other/c.yaml'],
  ['s3://bucket/dir/addon.yaml', '../../../m.yaml', 's3://bucket/m.yaml'],
  ['s3://bucket/dir/addon.yaml', '/m.yaml', 's3://bucket/m.yaml'],
  ['s3://bucket/dir/addon.yaml', 'a b.yaml', 's3://bucket/dir/a%20b.yaml'],
  ['file:///srv/addon.yaml', './m.yaml', 'file:///srv/m.yaml'],
  ['/srv/a/addon.yaml', '../m.yaml', '/srv/m.yaml'],
  ['addons/addon.yaml', 'm.yaml', 'addons/m.yaml'],
  ['addons/addon.yaml', '/srv/m.yaml', '/srv/m.yaml'],
  ['addons/addon.yaml', 'https://example.com/m.yaml', 'https://example.com/m.yaml'],
  ['https://example.com/a.yaml', 'https://', undefined],
] as const) {
  test(`${reference} of ${channel} is ${String(location)}`, () => {
    assert.is(resolveLocation(channel, reference), location);
  });
}

test('a channel from another machine reaches no file of this one', () => {
  assert.ok(reachesLocalFile('https://example.com/a.yaml', 'FILE:///etc/passwd'));
  assert.not.ok(reachesLocalFile('file:///srv/a.yaml', 'file:///srv/b.yaml'));
  assert.not.ok(reachesLocalFile('/srv/a.yaml', 'file:///srv/b.yaml'));
});

for (const [channel, location, isOther] of [
  ['https://example.com/a.yaml', 'S3://private/key', true],
  ['https://example.com/a.yaml', 's3://%ff/key', true],
  ['s3://addons/a.yaml', 's3://private/key', true],
  ['s3://addons/a.yaml', 's3://addons.private/key', true],
  ['s3://addons/a.yaml', 's3://addon%73private/key', true],
  ['/srv/a.yaml', 's3://addons/b.yaml', false],
  ['s3://addons/a.yaml', 's3://addons/other/b.yaml', false],
  ['s3://addons/a.yaml', 'https://example.com/b.yaml', false],
] as const) {
  test(`${location} is ${isOther ? 'out of' : 'within'} reach of ${channel}`, () => {
    assert.is(reachesOtherBucket(channel, location), isOther);
  });
}

test('white space at both ends of a manifest is not in its hash to kops, and is in a Channel', () => {
  const hash = (text: string): string => hashOfManifest(Buffer.from(text), { kind: 'Addons' });
  assert.is(hash('\r\n\t kind: A\v\f\n'), hash('kind: A'));
  assert.is(hash('  \n'), hash(''));
  assert.is(hashOfManifest(Buffer.from(' '), { kind: 'Channel' }), hexOf(digestOf(' ')));
});

test('a hash of kops is that of the trimmed text or, as sha256sum prints it, of all bytes; that of a Channel is of all bytes', () => {
  const text = 'kind: A\n';
  const hash = (kind: 'Addons' | 'Channel', given: string): string =>
    hashOfManifest(Buffer.from(text), { kind, hash: given });
  const [whole, trimmed] = [text, text.trim()].map((one) => hexOf(digestOf(one))) as [string, string];
  assert.equal([hash('Addons', whole), hash('Addons', trimmed), hash('Addons', '')], [whole, trimmed, trimmed]);
  assert.equal([hash('Channel', whole), hash('Channel', trimmed)], [whole, whole]);
  const sha1 = createHash('sha1').update(text).digest('hex');
  assert.is(hash('Addons', sha1), sha1);
});

test.run();
