/** What is shown of two states of an object. */
import { fieldChanges } from '../../../src/cluster/channel/difference.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('cluster/channel/difference');
const LAST = 'kubectl.kubernetes.io/last-applied-configuration';

test('keys that every object of JavaScript inherits are keys like others', () => {
  const named = { data: JSON.parse('{ "constructor": "1", "toString": "2", "__proto__": "3" }') as unknown };
  const changes = [
    ['.data.constructor', undefined, '"1"'],
    ['.data.toString', undefined, '"2"'],
    ['.data.__proto__', undefined, '"3"'],
  ];
  assert.equal(
    fieldChanges({ data: {} }, named).map(({ field, before, after }) => [field, before, after]),
    changes,
  );
});

test('no value of a Secret is shown, also not the copy that kubectl keeps in an annotation', () => {
  const secretOf = (password: string): object => {
    const data = { password: Buffer.from(password).toString('base64') };
    const annotations = { [LAST]: JSON.stringify({ kind: 'Secret', data }), note: password };
    return { kind: 'Secret', metadata: { name: 'a', labels: { pin: password }, annotations }, data };
  };
  const changes = fieldChanges(secretOf('hunter22'), secretOf('swordfish'));
  assert.equal(
    changes.map(({ field, before, after }) => [field, before, after]),
    ['.data.password', '.metadata.labels.pin', `.metadata.annotations.${LAST}`, '.metadata.annotations.note'].map(
      (field) => [field, '(hidden)', '(hidden)'],
    ),
  );
});

test.run();
