/** The drawings of the documentation are those that their texts make, and need nothing from elsewhere. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawing } from '../../scripts/docs/drawings.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('drawings');
const CHECKOUT = join(import.meta.dirname, '../..');
const FOLDER = join(CHECKOUT, 'docs/drawings');
const files = await readdir(FOLDER);
const draw = await drawing(CHECKOUT);

for (const file of files.filter((name) => name.endsWith('.dot'))) {
  const name = file.replace(/dot$/, 'svg');
  test(`${name} is what npm run drawings makes of ${file}`, async () => {
    const svg = await readFile(join(FOLDER, name), 'utf8');
    assert.is(draw(await readFile(join(FOLDER, file), 'utf8')), svg, `${name} is stale: npm run drawings`);
    assert.match(svg, /prefers-color-scheme: dark/);
    // Only the names of the SVG formats are addresses; fonts are the reader's.
    assert.equal(
      [...svg.matchAll(/https?:[^"]*/g)].filter(([url]) => !url.startsWith('http://www.w3.org/')),
      [],
    );
    assert.not.match(svg, /font-family="|<script|<title/);
  });
}

test('each drawing is on a page, with a text for readers who do not see it', async () => {
  const pages = await Promise.all(
    ['README.md', 'docs/concepts.md'].map(async (page) => readFile(join(CHECKOUT, page), 'utf8')),
  );
  const shown = pages.flatMap((page) => [...page.matchAll(/!\[([^\]]*)\]\((?:docs\/)?drawings\/(\S+)\)/g)]);
  for (const [, text = '', name] of shown) assert.ok(text.length > 40, `${name}: ${text}`);
  assert.equal(new Set(shown.map(([, , name]) => name)), new Set(files.filter((name) => name.endsWith('.svg'))));
});

test.run();
