/** Names in tables of contents, by whoever made them. */
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';
import { entriesOf, refusal, tableOf } from '../../support/toc-tables.ts';

const test = suite('archive/toc-names');

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
