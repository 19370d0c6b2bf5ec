import { COMMANDS } from '../../src/cli/commands.ts';
import { parametersOf } from '../../src/core/request.ts';
import { commandHelp, overview } from '../../src/cli/help.ts';
import { wrap } from '../../src/cli/render/columns.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/help');

test('text is broken between words, and a word that is too long stands alone', () => {
  assert.equal(wrap('one two  three\nfour', 9), ['one two', 'three', 'four']);
  assert.equal(wrap('a incomprehensibilities b', 5), ['a', 'incomprehensibilities', 'b']);
  assert.equal(wrap('', 5), []);
});

test('the help of every command fits into eighty columns and names each option', async () => {
  for (const [name, { of, load }] of COMMANDS) {
    const command = await load();
    const help = commandHelp(command);
    const [usage = '', what] = help.split('\n\n');
    assert.match(usage, new RegExp(`^Usage: curlew ${name}`));
    assert.is(what, `${of.summary}.`);
    assert.equal(
      help.split('\n').filter((line) => line.length > 80),
      [],
      name,
    );
    for (const [option] of parametersOf(command.of).options) assert.match(help, `--${option}`);
    assert.ok((command.examples ?? []).length > 0, `${name} has no examples`);
  }
});

test('the overview has eighty columns and one line a command, below the headline of its group', () => {
  const lines = overview().split('\n');
  assert.equal(
    lines.filter((line) => line.length > 80),
    [],
  );
  let headline = '';
  const seen = new Map<string, string>();
  for (const line of lines) {
    const [, name] = /^ {2}(\S+(?: \S+)?) {2}/.exec(line) ?? [];
    if (name !== undefined) seen.set(name, headline);
    else headline = line.replace(/:$/, '');
  }
  assert.equal(
    [...seen],
    [...COMMANDS].map(([name, { group }]) => [name, group]),
  );
  assert.ok(lines.length <= COMMANDS.size + 10, `${lines.length} lines`);
});

test.run();
