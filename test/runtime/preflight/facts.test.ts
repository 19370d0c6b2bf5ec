import { formatFacts, parseFacts, type CollectedFacts } from '../../../src/runtime/preflight/facts.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('preflight/facts');

const FACTS: CollectedFacts = {
  format: 1,
  tool: '0.0.0',
  time: '2026-01-01T00:00:00.000Z',
  facts: [
    { kind: 'memory', name: 'memory', ms: 1, status: 'collected', data: { total: 5 } },
    { kind: 'run', name: 'x', ms: 9, status: 'late', problem: 'took longer than 1 s' },
  ],
};

const text = (change: (facts: Record<string, unknown>) => unknown): string =>
  JSON.stringify(change(JSON.parse(formatFacts(FACTS)) as Record<string, unknown>));
const withFact = (fact: unknown): string => text((facts) => ({ ...facts, facts: [fact] }));

test('facts come back from a file as they were', () => {
  assert.equal(parseFacts(formatFacts(FACTS), 'facts.json'), FACTS);
});

test('a file that is something else is refused by name, and says what is wrong', () => {
  const memory = { kind: 'memory', name: 'memory', ms: 1, status: 'collected' };
  const cases: readonly (readonly [string, RegExp])[] = [
    ['{', /read facts.json: not a facts file: not JSON/],
    ['[]', /not an object/],
    [text((facts) => ({ ...facts, format: 2 })), /format 2 is not known/],
    [text((facts) => ({ ...facts, time: 'yesterday' })), /tool or time/],
    [text((facts) => ({ ...facts, facts: 5 })), /: facts/],
    [withFact({ ...memory, data: { total: 'much' } }), /fact 1 does not have the shape of its kind/],
    [withFact({ ...memory, data: undefined }), /fact 1/],
    [withFact({ ...memory, kind: 'nosuch', data: { total: 1 } }), /fact 1/],
    [withFact({ ...memory, ms: -1, data: { total: 1 } }), /fact 1/],
    [withFact({ ...memory, status: 'failed' }), /fact 1/],
    [withFact({ ...memory, name: 'x'.repeat(2000), data: { total: 1 } }), /fact 1/],
    [
      withFact({ kind: 'tcpPortStatus', name: 'x', ms: 1, status: 'collected', data: { status: 'fine', message: '' } }),
      /fact 1/,
    ],
    [withFact({ kind: 'blockDevices', name: 'x', ms: 1, status: 'collected', data: [{ name: 1 }] }), /fact 1/],
    [
      withFact({
        kind: 'run',
        name: 'x',
        ms: 1,
        status: 'collected',
        data: { exitCode: 0, stdout: '', stderr: '', files: { a: 1 } },
      }),
      /fact 1/,
    ],
    [withFact({ kind: '__proto__', name: 'x', ms: 1, status: 'collected', data: {} }), /fact 1/],
  ];
  for (const [content, message] of cases)
    assert.throwsWith(() => parseFacts(content, 'facts.json'), 'SPEC_INVALID', message);
});

test.run();
