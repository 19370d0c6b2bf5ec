import { redact } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/errors');

test('user info and query leave every address of a text', () => {
  for (const [text, clean] of [
    ['get https://me:secret@host/a?key=secret failed', 'get https://host/a failed'],
    ['get HTTPS://me:secret@host:8443#secret', 'get HTTPS://host:8443'],
    ['s3+http://a:secret@b/c, and ftp://secret@d', 's3+http://b/c, and ftp://d'],
    [`${'long-scheme.'.repeat(5)}x://secret@host/a`, `${'long-scheme.'.repeat(5)}x://host/a`],
    ['1http://secret@host', '1http://host'],
    ['no address: a@b?c', 'no address: a@b?c'],
  ] as const) {
    assert.is(redact(text), clean);
  }
});

test('a text made to cost time is read in one go', () => {
  const text = 'a.-'.repeat(300_000);
  assert.is(redact(text), text);
});

test.run();
