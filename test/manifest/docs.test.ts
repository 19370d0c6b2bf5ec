import { readFile } from 'node:fs/promises';
import { manifestPage } from '../../scripts/docs/manifest-page.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('manifest/docs');

test('docs/manifest.md is what the tables make of it (npm run docs)', async () => {
  assert.is(await readFile('docs/manifest.md', 'utf8'), manifestPage());
});

test.run();
