/** docs/errors.md and `curlew help CODE` have what the table of codes says. */
import { readFile } from 'node:fs/promises';
import { errorsPage } from '../../scripts/docs/errors-page.ts';
import { helpAbout } from '../../src/cli/help.ts';
import { ERRORS } from '../../src/core/errors.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('cli/errors-page');

test('the page is what npm run docs makes of the table', async () => {
  assert.is(await readFile('docs/errors.md', 'utf8'), errorsPage(), 'docs/errors.md is stale: npm run docs');
});

test('help shows status, cause and cure of each code, in lower case, too', async () => {
  for (const [code, { status }] of Object.entries(ERRORS)) {
    const text = await helpAbout([code]);
    assert.match(text, `${code}: exit status ${status}`);
    // The page of this name is listed.
    const lower = await helpAbout([code.toLowerCase()]);
    if (code === 'USAGE') assert.match(lower, '# Using curlew');
    else assert.is(lower, text);
    for (const line of text.split('\n')) assert.ok(line.length <= 80, line);
  }
});

test('no two codes have the same exit status, and none has one of the shell or of a result', () => {
  const statuses = Object.values(ERRORS).map(({ status }) => status);
  assert.is(new Set(statuses).size, statuses.length);
  for (const status of [0, 1, 2, 126, 127]) assert.not.ok((statuses as readonly number[]).includes(status));
});

test('each cause and cure is whole sentences', () => {
  for (const [code, { cause, cure }] of Object.entries(ERRORS))
    for (const text of [cause, cure]) assert.match(text, /^[A-Z`-].*\.$/, code);
});

test.run();
