import * as assert from '../../support/assert.ts';
import { splitResources } from '../../../src/manifest/scaffold/draft.ts';
import { suite } from '../../support/suite.ts';

const test = suite('scaffold/split');

const CRD = 'apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n';

test('definitions and the rest keep their order, each document with its mark', () => {
  const { definitions, rest } = splitResources(`a: 1\n---\n${CRD}---\nb: 2\n---\n${CRD}`);
  assert.is(rest, '---\na: 1\n---\nb: 2\n');
  assert.is(definitions, `---\n${CRD}---\n${CRD}`);
});

test('documents of nothing but comments are left out, comments of others stay', () => {
  const { definitions, rest } = splitResources('---\n# licence\n--- # second\n# of a\na: 1\n---\n\n');
  assert.is(rest, '---\n# of a\na: 1\n');
  assert.is(definitions, '');
});

test('line ends and a byte order mark become those of Unix', () => {
  assert.is(splitResources('\u{FEFF}a: 1\r\nb: 2\r\n').rest, '---\na: 1\nb: 2\n');
});

test('a kind that stands deeper is not the kind of the document', () => {
  const { definitions } = splitResources('spec:\n  kind: CustomResourceDefinition\nkind: X\n');
  assert.is(definitions, '');
});

test('content behind the mark of a document is kept', () => {
  assert.is(splitResources('--- {a: 1}\n').rest, '---\n{a: 1}\n');
});

test.run();
