/** What docs/operating.md names in its sentences: commands are understood, and every path is a real one. */
import { readFile } from 'node:fs/promises';
import { COMMANDS } from '../../src/cli/commands.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { BUNDLE_SCRIPTS, INSTALL_DIRECTORY, nodePath } from '../../src/core/layout.ts';
import { REQUEST_FILE } from '../../src/runtime/prepare/saved-request.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/operating-page');

const page = await readFile('docs/operating.md', 'utf8');
const inText = [...page.matchAll(/`((?:curlew|\.\/\w+\.sh) [^`]+)`/g)].map(([, line = '']) => line);

/** The arguments of curlew that a line stands for. */
function wordsOf(line: string): readonly string[] {
  const [first = '', ...rest] = line.split(/\s+/);
  if (first === 'curlew') return rest;
  const script = first.replace('./', '');
  assert.ok(BUNDLE_SCRIPTS.includes(script), `not a command of this page: ${line}`);
  return script === 'tasks.sh' ? rest : [script.replace('.sh', ''), '--dir', '.', ...rest];
}

for (const line of inText) {
  test(`it can be typed: ${line}`, async () => {
    const { name, args: words } = splitName(wordsOf(line));
    const row = COMMANDS.get(name);
    if (row === undefined) throw new Error(`no command ${name}`);
    const command = await row.load();
    // The name of a command alone stands for the command.
    if (words.length > 0) readArguments(command, words);
  });
}

test('every command of a node is on the page', () => {
  for (const [name, { group }] of COMMANDS) {
    if (group !== 'On a node') continue;
    assert.match(page, new RegExp(String.raw`(?:curlew|\./tasks\.sh) ${name}\b|\./${name}\.sh`));
  }
});

test('what is where: the paths are those that runs use', () => {
  const run = '<id>';
  const ref = { tree: 'addons', name: 'x', version: '1' } as const;
  const used = [
    `${nodePath.addon(ref).split('/')[0]}/`,
    `${nodePath.kustomize('x').split('/')[0]}/`,
    nodePath.records,
    `${nodePath.placed('x').split('/')[0]}/`,
    nodePath.journal(run),
    `${nodePath.run(run)}/${REQUEST_FILE}`,
    `${nodePath.previous(ref).split('/')[0]}/`,
    `${nodePath.fetched}/`,
    nodePath.lock,
  ];
  for (const path of used) assert.match(page, `\`${path}\``);
  assert.match(page, `\`${INSTALL_DIRECTORY}\``);
});

test('it is one page', () => {
  assert.ok(page.split('\n').length <= 110);
});

test.run();
