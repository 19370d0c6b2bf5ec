/** Each conformance case of kurl.md 11 has tests whose titles begin with its number, or with `case` and its number. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('kurl/every-case');

/** Numbers of the cases in kURL's own list. */
const CASES = [1, 2, 3, 5, 7, 8, ...range(10, 21), 23, 24, 25, 27, 29, 30, 31, 32];
const TITLE = /(?:["'`]|\bcase )(\d+): /g;

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

test('no case is without a test, and no number is one that is not there', async () => {
  const root = join(import.meta.dirname, '..');
  const files = (await readdir(root, { recursive: true })).filter((name) => /\.(?:test\.ts|bats)$/.test(name));
  const texts = await Promise.all(files.map(async (name) => readFile(join(root, name), 'utf8')));
  const titles = texts.flatMap((text) => [...text.matchAll(TITLE)].map(([, number]) => Number(number)));
  assert.equal(
    CASES.filter((number) => !titles.includes(number)),
    [],
  );
  assert.equal(
    [...new Set(titles)].filter((number) => !CASES.includes(number)),
    [],
  );
});

test.run();
