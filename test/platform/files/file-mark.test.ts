import { isSettled } from '../../../src/platform/files/file-mark.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('platform/files/file-mark');
const SECOND = 1_800_000_000_000n;

test('a file is settled once its clock has ticked, which takes two seconds where times have whole seconds', () => {
  const settledAfter = (ctimeNs: bigint, ms: bigint): boolean => isSettled({ ctimeNs }, Number(SECOND + ms));
  const fine = SECOND * 1_000_000n + 1n;
  assert.equal([settledAfter(fine, 10n), settledAfter(fine, 30n)], [false, true]);
  const whole = SECOND * 1_000_000n;
  assert.equal(
    [settledAfter(whole, 30n), settledAfter(whole, 1990n), settledAfter(whole, 2010n)],
    [false, false, true],
  );
  assert.not(settledAfter(fine, -60_000n), 'the clock of a file server is ahead');
});

test.run();
