/** The page of compatibility says what is so: names, definitions and variables are looked up. */
import { execa } from 'execa';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FLAGS } from '../../scripts/docs/kurl-flags.ts';
import { FUNCTIONS } from '../../scripts/docs/kurl-functions.ts';
import { kurlPage } from '../../scripts/docs/kurl-page.ts';
import { rows, type Row } from '../../scripts/docs/kurl-rows.ts';
import { SETTINGS } from '../../scripts/docs/kurl-settings.ts';
import { VARIABLES } from '../../scripts/docs/kurl-variables.ts';
import { parseInstaller } from '../../src/installer/parse.ts';
import { shellVariables } from '../../src/installer/variables.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('docs/kurl-compatibility.md');
const ROOT = join(import.meta.dirname, '../..');
const functions = FUNCTIONS.flatMap(([, all]) => all);
const variables = VARIABLES.flatMap(([, all]) => all);

/** What a shell prints that has the library. */
async function withLibrary(script: string): Promise<readonly string[]> {
  const load = `for file in ${ROOT}/scripts/lib/*.sh; do source "$file"; done`;
  const { stdout } = await execa('bash', ['-c', `${load}\n${script}`], {
    extendEnv: false,
    env: { PATH: process.env['PATH'] },
  });
  return stdout.split('\n');
}

test('the page is what the tables make of it (npm run docs)', async () => {
  assert.is(await readFile(join(ROOT, 'docs/kurl-compatibility.md'), 'utf8'), kurlPage());
});

test('the tables are whole: 96 functions, 173 settings, each name once, each difference told', () => {
  assert.is(functions.length, 96);
  assert.is(SETTINGS.length, 173);
  const all: readonly (readonly Row[])[] = [functions, variables, SETTINGS, FLAGS];
  for (const table of all) {
    assert.is(new Set(table.map(({ name }) => name)).size, table.length);
    for (const { status, note, name } of table) assert.ok(status === 'same' || note !== '', name);
  }
});

test('every function of the table is defined', async () => {
  const defined = new Set(await withLibrary('compgen -A function'));
  assert.equal(
    functions.map(({ name }) => name).filter((name) => !defined.has(name)),
    [],
  );
});

test('what is absent ends with a clear message when it is called', async () => {
  for (const { name, status } of functions) {
    if (status !== 'absent') continue;
    const [said = ''] = await withLibrary(`kubectl() { return 0; }; (${name} a b c d e f) 2>&1; echo`);
    assert.match(said, /is not supported here/, name);
  }
});

/** A value that is fit for every field that is text. */
const valueOf = (field: string): string => (field === 's3Override' ? 'https://value.example/p.tar.gz' : 'value');

test('every setting fills its variable', async () => {
  const keys = [...new Set(SETTINGS.map(({ name }) => name.split('.')[0] ?? ''))];
  const spec = keys.map((key) => {
    const names = SETTINGS.filter(({ name }) => name.startsWith(`${key}.`)).map(({ name }) =>
      name.slice(key.length + 1),
    );
    return `  ${key}:\n${names.map((field) => `    ${field}: ${valueOf(field)}\n`).join('')}`;
  });
  const text = `apiVersion: cluster.kurl.sh/v1beta1\nkind: Installer\nmetadata: {name: all}\nspec:\n${spec.join('')}`;
  const { installer, diagnostics } = parseInstaller('spec.yaml', text);
  assert.ok(installer !== undefined, JSON.stringify(diagnostics));
  const made = new Map(shellVariables(installer, new Map()));
  const wrong = SETTINGS.filter(({ name, variable, status, note }) => {
    const value = made.get(variable);
    if (value === undefined) return true;
    // A remark tells that something else has a say in it.
    return status === 'same' && note === '' && value !== valueOf(name.slice(name.indexOf('.') + 1));
  });
  assert.equal(
    wrong.map(({ name, variable }) => `${name} ${variable}`),
    [],
  );
});

test('a table with a note of another form is refused', () => {
  let said = '';
  try {
    rows('a', { a: 'nearly the same' });
  } catch (error) {
    said = String(error);
  }
  assert.match(said, /a: nearly the same/);
});

test.run();
