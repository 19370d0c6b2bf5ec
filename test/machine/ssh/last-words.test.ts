import { renderFailure } from '../../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../../src/cli/render/paint.ts';
import type { Diagnostic } from '../../../src/core/diagnostic.ts';
import { CurlewError } from '../../../src/core/errors.ts';
import { keepLastWords } from '../../../src/machine/ssh/last-words.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('last words of programs');

function wordsOf(text: string): string {
  const words = keepLastWords();
  for (const line of text.split('\n')) words.add(line);
  return words.text();
}

function mistake(line: number, message: string, hint?: string): Diagnostic {
  const place = { file: 'my spec.yaml', line, column: 3, length: 1 };
  return { code: 'spec/unknown-version', severity: 'error', message, place, hint };
}

test('mistakes in a file that curlew shows before its error are part of it', () => {
  const diagnostics = [mistake(3, 'no kubernetes 1.99', 'there is 1.34.4'), mistake(7, 'no flannel 9')];
  const message = 'no kubernetes 1.99; no flannel 9';
  const error = new CurlewError('SPEC_INVALID', message, { diagnostics, hint: 'correct it' });
  const shown = renderFailure(error, NO_PAINT);
  const text =
    '2 mistakes; my spec.yaml:3:3 error spec/unknown-version: no kubernetes 1.99; hint: there is 1.34.4; my spec.yaml:7:3 error spec/unknown-version: no flannel 9; hint: correct it';
  assert.is(wordsOf(`a line\n  hint: of something else\n${shown}\n`), text);
  // An error before it, such as of a program that curlew has called, is not what ended it.
  assert.is(wordsOf(`error OTHER: before\n${shown}`), text);
});

test('findings that are not right before the error are not part of it', () => {
  const before = 'a.yaml:1:1 warning spec/old: old\n  hint: renew\npreflight\n';
  assert.is(wordsOf(`${before}error NOT_FOUND: no disk\n  hint: add one`), 'no disk; hint: add one');
  assert.is(wordsOf(`${before}bye\n\n`), 'bye');
});

test('of a long failure, lines in the middle are left out, and its hint stays', () => {
  const many = Array.from({ length: 200 }, (_, at) => `l${at}`);
  const text = wordsOf(`error HOOK_FAILED: demo failed:\n${many.join('\n')}\n  hint: fix it`);
  assert.match(text, /^demo failed: l0; l1; .*l28; …; l172; .*l199; hint: fix it$/);
  const found = many.map((one) => `a.yaml:1:1 error spec/x: ${one}`).join('\n');
  assert.match(
    wordsOf(`${found}\nerror SPEC_INVALID: 200 mistakes\n  hint: fix it`),
    /^200 mistakes; .*l0; .*hint: fix it$/,
  );
});

test('a program that says nothing has no last words', () => {
  assert.is(wordsOf('\n \n'), '');
});

test.run();
