/** What a command on the machines of a cluster ends with. */
import type { ErrorCode } from '../../src/core/errors.ts';
import { failureCode } from '../../src/machine/cluster.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('machine/cluster');

test('a command on machines ends as they do, if they have failed in one way that curlew knows', () => {
  const codes = (...all: readonly ErrorCode[]) => failureCode(all.map((code) => ({ code })));
  assert.is(codes('NOT_FOUND', 'NOT_FOUND'), 'NOT_FOUND');
  assert.is(codes('NOT_FOUND', 'PREFLIGHT_FAILED'), 'CLUSTER_FAILED');
  assert.is(codes('PROGRAM_FAILED'), 'CLUSTER_FAILED');
  assert.is(codes(), 'CLUSTER_FAILED');
});

test.run();
