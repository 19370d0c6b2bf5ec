import type { ErrorCode } from '../../../src/core/errors.ts';
import { problemError } from '../../../src/build/host-packages/problem.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/host-packages/problem');
const doing = 'fetch packages for ubuntu-22.04 (nfs)';

const CASES: readonly (readonly [what: string, text: string, code: ErrorCode, message: string])[] = [
  ['names that nobody has', 'missing\tnfs\nmissing\tlvm\n', 'PACKAGES_UNRESOLVED', 'no such package: nfs, lvm'],
  [
    'a conflict',
    'conflict\ta : Conflicts: b\n',
    'PACKAGES_UNRESOLVED',
    'the packages cannot be installed together\n  | a : Conflicts: b',
  ],
  [
    'a repository that is down',
    'repository\thttp://me:secret@h/d\tCould not connect\n',
    'FETCH_FAILED',
    'a repository cannot be read\n  | http://h/d: Could not connect',
  ],
  [
    'a wrong signature, which goes before what follows from it',
    'repository\thttp://h/d\tnot read\nsignature\thttp://h/d\tBADSIG\n',
    'SIGNATURE_INVALID',
    'a repository is not signed with its configured key\n  | http://h/d: BADSIG',
  ],
  [
    'a repository that changed',
    'changed\thttp://h/d\tHash Sum mismatch\n',
    'DIGEST_MISMATCH',
    'a repository, or a proxy in between, changed while it was read\n  | http://h/d: Hash Sum mismatch',
  ],
  [
    'an expired Release file, which goes before what follows from it',
    'repository\thttp://h/d\tnot read\nuntimely\thttp://h/d\tis expired (invalid since 5d)\n',
    'FETCH_FAILED',
    'a repository is too old or too new for the clock of this machine\n  | http://h/d: is expired (invalid since 5d)',
  ],
  ['a full disk', 'full\t/tmp/x\n', 'NO_SPACE', 'no space left'],
  ['a program that lacks', 'tool\tcreaterepo_c\n', 'UNSUPPORTED', 'a program is missing: createrepo_c'],
];

for (const [what, text, code, message] of CASES) {
  test(what, () => {
    const error = problemError(text, { doing, last: ['a wall', 'of log'] });
    assert.is(error.code, code);
    assert.is(error.message, `cannot ${doing}: ${message}`);
    assert.ok(error.hint);
  });
}

test('near names are in the hint, best first', () => {
  const text = 'missing\tnfs-comon\nnear\tnfs-comon\tnfs-common\nnear\tnfs-comon\tnfs4-common\n';
  const { hint } = problemError(text, { doing, last: [] });
  assert.is(hint, 'instead of nfs-comon, did you mean nfs-common or nfs4-common?');
});

test('many lines of a resolver are cut, and its control characters shown', () => {
  const text = Array.from({ length: 50 }, (_, index) => `conflict\t\u001b[2J${index}\n`).join('');
  const { message } = problemError(text, { doing, last: [] });
  assert.is(message.split('\n').length, 9);
  assert.not.match(message, /\u001b/);
});

test('without an answer the last lines are shown', () => {
  const { code, message } = problemError(undefined, { doing, last: ['one', 'two'] });
  assert.is(code, 'FETCH_FAILED');
  assert.is(message, `cannot ${doing}: the package manager failed\n  | one\n  | two`);
});

test('without room for an answer, the disk is full all the same', () => {
  const { code } = problemError(undefined, { doing, last: ['cp: error writing: No space left on device'] });
  assert.is(code, 'NO_SPACE');
});

test('a kind that nobody knows is no answer', () => {
  assert.is(problemError('constructor\tx\n', { doing, last: [] }).code, 'FETCH_FAILED');
});

test.run();
