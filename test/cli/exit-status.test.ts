import { readFile } from 'node:fs/promises';
import { ERROR_CODES } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/exit-status');

test('docs/cli.md names every code with its exit status', async () => {
  const text = await readFile(new URL('../../docs/cli.md', import.meta.url), 'utf8');
  for (const [code, status] of Object.entries(ERROR_CODES)) assert.match(text, `| ${status} | \`${code}\` |`);
});

test.run();
