import { renderDiagnostic } from '../../src/core/diagnostic.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/diagnostic');

for (const [title, line, column, caret] of [
  ['before what is hidden', '  web: {a: 1, password: [secret]', 9, '        ^^^'],
  ['in what is hidden', '  password: [secret]', 40, '            ^^^^^^^^'],
  ['in a line that is hidden', '[secret]', 12, '^^^^^^^^'],
] as const) {
  test(`the caret of a finding ${title} is under what it is about`, () => {
    const place = { file: 'f.yaml', line: 1, column, length: 3 };
    const shown = renderDiagnostic({ code: 'a/b', severity: 'error', message: 'wrong', place }, line);
    assert.is(shown, `f.yaml:1:${column} error a/b: wrong\n  ${line}\n  ${caret}`);
  });
}

test.run();
