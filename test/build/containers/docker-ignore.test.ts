import * as assert from '../../support/assert.ts';
import { ignoreRules } from '../../../src/build/containers/build-context.ts';
import { suite } from '../../support/suite.ts';

const test = suite('build/docker-ignore');

for (const [rules, ignored, kept] of [
  ['a', ['a', 'a/b'], ['b/a', 'ab']],
  ['/a/', ['a', 'a/b'], ['b/a']],
  ['*.rpm', ['a.rpm'], ['b/a.rpm', 'a.rpms', 'arpm']],
  ['**/*.rpm', ['a.rpm', 'b/c/a.rpm'], ['a.deb']],
  ['b/**', ['b/c', 'b/c/d'], ['b', 'a/b']],
  ['b/**/d', ['b/d', 'b/c/d', 'b/c/c/d'], ['d', 'b/c']],
  ['a?[0-9]', ['ab1'], ['ab', 'abx', 'a/1']],
  ['# a\n\n.\n  b  ', ['b'], ['a', '# a']],
  ['*\n!keep\n!sub/*.txt', ['a', 'sub/a.bin'], ['keep', 'keep/x', 'sub/a.txt']],
  ['a\n!a\na/b', ['a/b'], ['a', 'a/c']],
  ['a+(b)|c$', ['a+(b)|c$'], ['aab']],
  ['[z-a]\nb', ['b'], ['z']],
] as const) {
  test(`${JSON.stringify(rules)} leaves out ${ignored.join(', ')}`, () => {
    const judge = ignoreRules(rules);
    for (const path of ignored) assert.ok(judge(path), path);
    for (const path of kept) assert.not.ok(judge(path), path);
  });
}

test('rules that fit in very many ways are judged once for each file', () => {
  assert.not.ok(ignoreRules(`${'*a'.repeat(100)}b`)('a'.repeat(200)));
  assert.ok(ignoreRules(`${'**a'.repeat(100)}**`)('a'.repeat(200)));
  assert.not.ok(ignoreRules(`${'/'.repeat(500_000)}x`)('y'));
});

for (const [rules, ignored, kept] of [
  ['a**b', ['ab', 'a/c/b', 'axb/d'], ['ba']],
  ['**', ['a', 'a/b'], []],
  ['**/a/**/b', ['a/b', 'x/a/y/b', 'a/b/c'], ['xa/b', 'a/xb']],
  ['[^a-c]d', ['xd'], ['ad', 'd', 'x/d']],
  ['[', ['['], ['a']],
  ['a*', ['a', 'ab', 'ab/c'], ['ba', 'b/a']],
  ['?', ['é', '😀'], ['ab']],
] as const) {
  test(`the pattern ${rules} leaves out ${ignored.join(', ')}`, () => {
    for (const path of ignored) assert.ok(ignoreRules(rules)(path), path);
    for (const path of kept) assert.not.ok(ignoreRules(rules)(path), path);
  });
}

test.run();
