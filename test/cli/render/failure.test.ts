import { CurlewError, fileError } from '../../../src/core/errors.ts';
import { failureJson, renderFailure } from '../../../src/cli/render/failure.ts';
import { NO_PAINT, paintFor } from '../../../src/cli/render/paint.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cli/render/failure');
const place = { file: 'installer.yaml', line: 5, column: 3, length: 4 };

function systemError(text: string, code: string): Error {
  return Object.assign(new Error(text), { code });
}

function shown(error: Error): string {
  return renderFailure(error, NO_PAINT);
}

test('a failure is its code, its message, what it comes from, and what to do', () => {
  const error = new CurlewError('FETCH_FAILED', 'fetch it: no answer', {
    hint: 'try again',
    cause: new Error('the proxy is gone'),
  });
  assert.is(shown(error), 'error FETCH_FAILED: fetch it: no answer\n  because: the proxy is gone\n  hint: try again');
});

test("the system's words are kept, its calls and numbers are not", () => {
  const missing = systemError("ENOENT: no such file or directory, open '/a/spec.yaml'", 'ENOENT');
  assert.is(
    shown(fileError('read /a/spec.yaml', missing)),
    'error FILE_UNUSABLE: cannot read /a/spec.yaml: no such file or directory',
  );
  assert.is(
    shown(fileError('read the plan spec.yaml', missing)),
    'error FILE_UNUSABLE: cannot read the plan spec.yaml: no such file or directory',
  );
  assert.is(
    shown(fileError('make the folders', systemError("EEXIST: file already exists, mkdir '/a/out'", 'EEXIST'))),
    'error FILE_UNUSABLE: cannot make the folders: file already exists: /a/out',
  );
});

test('the lines of a long message stand below its first', () => {
  assert.is(
    shown(new CurlewError('HOOK_FAILED', 'web failed\nit said:\n  no')),
    'error HOOK_FAILED: web failed\n  it said:\n    no',
  );
});

test('a partial file beside the one that is named is not shown', () => {
  const refused = systemError("EACCES: permission denied, open '/a/ro/.curlew-partial-1'", 'EACCES');
  assert.is(
    shown(fileError('write /a/ro/b.gz', refused)),
    `error FILE_UNUSABLE: cannot write /a/ro/b.gz: permission denied
  hint: check its owner and permissions, run the same command as another user, or use another path`,
  );
});

test('the name of a call of the system is not shown, with an underscore either', () => {
  const cause = systemError('ENOENT: no such file or directory, uv_cwd', 'ENOENT');
  assert.is(
    shown(new CurlewError('FILE_UNUSABLE', 'cannot read the working folder', { cause })),
    'error FILE_UNUSABLE: cannot read the working folder\n  because: no such file or directory',
  );
});

test('a cause that says the same as the message in other words is left out', () => {
  const cause = systemError("ENOENT: no such file or directory, open '/a/b'", 'ENOENT');
  assert.is(
    shown(new CurlewError('NOT_FOUND', 'open /a/b: no such file', { cause })),
    'error NOT_FOUND: open /a/b: no such file',
  );
});

test('findings that make up the message are shown once, with their hint', () => {
  const message = 'mytol: release v1 has no such add-on';
  const hint = 'did you mean mytool?';
  const error = new CurlewError('SPEC_INVALID', message, {
    hint,
    diagnostics: [{ code: 'installer/unresolved', severity: 'error', message, place, hint }],
  });
  assert.is(
    shown(error),
    `installer.yaml:5:3 error installer/unresolved: ${message}\n  hint: ${hint}\nerror SPEC_INVALID: 1 mistake`,
  );
});

test('whoever has canceled is not told of an error', () => {
  assert.is(shown(new CurlewError('CANCELLED', 'canceled', { cause: new Error('aborted') })), 'canceled');
});

test('a bug shows its stack, without secrets', () => {
  assert.match(shown(new Error('broken at https://me:pass@host/')), /This is a bug[^]*https:\/\/host\/[^]*\n {4}at /);
});

test('as JSON it keeps code, message, hint and causes', () => {
  const error = new CurlewError('BUSY', 'it is being built', { hint: 'wait', cause: new Error('by another') });
  assert.equal(failureJson(error), {
    error: { code: 'BUSY', message: 'it is being built', hint: 'wait', causes: ['by another'], diagnostics: [] },
  });
  assert.equal(failureJson(new Error('odd')), { error: { code: 'BUG', message: 'odd' } });
});

test('colours are for terminals that have them, and for people who want them', () => {
  const error = new CurlewError('BUSY', 'it is being built', { hint: 'wait' });
  const painted = renderFailure(error, paintFor({ isTTY: true }, { TERM: 'xterm' }));
  assert.is(
    painted,
    '\u001b[1m\u001b[31merror BUSY:\u001b[39m\u001b[22m it is being built\n  \u001b[36mhint:\u001b[39m wait',
  );
  for (const [isTTY, env] of [
    [false, { TERM: 'xterm' }],
    [true, { TERM: 'dumb' }],
    [true, { TERM: 'xterm', NO_COLOR: '1' }],
  ] as const) {
    assert.is(renderFailure(error, paintFor({ isTTY }, env)), shown(error));
  }
});

test.run();
