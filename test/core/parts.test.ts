import { digestOf } from '../../src/core/digest.ts';
import { formatHead, formatSums, isHeadPath, parseHead, partsPath, type PartsHead } from '../../src/core/parts.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/parts');

const HEAD: PartsHead = {
  format: 1,
  name: 'b.tar.gz',
  size: 30,
  tocDigest: digestOf('toc'),
  parts: [
    { name: 'b.tar.gz.part-001', size: 20, digest: digestOf('1') },
    { name: 'b.tar.gz.part-002', size: 10, digest: digestOf('2') },
  ],
};

test('a head file is read as it was written', () => {
  assert.equal(parseHead(formatHead(HEAD), 'h'), HEAD);
  assert.ok(isHeadPath(partsPath.head('b.tar.gz')));
  assert.not.ok(isHeadPath('b.tar.gz'));
});

test('the sums are those that sha256sum reads', () => {
  assert.is(formatSums(HEAD.parts).split('\n')[0], `${digestOf('1').slice(7)}  b.tar.gz.part-001`);
});

const [first, second] = HEAD.parts;
const wrong: Readonly<Record<string, unknown>> = {
  'a list': [],
  'a name with a slash': { ...HEAD, name: 'x/b.tar.gz' },
  'a name that leads upwards': { ...HEAD, name: '..' },
  'no digest of the contents': { ...HEAD, tocDigest: 'sha256:0' },
  'a size that is no number': { ...HEAD, size: '30' },
  'sizes that do not add up': { ...HEAD, size: 31 },
  'no parts': { ...HEAD, parts: [], size: 0 },
  'a part of another name': { ...HEAD, parts: [first, { ...second, name: '/etc/shadow' }] },
  'a part twice': { ...HEAD, parts: [first, first] },
  'parts in another order': { ...HEAD, parts: [second, first] },
  'a part without bytes': { ...HEAD, size: 20, parts: [first, { ...second, size: 0 }] },
  'a part of negative size': { ...HEAD, size: 15, parts: [first, { ...second, size: -5 }] },
  'a part without a digest': { ...HEAD, parts: [first, { ...second, digest: 'md5:1' }] },
  'a part that is no object': { ...HEAD, parts: [first, 1] },
  'too many parts': { ...HEAD, parts: Array.from({ length: 1000 }, () => first) },
};
for (const [title, value] of Object.entries(wrong)) {
  test(`a head file with ${title} is refused`, () => {
    assert.throwsWith(() => parseHead(JSON.stringify(value), 'h.parts.json'), 'PACKAGE_INVALID', /^h\.parts\.json: /);
  });
}

test('a head file of a later format says so', () => {
  assert.throwsWith(() => parseHead('{"format": 2}', 'h'), 'UNSUPPORTED', /format 2 of parts/);
  assert.throwsWith(() => parseHead('{', 'h'), 'PACKAGE_INVALID', /not JSON/);
});

test.run();
