import { execa } from 'execa';
import * as fc from 'fast-check';
import { settingsText, shellQuote } from '../../src/runtime/settings.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('settings for the shell');

test('any text survives bash unchanged', async () => {
  const texts = fc.sample(fc.string({ unit: 'binary', maxLength: 40 }), 300).map((text) => text.replaceAll('\0', ''));
  const hostile = ['$(touch x)', '`id`', `it's`, '"', '\\', '!!', 'a\nb', '-n', '~', '* ?', '${HOME}', ''];
  const all = [...texts, ...hostile].map((text) => Buffer.from(text).toString());
  const script = all.map((text) => `printf '%s\\0' ${shellQuote(text)}`).join('\n');
  const { stdout } = await execa('bash', ['--norc'], { input: script });
  assert.equal(stdout.split('\0').slice(0, -1), all);
});

test('a setting is no longer exported when the caller had exported it', async () => {
  const text = settingsText([['DEMO_TOKEN', 'new']], [['DIR', '.']]);
  const { stdout } = await execa(
    'bash',
    ['--norc', '-c', `${text}\necho "$DEMO_TOKEN $DIR"; env | grep -c DEMO || true`],
    {
      env: { DEMO_TOKEN: 'old' },
    },
  );
  assert.is(stdout, 'new .\n0');
});

for (const name of ['BASH_ENV', 'CURLEW_CONTROL', 'PATH', 'LD_PRELOAD', 'a b', 'X=1;id', '', '1A', 'IFS', 'DIR']) {
  test(`${JSON.stringify(name)} cannot be the name of a setting`, () => {
    assert.throwsWith(() => settingsText([[name, 'x']], []), 'SPEC_INVALID', /cannot be a shell variable/);
  });
}

test('a NUL character in a setting is refused', () => {
  assert.throwsWith(() => settingsText([['DEMO_X', 'a\0b']], []), 'SPEC_INVALID', /DEMO_X holds a NUL/);
});

test.run();
