/** Whom the packages of Linux distributions name. */
import { readMaintainer } from '../../scripts/linux-packages/maintainer.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('scripts/maintainer');

test('who releases has a name and a mail address on one line, which may exist', () => {
  assert.is(readMaintainer('Ann Example <ann@example.com>'), 'Ann Example <ann@example.com>');
  for (const given of [undefined, '', 'curlew', 'curlew <curlew@example.invalid>', 'a\nb <a@b.example>']) {
    let message = '';
    try {
      readMaintainer(given);
    } catch (error) {
      message = error instanceof Error ? error.message : '';
    }
    assert.match(message, /^set CURLEW_MAINTAINER to the name and the mail address of who releases/);
  }
});

test.run();
