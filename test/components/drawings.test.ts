/** The drawings of the documentation are those that their texts and the commands of a page make, and need nothing from elsewhere. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { drawing } from '../../scripts/docs/drawings.ts';
import { comparable, drawTerminal, shownLines, terminalSvg } from '../../scripts/docs/terminal.ts';
import * as assert from '../support/assert.ts';
import { BUILT_MAIN } from '../support/built.ts';
import { unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { cannotRun } from './support/programs.ts';
import { noSandbox } from './support/sandbox.ts';

const test = suite('drawings', { timeoutMs: 180_000 });
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
  const docs = (await readdir(join(CHECKOUT, 'docs'))).filter((name) => name.endsWith('.md'));
  const pages = await Promise.all(
    ['README.md', ...docs.map((name) => `docs/${name}`)].map(async (page) => readFile(join(CHECKOUT, page), 'utf8')),
  );
  const shown = pages.flatMap((page) => [...page.matchAll(/!\[([^\]]*)\]\((?:docs\/)?drawings\/(\S+)\)/g)]);
  for (const [, text = '', name] of shown) assert.ok(text.length > 40, `${name}: ${text}`);
  assert.equal(new Set(shown.map(([, , name]) => name)), new Set(files.filter((name) => name.endsWith('.svg'))));
});

unless((await noSandbox()) ?? cannotRun('script', 'stty'), test)(
  'the picture of the terminal shows what the commands of docs/addons.md print',
  async () => {
    const svg = await readFile(join(FOLDER, 'terminal.svg'), 'utf8');
    const now = await drawTerminal(CHECKOUT, BUILT_MAIN);
    assert.is(comparable(now), comparable(svg), 'terminal.svg is stale: npm run build && npm run drawings');
  },
);

test('a terminal shows only the last state of lines that are written again, in their colors', () => {
  const lines = shownLines(
    'a\r\n\u001b[?25lone\r\n\u001b[2K\u001b[1A\u001b[2K\u001b[G\u001b[32m✓\u001b[39m <two>\r\n\u001b[?25h\r\n',
  );
  assert.equal(lines, ['a', '\u001b[32m✓\u001b[39m <two>']);
  const svg = terminalSvg(['$ x', ...lines]);
  assert.match(svg, '<text x="16" y="30.25" class="command">$ x</text>');
  assert.match(svg, '<tspan class="c32">✓</tspan> &lt;two&gt;</text>');
});

test.run();
