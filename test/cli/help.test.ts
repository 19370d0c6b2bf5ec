import { COMMANDS } from '../../src/cli/commands.ts';
import { commandHelp, overview, wrap } from '../../src/cli/help.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/help');

test('text is broken between words, and a word that is too long stands alone', () => {
  assert.equal(wrap('one two  three\nfour', 9), ['one two', 'three', 'four']);
  assert.equal(wrap('a incomprehensibilities b', 5), ['a', 'incomprehensibilities', 'b']);
  assert.equal(wrap('', 5), []);
});

test('the help of every command fits into eighty columns and names each option', async () => {
  for (const [name, { summary, load }] of COMMANDS) {
    const command = await load();
    const help = commandHelp(command);
    assert.is(command.summary, summary);
    assert.match(help, new RegExp(`^Usage: curlew ${name}`));
    assert.equal(
      help.split('\n').filter((line) => line.length > 80),
      [],
      name,
    );
    for (const option of Object.keys(command.options)) assert.match(help, `--${option}`);
    assert.ok((command.examples ?? []).length > 0, `${name} has no examples`);
  }
});

test('the overview fits into eighty columns and a terminal, and names each command', () => {
  const lines = overview().split('\n');
  assert.equal(
    lines.filter((line) => line.length > 80),
    [],
  );
  assert.ok(lines.length <= 23, `${lines.length} lines`);
  for (const name of COMMANDS.keys())
    assert.ok(
      lines.some((line) => line.startsWith(`  ${name} `)),
      name,
    );
});

test.run();
