/** Commands that write a file: that it exists already is said before anything is read, asked or computed. */
import { readFile } from 'node:fs/promises';
import { commandOf } from '../../src/cli/commands.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { runCommand } from '../support/run-command.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('cli/existing-output');

/** All other files are missing. */
const COMMANDS: readonly (readonly [name: string, ...args: readonly string[]])[] = [
  ['sbom', 'none.tar.gz', '-o', 'mine'],
  ['provenance', 'none.tar.gz', '--builder', 'https://ci.example', '-o', 'mine'],
  ['inventory', 'none', '-o', 'mine'],
  ['apply', 'none.delta', '--base', 'none', '-o', 'mine'],
  ['cluster plan', 'none.yaml', '--out', 'mine'],
  ['cluster adopt', '--kubeconfig', 'none', '--out', 'mine'],
  ['etcd snapshot', 'mine'],
];

test('a file that exists is named before the costly work, with --force where the command has it', async () => {
  await using box = await tree({ mine: 'mine' });
  for (const [name, ...args] of COMMANDS) {
    const { exitCode, stderr } = await runCommand([...name.split(' '), ...args], box.path);
    assert.is(exitCode, 24, `${name}: ${stderr}`);
    const { of } = await commandOf(name);
    const hasForce = parametersOf(of).options.some(([option]) => option === 'force');
    const hint = hasForce ? 'or replace it with --force' : 'or delete it';
    assert.ok(
      stderr.endsWith(`cannot write ${box.at('mine')}: the file already exists\n  hint: specify another file, ${hint}`),
      stderr,
    );
    assert.is(await readFile(box.at('mine'), 'utf8'), 'mine');
  }
});

test.run();
