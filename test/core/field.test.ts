import { choice, delayField, duration, outputFile, path, place, port, sizeField } from '../../src/core/field.ts';
import { CurlewError } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('core/field');

function size(text: string, option: string): number {
  return sizeField('SIZE', '').read([text], option);
}

test('amounts are powers of 1024, and of 1000 with a B', () => {
  const amounts = {
    '1000': 1000,
    '1B': 1,
    '1K': 1024,
    '10m': 10 * 1024 ** 2,
    '1.5G': 1.5 * 1024 ** 3,
    '2T': 2 * 1024 ** 4,
  };
  for (const [text, bytes] of Object.entries(amounts)) assert.is(size(text, '--x'), bytes, text);
  for (const [text, bytes] of Object.entries({ '10MB': 10_000_000, '4KiB': 4096, '1gb': 1e9 })) {
    assert.is(size(text, '--x'), bytes, text);
  }
});

test('the value nearest to a wrong one is proposed', () => {
  const shell = choice(['bash', 'zsh', 'fish'], '');
  const hintFor = (text: string): string | undefined => {
    try {
      return shell.read([text], 'shell');
    } catch (error) {
      assert.ok(error instanceof CurlewError);
      assert.is(error.message, `shell ${text}: must be one of bash, zsh, fish`);
      return error.hint;
    }
  };
  assert.equal(['zsh', 'zhs', 'powershell'].map(hintFor), ['zsh', 'did you mean zsh?', undefined]);
});

test('a time that is too short is refused with the least one, and a delay may be none', () => {
  assert.is(duration('TIME', '').read(['1s'], '--wait'), 1000);
  assert.throwsWith(
    () => duration('TIME', '').read(['0s'], '--wait'),
    'USAGE',
    /--wait 0s: not a duration of at least 1s/,
  );
  assert.is(delayField('TIME', '').read(['0s'], '--delay'), 0);
  assert.is(delayField('TIME', '').read(['1s'], '--delay'), 1000);
  for (const text of ['500ms', '-1s', 'no'])
    assert.throwsWith(
      () => delayField('TIME', '').read([text], '--delay'),
      'USAGE',
      /not 0s or a duration of at least 1s/,
    );
});

test('a port that there is not is refused', () => {
  assert.is(port('PORT', '').read(['65535'], '--ready'), 65_535);
  for (const text of ['0', '65536', '99999', 'http'])
    assert.throwsWith(() => port('PORT', '').read([text], '--ready'), 'USAGE', /not a port from 1 to 65535/);
});

test('a path whose ~ no shell has replaced is refused with what to write, and a name that begins with ~ is one', () => {
  for (const read of [path('PATH', '').read, place('PLACE', '').read, outputFile('FILE', '').read]) {
    for (const text of ['~', '~/dist', '~ana/dist']) {
      const { message, hint } = assert.throwsWith(() => read([text], '--to'), 'USAGE');
      assert.is(message, `--to ${text}: the shell has not replaced ~ with a home folder`);
      const whole = text === '~ana/dist' ? 'the whole path' : `$HOME${text.slice(1)}`;
      assert.match(hint ?? '', `: write ${whole}, or ./${text} for a file of that name`);
    }
    for (const text of ['~backup.tar.gz', './~', 'a/~/b', 's3://b/~x']) assert.is(read([text], '--to'), text);
  }
});

test('what is no amount is refused', () => {
  for (const text of [
    '',
    '0',
    '0K',
    '-1',
    '1e3',
    '1 M',
    'M',
    '1X',
    '1MM',
    '1.M',
    '0.0001',
    '99999999999999999',
    '9999T9',
  ]) {
    assert.throwsWith(() => size(text, '--limit-rate'), 'USAGE', /--limit-rate/);
  }
});

test.run();
