import { changeList } from '../../../src/formats/yaml/list-items.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('formats/yaml/list-items');

const TEXT = `# sites
kind: Other
---
kind: Cluster   # ours
spec:
    machines:
    # the first one
    - name: a # here
      labels: { x: "1" }

    # the second one
    - name: b
      note: |
        - name: c
        # text
    # after it
    installer: {}
`;

function change(text: string, what: Parameters<typeof changeList>[2]): string | undefined {
  const isIt = (value: unknown): boolean => Object(value).kind === 'Cluster';
  return changeList(text, { isIt, path: ['spec', 'machines'] }, what);
}

test('an item goes with its lines, and every other byte stays', () => {
  assert.is(change(TEXT, { remove: 0 }), TEXT.replace('    - name: a # here\n      labels: { x: "1" }\n', ''));
  assert.is(
    change(TEXT, { remove: 1 }),
    TEXT.replace('    - name: b\n      note: |\n        - name: c\n        # text\n', ''),
  );
});

test('an item comes after the last one, in its column, and with its line ends', () => {
  const add = { name: 'c', ssh: { port: 22 } };
  const lines = '    - name: c\n      ssh:\n        port: 22\n';
  assert.is(change(TEXT, { add }), TEXT.replace('        # text\n', `        # text\n${lines}`));
  const windows = TEXT.replaceAll('\n', '\r\n');
  assert.is(change(windows, { add }), change(TEXT, { add })?.replaceAll('\n', '\r\n'));
  assert.is(
    change('kind: Cluster\nspec:\n  machines:\n  - a', { add: 'b' }),
    'kind: Cluster\nspec:\n  machines:\n  - a\n  - b\n',
  );
});

test('a list that is written in another way is left alone', () => {
  for (const list of ['[{ name: a }]', '[]', '', '{ a: b }', '\n  -\n    name: a']) {
    assert.is(change(`kind: Cluster\nspec:\n  machines: ${list}\n`, { add: { name: 'b' } }), undefined, list);
  }
  const aliased = 'kind: Cluster\nspec:\n  machines:\n  - &x a\n  - *x\n';
  assert.is(change(aliased, { remove: 0 }), undefined);
  assert.is(change('kind: Other\nspec:\n  machines:\n  - a\n', { remove: 0 }), undefined);
  assert.is(change('kind: Cluster\nspec: [\n', { remove: 0 }), undefined);
});

test.run();
