import { hiding, secret, secretsIn } from '../../src/core/secret.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/secret');

test('values are hidden in a text in whatever form a program prints them', () => {
  const key = 'begin\nline "one"\nend';
  const hide = hiding(
    secretsIn({ name: 'alpha', list: ['beta-one', { number: 12345 }], key, short: 'of', none: null }),
  );
  assert.is(hide('alpha beta-one 12345 of null'), '[secret] [secret] [secret] of null');
  assert.is(hide('a line "one" at end'), 'a [secret] at end');
  assert.is(hide(JSON.stringify({ key })), '{"key":"[secret]"}');
  assert.is(hide(Buffer.from(key).toString('base64')), '[secret]');
});

test('a secret that contains another one is hidden as a whole', () => {
  assert.is(hiding([secret('abcd'), secret('abcd-efgh')])('x abcd-efgh abcd'), 'x [secret] [secret]');
});

test.run();
