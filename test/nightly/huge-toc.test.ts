/** Tables of contents of as many entries as a reader takes, by whoever made them. */
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { entriesOf, refusal, tableOf } from '../support/toc-tables.ts';

const test = suite('tables of contents of as many entries as a reader takes', { timeoutMs: 240_000 });
const MOST = 1_000_000;

test('a million entries are read, and one more is refused', () => {
  const flat = (at: number): string => `addons/a/1.0/d${at % 1000}/f${at}`;
  assert.is(entriesOf(tableOf(MOST, flat)), MOST);
  assert.match(refusal(tableOf(MOST + 1, flat)), /more than 1000000 entries/);
});

test('eighteen million folders, of few files, fit into memory', () => {
  const deep = (at: number): string => `${at}/${'a/'.repeat(62)}f`;
  const count = 290_000;
  assert.is(entriesOf(tableOf(count, deep)), count);
});

test.run();
