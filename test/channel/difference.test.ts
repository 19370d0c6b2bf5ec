/** What is shown of two states of an object. */
import { fieldChanges } from '../../src/channel/difference.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('channel/difference');
const LAST = 'kubectl.kubernetes.io/last-applied-configuration';

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
