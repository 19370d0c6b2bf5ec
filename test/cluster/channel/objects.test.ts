import { readObjects } from '../../../src/cluster/channel/objects.ts';
import { exactJson } from '../../../src/core/json.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/objects');

function values(...lines: readonly string[]): readonly string[] {
  const { objects, diagnostics } = readObjects('manifest.yaml', Buffer.from(`${lines.join('\n')}\n`));
  return (objects ?? diagnostics).map((one) => ('value' in one ? exactJson(one.value) : one.message));
}

const PAGE = ['apiVersion: v1', 'kind: ConfigMap', 'metadata: {name: page}'];

test('the objects of a manifest are what kubectl sends to the server', () => {
  assert.equal(values(...PAGE, 'mode: 0400', 'flag: yes', 'args: [a, ~]', 'uid: 9007199254740993', 'none: ~'), [
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page"},"mode":256,"flag":true,"args":["a",null],' +
      '"uid":9007199254740993,"none":null}',
  ]);
});

test('documents end at lines of dashes, also with a comment right after these; empty ones and null are none', () => {
  assert.is(values('\ufeff---#first', ...PAGE, '--- # none', '~', '---', '# no more').length, 1);
});

test('objects in JSON may follow each other without lines between them, as jq writes them', () => {
  const page = (name: string): string =>
    `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${name}"},"data":{"a":"} {\\""}}`;
  assert.equal(values(page('a'), page('b'), `${page('c')}${page('d')}`), ['a', 'b', 'c', 'd'].map(page));
  assert.equal(values(page('a'), '---', page('b')), ['a', 'b'].map(page));
  const { diagnostics } = readObjects('manifest.json', Buffer.from(`${page('a')}\n{\n"kind": 1}\n`));
  assert.equal(
    diagnostics.map(({ message, place }) => [message, place.line]),
    [['kind is missing', 2]],
  );
});

test('a map of YAML with braces in a text is one object', () => {
  assert.equal(values("{apiVersion: v1, kind: ConfigMap, metadata: {name: page}, data: {a: '} {'}}"), [
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page"},"data":{"a":"} {"}}',
  ]);
});

test('items of a list without apiVersion and kind have those of the list', () => {
  const list = (kind: string): readonly string[] =>
    values(
      'apiVersion: v1',
      `kind: ${kind}`,
      'items:',
      '- metadata: {name: a}',
      `- {apiVersion: v1, ${PAGE.slice(1).join(', ')}}`,
    );
  assert.equal(list('SecretList'), [
    '{"metadata":{"name":"a"},"apiVersion":"v1","kind":"Secret"}',
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page"}}',
  ]);
  assert.equal(list('List'), ['kind is missing']);
  assert.equal(values('apiVersion: v1', 'kind: SecretList', 'items:', '- {apiVersion: v1, metadata: {name: a}}'), [
    'kind is missing',
  ]);
  assert.equal(values('apiVersion: v1', 'kind: SecretList', 'items: ~'), ['the manifest has no objects']);
});

test('a text that UTF-8 cannot represent is refused, not sent as another one', () => {
  const { objects, diagnostics } = readObjects('m.yaml', Buffer.from([...PAGE, 'data: {a: "\\ud83d"}'].join('\n')));
  assert.is(objects, undefined);
  assert.equal(
    diagnostics.map(({ message }) => message),
    ['a text contains half of a surrogate pair'],
  );
});

test.run();
