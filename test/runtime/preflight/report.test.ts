import { parseDuration } from '../../../src/core/units.ts';
import { formatDuration, parseQuantity, parseTruth } from '../../../src/runtime/preflight/go-notation.ts';
import { analysisStatus, type PreflightResult } from '../../../src/runtime/preflight/analyze.ts';
import { resultLines, savedReport } from '../../../src/runtime/preflight/report.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/report');

const result = (verdict: PreflightResult['verdict'], message: string, uri?: string): PreflightResult => {
  return { verdict, title: 'Number of CPUs', message, strict: false, spec: 'x', ...(uri === undefined ? {} : { uri }) };
};

test('kurl.md 11, case 29: a result is one line with its tag', () => {
  const message = 'At least 4 CPU cores are required';
  assert.equal(resultLines(result('pass', message)), [`[PASS] Number of CPUs: ${message}`]);
  assert.equal(resultLines(result('warn', message)), [`[WARN] Number of CPUs: ${message}`]);
  assert.equal(resultLines(result('fail', message)), [`[FAIL] Number of CPUs: ${message}`]);
});

test('kurl.md 11, case 29: statuses are 0, 3, 2 and 1', () => {
  const counts = (warn: number, fail: number): { pass: number; warn: number; fail: number } => ({
    pass: 1,
    warn,
    fail,
  });
  assert.is(analysisStatus(counts(0, 0), false), 0);
  assert.is(analysisStatus(counts(1, 0), false), 3);
  assert.is(analysisStatus(counts(1, 0), true), 2);
  assert.is(analysisStatus(counts(1, 1), true), 1);
  assert.is(analysisStatus(counts(0, 1), false), 1);
});

test('long messages are broken at 80 columns, and control characters are shown', () => {
  const lines = resultLines(
    result('warn', `${'word '.repeat(30)}\nx\u001b[31m ${'y'.repeat(100)}`, 'https://a.test/b'),
  );
  assert.equal(
    lines.filter((line) => line.length > 80),
    [],
  );
  assert.ok(lines.slice(1).every((line) => line.startsWith('       ')));
  assert.not.match(lines.join(''), /\u001b/);
  assert.is(lines.at(-1), '       https://a.test/b');
  assert.is(resultLines(result('warn', 'word '.repeat(25)), { width: 160 }).length, 1, 'or where a terminal ends');
});

test('the saved file has version, options and results', () => {
  const text = savedReport({ tool: 'curlew 1.0.0', options: ['is-join: true'], results: [result('pass', 'fine')] });
  assert.is(text, '[version]\ncurlew 1.0.0\n\n[options]\nis-join: true\n\n[results]\n[PASS] Number of CPUs: fine\n');
});

test('durations, quantities and truth are read as Go and Kubernetes write them', () => {
  assert.equal(['10ms', '1m30s', '1.5s', '0', '2h', '-1s', '5', 'soon', ''].map(parseDuration), [
    10,
    90_000,
    1500,
    0,
    7_200_000,
    -1000,
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal([0, 999, 1500, 2_500_000, 1.5e9, 90.5e9, 3_661e9].map(formatDuration), [
    '0s',
    '999ns',
    '1.5µs',
    '2.5ms',
    '1.5s',
    '1m30.5s',
    '1h1m1s',
  ]);
  assert.equal(['30Gi', '4G', '1.5Gi', '100Ti', '2e9', '5', '500m', '1k', '.5Ki', 'x', '1Q', ''].map(parseQuantity), [
    30 * 2 ** 30,
    4e9,
    1.5 * 2 ** 30,
    100 * 2 ** 40,
    2e9,
    5,
    undefined,
    1000,
    512,
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal(['true', 'T', '1', 'False', '0', 'yes', ''].map(parseTruth), [
    true,
    true,
    true,
    false,
    false,
    undefined,
    undefined,
  ]);
});

test.run();
