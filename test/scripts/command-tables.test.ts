/** The reference of all commands in docs/cli.md. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withCommands } from '../../scripts/docs/command-tables.ts';
import { REQUESTS } from '../../src/cli/requests.ts';
import { parametersOf } from '../../src/core/request.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('the tables of commands');
const PAGE = await readFile(join(import.meta.dirname, '../../docs/cli.md'), 'utf8');

test('the page has the tables as npm run docs makes them', () => {
  assert.is(withCommands(PAGE), PAGE, 'docs/cli.md is stale: npm run docs');
});

test('each command has a section that names all of its options, and former names of options are not in the page', () => {
  const sections = new Map(PAGE.split('\n### curlew ').map((part) => [part.split('\n', 1)[0] ?? '', part]));
  for (const of of REQUESTS) {
    const section = sections.get(of.name) ?? '';
    for (const [name, { formerly }] of parametersOf(of).options) {
      assert.match(section, new RegExp(`--${name}\\b`), `${of.name} --${name}`);
      if (formerly !== undefined) assert.not.match(section, new RegExp(`--${formerly}(?![\\w-])`));
    }
  }
});

test.run();
