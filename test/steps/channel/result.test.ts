import { titleOfRevision } from '../../../src/steps/channel/result.ts';
import * as assert from '../../support/assert.ts';
import { suite } from '../../support/suite.ts';

const test = suite('steps/channel/result');

test('what is installed is named by its version and its id, or by the beginning of its hash', () => {
  const hash = '0123456789abcdef';
  assert.is(titleOfRevision(undefined), undefined);
  assert.is(titleOfRevision({ version: '1.2.3', hash }), '1.2.3');
  assert.is(titleOfRevision({ version: '1.2.3', id: 'lts', hash }), '1.2.3 (lts)');
  assert.is(titleOfRevision({ hash }), '0123456789ab');
  assert.is(titleOfRevision({ id: 'lts' }), '(lts)');
});

test.run();
