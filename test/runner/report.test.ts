import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { failedTests, failureText, progressLine, skippedLines, slowestLines } from './report.ts';
import type { Job, Result } from './schedule.ts';

const test = suite('runner/report');
const JOB: Job = {
  name: 'test/core/ref.test.ts',
  command: 'scripts/test --fast test/core/ref.test.ts',
  alone: undefined,
  isLong: false,
  after: undefined,
  run: async () => Promise.reject(),
};
const RESULT: Result = { passed: 1, failed: 0, skipped: [], output: '', seconds: 3.14 };

test('a line of progress tells the place, the outcome, the seconds and the time left, in 80 columns', () => {
  const line = progressLine(JOB, RESULT, { done: 7, all: 273, left: 80.4 });
  assert.is(line, '[  7/273] ok      3.1 s  1:20 left  test/core/ref.test.ts');
  assert.is(
    progressLine(JOB, { ...RESULT, failed: 1, seconds: 100 }, { done: 273, all: 273, left: undefined }),
    '[273/273] FAIL  100.0 s             test/core/ref.test.ts',
  );
});

test('each failed test comes with the line that runs it alone', () => {
  const output = '   FAIL  core/ref  "it\'s a "tag""\n    no\n\n   FAIL  core/ref  "digest"\n';
  assert.equal(failedTests(output), [`it's a "tag"`, 'digest']);
  const text = failureText(JOB, { ...RESULT, failed: 2, output });
  assert.match(text, `scripts/test --fast test/core/ref.test.ts --only 'it'\\''s a "tag"'\n`);
  assert.match(text, 'scripts/test --fast test/core/ref.test.ts --only digest\n');
  assert.match(
    failureText(JOB, { ...RESULT, failed: 1, output: 'crashed' }),
    'scripts/test --fast test/core/ref.test.ts\n',
  );
});

test('tests that could not run are one line for each reason', () => {
  assert.equal(skippedLines(['needs root', 'no IPv6', 'needs root']), [
    'SKIPPED 2 tests: needs root',
    'SKIPPED 1 test: no IPv6',
  ]);
});

test('the ten slowest files are shown', () => {
  const results = Array.from({ length: 12 }, (_, index) => [`test/${index}`, { seconds: index, cpu: 1.25 }] as const);
  const lines = slowestLines(
    new Map<string, Pick<Result, 'seconds' | 'cpu'>>([...results, ['check', { seconds: 2.5 }]]),
  );
  assert.equal(
    [lines.length, lines[0], lines.at(-1)],
    [10, '   11.0 s   1.3 CPU-s  test/11', '    2.5 s              check'],
  );
});

test.run();
