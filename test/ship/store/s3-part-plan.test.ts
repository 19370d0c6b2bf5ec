import { array, assert as check, nat, property, record } from 'fast-check';
import { planUpload, type PartLimits } from '../../../src/ship/store/s3-part-plan.ts';
import type { CopiedRange } from '../../../src/ship/store/store.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { cases } from '../../support/sweep.ts';

// soak: random cases
const test = suite('ship/store/s3-part-plan');

const place = { server: 's3:', base: 'bucket' };
const limits: PartLimits = { least: 5, copied: 50, sent: 6, parts: 10_000 };

/** Runs of these lengths, each after so many bytes that nobody holds. */
function layout(runs: readonly { readonly gap: number; readonly length: number }[], end: number) {
  const copies: CopiedRange[] = [];
  let size = 0;
  for (const [index, { gap, length }] of runs.entries()) {
    size += gap;
    copies.push({ at: size, length, place, key: `k${index}`, etag: 'e', offset: index * 1000 });
    size += length;
  }
  return { copies, size: size + end };
}

test('parts tile the object, none but the last is too small, and copies are of the right bytes', () => {
  const run = record({ gap: nat({ max: 30 }), length: nat({ max: 200 }).map((length) => length + 1) });
  check(
    property(array(run, { maxLength: 12 }), nat({ max: 20 }), (runs, end) => {
      const { copies, size } = layout(runs, end);
      const parts = planUpload(size, copies, limits);
      let at = 0;
      for (const [index, part] of parts.entries()) {
        assert.is(part.at, at);
        at += part.length;
        assert.ok(part.length > 0);
        if (index < parts.length - 1) assert.ok(part.length >= limits.least, `part of ${part.length}`);
        if (part.copy === undefined) continue;
        const { range, offset } = part.copy;
        assert.ok(part.length <= limits.copied);
        assert.is(offset - range.offset, part.at - range.at);
        assert.ok(part.at >= range.at && at <= range.at + range.length);
      }
      assert.is(at, size);
    }),
    cases(1000),
  );
});

test('what is sent is what nobody holds, and less than a smallest part for each border of a run', () => {
  const run = record({ gap: nat({ max: 30 }), length: nat({ max: 200 }).map((length) => length + 1) });
  check(
    property(array(run, { maxLength: 12 }), nat({ max: 20 }), (runs, end) => {
      const { copies, size } = layout(runs, end);
      const parts = planUpload(size, copies, limits);
      const sent = parts.reduce((sum, { length, copy }) => sum + (copy === undefined ? length : 0), 0);
      const held = copies.reduce((sum, { length }) => sum + length, 0);
      assert.ok(sent <= size - held + 2 * copies.length * limits.least, `${sent} bytes are sent`);
    }),
    cases(1000),
  );
});

test('where there would be too many parts they are larger', () => {
  const { copies, size } = layout(
    Array.from({ length: 100 }, () => ({ gap: 3, length: 40 })),
    4,
  );
  assert.ok(planUpload(size, copies, limits).length > 150);
  for (const parts of [100, 20, 1]) assert.ok(planUpload(size, copies, { ...limits, parts }).length <= parts);
});

test('an object that is one run is copied as a whole, and one without any is sent in full parts', () => {
  const [only] = layout([{ gap: 0, length: 40 }], 0).copies;
  assert.equal(planUpload(40, only === undefined ? [] : [only], limits), [
    { at: 0, length: 40, copy: { range: only, offset: 0 } },
  ]);
  assert.equal(
    planUpload(15, [], limits).map(({ length }) => length),
    [6, 6, 3],
  );
  assert.equal(planUpload(0, [], limits), []);
});

test('attack: runs that overlap, end behind the object or are empty are refused', () => {
  const good: CopiedRange = { at: 10, length: 10, place, key: 'k', etag: 'e', offset: 0 };
  for (const bad of [
    [good, { ...good, at: 19 }],
    [{ ...good, at: 95 }],
    [{ ...good, length: 0 }],
    [{ ...good, offset: -1 }],
    [{ ...good, at: -1 }],
  ]) {
    assert.throwsWith(() => planUpload(100, bad, limits), 'PACKAGE_INVALID');
  }
});

test.run();
