import { array, assert as check, boolean, nat, property, tuple } from 'fast-check';
import { createRanges } from '../../../src/ship/transfer/ranges.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('pull/ranges');

test('ranges that meet become one, and what is removed leaves both ends', () => {
  const ranges = createRanges([
    { offset: 0, end: 5 },
    { offset: 5, end: 10 },
    { offset: 20, end: 30 },
  ]);
  assert.equal(ranges.list(), [
    { offset: 0, end: 10 },
    { offset: 20, end: 30 },
  ]);
  ranges.remove({ offset: 8, end: 22 });
  assert.equal(ranges.list(), [
    { offset: 0, end: 8 },
    { offset: 22, end: 30 },
  ]);
  assert.equal(ranges.gap(40), { offset: 8, end: 22 });
  assert.is(ranges.gap(8), undefined);
  assert.is(ranges.bytes(), 16);
  assert.equal(createRanges().gap(3), { offset: 0, end: 3 });
});

test('they hold the bytes that a plain set would hold, whatever is added and removed', () => {
  const range = tuple(boolean(), nat(40), nat(12));
  check(
    property(array(range, { maxLength: 30 }), range, (steps, [, at, length]) => {
      const ranges = createRanges();
      const plain = new Set<number>();
      for (const [add, offset, size] of steps) {
        const one = { offset, end: offset + size };
        if (add) ranges.add(one);
        else ranges.remove(one);
        for (let byte = one.offset; byte < one.end; byte += 1) {
          if (add) plain.add(byte);
          else plain.delete(byte);
        }
      }
      const held = ranges
        .list()
        .flatMap(({ offset, end }) => Array.from({ length: end - offset }, (_, i) => offset + i));
      assert.equal(
        held,
        [...plain].toSorted((a, b) => a - b),
      );
      assert.is(ranges.bytes(), plain.size);
      const asked = Array.from({ length }, (_, i) => at + i);
      assert.is(
        ranges.has({ offset: at, end: at + length }),
        asked.every((byte) => plain.has(byte)),
      );
      assert.equal(
        ranges
          .missing({ offset: at, end: at + length })
          .flatMap(({ offset, end }) => Array.from({ length: end - offset }, (_, i) => offset + i)),
        asked.filter((byte) => !plain.has(byte)),
      );
      const missing = Array.from({ length: 60 }, (_, i) => i).find((byte) => !plain.has(byte));
      assert.is(ranges.gap(60)?.offset, missing);
    }),
  );
});

test.run();
