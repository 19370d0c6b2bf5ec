/** The page of other projects' suites is what the table makes of it, and each suite has a test that compares. */
import { readFile } from 'node:fs/promises';
import { execa } from 'execa';
import { proofPage, SUITES } from '../../scripts/docs/proof-page.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('docs/proof.md');

test('the page is what npm run docs makes of the table', async () => {
  assert.is(await readFile('docs/proof.md', 'utf8'), proofPage(), 'docs/proof.md is stale: npm run docs');
});

test('the test of each suite compares what it said with the table', async () => {
  for (const [name, { test: path }] of Object.entries(SUITES)) {
    assert.match(await readFile(path, 'utf8'), new RegExp(String.raw`assertSays\(\s*'${name}'`));
  }
});

test('scripts/proof names the suites that it has when it does not know one', async () => {
  const { exitCode, stderr } = await execa('scripts/proof', ['none'], { reject: false });
  assert.is(exitCode, 64);
  assert.is(stderr, `error: none is no suite: use ${Object.keys(SUITES).join(', ')}`);
});

test.run();
