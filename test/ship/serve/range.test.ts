import * as fc from 'fast-check';
import * as assert from '../../support/assert.ts';
import { parseByteRange } from '../../../src/ship/serve/conditions.ts';
import { suite } from '../../support/suite.ts';

const test = suite('ship/serve/range');

function rangesOf(header: string, size = 100): string {
  const wanted = parseByteRange(header, size);
  if (wanted.kind !== 'ranges') return wanted.kind;
  return wanted.ranges.map(({ offset, length }) => `${offset}+${length}`).join(' ');
}

test('no range, and a range in another unit, mean the whole', () => {
  assert.is(parseByteRange(undefined, 10).kind, 'whole');
  assert.is(rangesOf('lines=1-2'), 'whole');
});

for (const [header, ranges] of [
  ['bytes=0-0', '0+1'],
  ['bytes=90-', '90+10'],
  ['bytes=-10', '90+10'],
  ['bytes=-1000', '0+100'],
  ['BYTES = 5 - 9', '5+5'],
  ['bytes=50-99999999999999999999999', '50+50'],
  ['bytes=90-95,0-4', '90+6 0+5'],
  ['bytes=0-4,,10-14,', '0+5 10+5'],
  ['bytes=0-4,200-', '0+5'],
] as const) {
  test(`${header} of a hundred bytes is ${ranges}`, () => assert.is(rangesOf(header), ranges));
}

for (const header of [
  'bytes=-0',
  'bytes=9-5',
  'bytes=100-',
  'bytes=-',
  'bytes=',
  'bytes',
  'bytes=a-b',
  'bytes=1-2;3-4',
  'bytes=0x1-0x2',
  'bytes=1.5-2',
  'bytes=--1',
  `bytes=${'0-1,'.repeat(1000)}`,
]) {
  test(`${header.slice(0, 40)} is refused`, () => assert.is(rangesOf(header), 'unsatisfiable'));
}

test('every range of an empty content is refused', () => {
  for (const header of ['bytes=0-', 'bytes=-1', 'bytes=0-0']) assert.is(rangesOf(header, 0), 'unsatisfiable');
});

test('ranges that overlap become one, so that nobody gets more than the content has', () => {
  assert.is(rangesOf('bytes=0-,0-,0-,0-'), '0+100');
  assert.is(rangesOf('bytes=50-60,0-10,5-55'), '0+61');
});

test('whatever is asked for, ranges lie within the content and do not overlap', () => {
  const number = fc.oneof(fc.nat(120), fc.constant(''));
  const spec = fc.tuple(number, number).map(([first, last]) => `${first}-${last}`);
  const lists = fc.array(spec, { maxLength: 8 });
  fc.assert(
    fc.property(lists, fc.nat(110), (specs, size) => {
      const wanted = parseByteRange(`bytes=${specs.join(',')}`, size);
      if (wanted.kind !== 'ranges') return;
      const seen = new Set<number>();
      for (const { offset, length } of wanted.ranges) {
        assert.ok(length > 0 && offset >= 0 && offset + length <= size);
        for (let at = offset; at < offset + length; at += 1) {
          assert.not(seen.has(at));
          seen.add(at);
        }
      }
    }),
  );
});

test.run();
