import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { COMMANDS, commandOf } from '../../src/cli/commands.ts';
import { SUMMARIES } from '../../src/cli/names.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { commandHelp, helpAbout } from '../../src/cli/help.ts';
import { commandList, overview } from '../../src/cli/overview.ts';
import { fitted, screen, wrap } from '../../src/cli/render/columns.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { MAIN } from '../support/compiled.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/help');

test('text is broken between words, and a word that is too long stands alone', () => {
  assert.equal(wrap('one two  three\nfour', 9), ['one two', 'three', 'four']);
  assert.equal(wrap('a incomprehensibilities b', 5), ['a', 'incomprehensibilities', 'b']);
  assert.equal(wrap('', 5), []);
});

test('each command has a summary and a request, in the order of the table', () => {
  assert.equal(Object.keys(SUMMARIES), [...COMMANDS.keys()]);
  assert.equal(
    REQUESTS.map(({ name }) => name),
    [...COMMANDS.keys()],
  );
});

test('the help of every command fits into eighty columns and names each option', async () => {
  for (const [name, { summary, load }] of COMMANDS) {
    const command = await load();
    const help = commandHelp(command);
    const [usage = '', what] = help.split('\n\n');
    assert.match(usage, new RegExp(`^Usage: curlew ${name}`));
    assert.is(what, `${summary}.`);
    assert.equal(
      help.split('\n').filter((line) => line.length > 80),
      [],
      name,
    );
    for (const [option] of parametersOf(command.of).options) assert.match(help, `--${option}`);
    assert.ok((command.examples ?? []).length > 0, `${name} has no examples`);
  }
});

test('options that are commands stay options in front of the name of a command', async () => {
  const run = async (...words: readonly string[]) => execa(process.execPath, [MAIN, ...words], { reject: false });
  const expected = await run('fleet', 'plan', '--help');
  for (const option of ['--help', '-h']) {
    const { exitCode, stdout } = await run(option, 'fleet', 'plan');
    assert.equal([exitCode, stdout], [0, expected.stdout]);
  }
  const { stderr } = await run('--version', '1.2.0', 'new', '../a');
  assert.match(stderr, /\.\.\/a/);
});

function wide(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.length > 80);
}

test('the list of commands has eighty columns and one line a command, below the headline of its group', () => {
  const list = commandList();
  assert.equal(wide(list), []);
  let headline = '';
  const seen = new Map<string, string>();
  for (const line of list.split('\n')) {
    const [, name] = /^ {2}(\S+(?: \S+)?) {2}/.exec(line) ?? [];
    if (name !== undefined) seen.set(name, headline);
    else headline = line.replace(/:$/, '');
  }
  assert.equal(
    [...seen],
    [...COMMANDS].map(([name, { group }]) => [name, group]),
  );
});

test('on a node, the list of commands has only those for nodes', () => {
  const list = commandList(false);
  for (const name of ['new', 'publish', 'serve', 'bundle']) assert.not.match(list, new RegExp(`^ {2}${name} `, 'm'));
  for (const name of ['install', 'inventory', 'cluster apply']) assert.match(list, new RegExp(`^ {2}${name} `, 'm'));
});

test('the overview fits on one screen, and has the first word of every command', () => {
  const text = overview();
  assert.equal(wide(text), []);
  assert.ok(text.split('\n').length <= 24, text);
  const words = new Set(text.split(/\s+/));
  for (const name of COMMANDS.keys()) assert.ok(words.has(name.replace(/ .*/, '')), name);
});

test('the overview of the executable for nodes begins with what a node needs, and names no pages', () => {
  const text = overview(false);
  assert.match(text, /Start here:\n {2}install .*\n {2}status /);
  assert.not.match(text, /help pages|\n {2}new /);
  const words = new Set(text.split(/\s+/));
  for (const name of ['build', 'publish', 'bundle']) assert.not(words.has(name), name);
  for (const name of ['uninstall', 'verify', 'join-parts', 'cluster']) assert.ok(words.has(name), name);
});

for (const [topic, expected] of [
  [['commands'], /^Add-ons:\n {2}new +Create/],
  [['pages'], /^Pages:[^]*\n {2}releases +Stores and releases\n/],
  [['releases'], /^# Stores and releases/],
  [['installer'], /^Usage: curlew installer COMMAND/],
  [['installer.md'], /^# The installer spec/],
  [['channel', 'plan'], /^Usage: curlew channel plan /],
  [['channel plan'], /^Usage: curlew channel plan /],
] as const) {
  test(`help has something about ${topic.join(' ')}`, async () => {
    assert.match(await helpAbout(topic), expected);
  });
}

test('on a narrow terminal, the help of every command has no word that is broken at its edge', async () => {
  const before = { ...screen };
  try {
    Object.assign(screen, { columns: 40, isTerminal: true });
    for (const { load } of COMMANDS.values()) {
      const lines = fitted(commandHelp(await load()), 40).split('\n');
      const broken = lines.filter((line) => line.length > 40 && line.trim().length <= 30);
      assert.equal(broken, []);
    }
    const help = commandHelp(await commandOf('install'));
    assert.match(help, /^ {6}--prune\n {10}remove add-ons that are no\n {10}longer in the spec, like\n/m);
  } finally {
    Object.assign(screen, before);
  }
});

test('the README of a package begins with commands that its reader has', async () => {
  const readme = await readFile(`${import.meta.dirname}/../../README.md`, 'utf8');
  const [, block = ''] = /```sh\n([^]*?)```/.exec(readme) ?? [];
  const commands = [...block.matchAll(/^(\S+) (\S+)(?: (\S+))?/gm)];
  assert.ok(commands.length > 0);
  for (const [line, program, name = '', topic] of commands) {
    assert.is(program, 'curlew', line);
    const { of } = await commandOf(name);
    if (of.name === 'help') assert.match(await helpAbout([topic ?? '']), /^# /);
  }
});

test('help about what does not exist is refused, as is help about two commands', async () => {
  for (const [topic, message] of [
    [['biuld'], /unknown command "biuld"/],
    [['../README'], /unknown command "..\/README"/],
    [['trails'], /unknown command or page "trails"/],
    [['build', 'lint'], /unexpected argument "lint"/],
  ] as const) {
    await assert.rejectsWith(helpAbout(topic), 'USAGE', message);
  }
});

test('options of a command may precede its name, but nothing else', () => {
  for (const [line, name, args] of [
    ['--json lint x', 'lint', '--json x'],
    ['-q --from=x versions y', 'versions', '-q --from=x y'],
    ['--root reset status', 'status', '--root reset'],
    ['--quiet channel plan c', 'channel plan', '--quiet c'],
    ['--fix build', '--fix', 'build'],
    ['x lint', 'x', 'lint'],
    ['-- lint', '--', 'lint'],
  ] as const) {
    const found = splitName(line.split(' '));
    assert.equal([found.name, found.args.join(' ')], [name, args], line);
  }
});

test('help and completion start without the cryptography of Node, which they do not need', async () => {
  const report = `process.on('exit', () => process.stderr.write(String(process.moduleLoadList.includes('NativeModule crypto'))))`;
  const preload = `data:text/javascript,${encodeURIComponent(report)}`;
  for (const words of [['--help'], ['build', '--help'], ['__complete', 'bu']]) {
    const { stdout, stderr } = await execa(process.execPath, ['--import', preload, MAIN, ...words]);
    assert.equal([stderr, stdout.includes('build')], ['false', true], words.join(' '));
  }
});

test.run();
