/** Tables of contents of as many entries as a reader takes, by whoever made them. */
import { endSize, parseTocJson } from '../../src/archive/toc.ts';
import { digestOf } from '../../src/core/digest.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('archive/huge-toc', { timeoutMs: 240_000 });
const MOST = 1_000_000;

/** The JSON text of a table of empty files. */
function tableOf(count: number, pathOf: (at: number) => string): Buffer {
  const rest = `","type":"reg","size":0,"mode":420,"digest":"${digestOf('')}"}`;
  const rows = Array.from({ length: count }, (_, at) => `{"name":"${pathOf(at)}${rest}`);
  return Buffer.from(`{"version":1,"entries":[${rows.join(',')}]}`);
}

function entriesOf(json: Buffer): number {
  return parseTocJson(json, 0, endSize(json.byteLength), 'huge').entries.length;
}

function refusal(json: Buffer): string {
  try {
    return `${entriesOf(json)} entries were read`;
  } catch (error) {
    assert.instance(error, CurlewError);
    return (error as CurlewError).message;
  }
}

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

for (const [title, paths, both] of [
  ['a file and then another in it', ['a/b', 'a/b/c'], 'a/b'],
  ['a file in what is a file later', ['a/b/c/d', 'a/b'], 'a/b'],
  ['one with names between them that sort close', ['a', 'a-b', 'a.b', 'a b', 'a/b'], 'a'],
] as const) {
  test(`${title} is refused`, () => {
    assert.match(
      refusal(tableOf(paths.length, (at) => paths[at] ?? '')),
      new RegExp(`: ${both} is a file and a folder$`),
    );
  });
}

test('names that only begin alike are no folders of each other', () => {
  const paths = ['a', 'a-b', 'a.b', 'a b', 'ab/c', 'a!/d'];
  assert.is(entriesOf(tableOf(paths.length, (at) => paths[at] ?? '')), paths.length);
});

test.run();
