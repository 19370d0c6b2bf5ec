/** The site of the documentation as npm run site builds it: complete, linked, and searchable without a server. */
import { execa } from 'execa';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import { readSite } from '../../scripts/site/pages.ts';
import * as assert from '../support/assert.ts';
import { missing, unless } from '../support/needs.ts';
import { suite } from '../support/suite.ts';
import { tree, type Tree } from '../support/tree.ts';
import { AXE, axeViolations, startBrowser } from './support/browser.ts';

const test = suite('components/site', { timeoutMs: 600_000 });
const CHECKOUT = join(import.meta.dirname, '../..');
let box: Tree;

test.before(async () => {
  box = await tree();
  await execa(process.execPath, ['--import', 'tsx', 'scripts/site.ts', box.at('site')], { cwd: CHECKOUT });
});
test.after(async () => box[Symbol.asyncDispose]());

test('each page of the documentation is in the lists of its README, and so in the navigation', async () => {
  const { groups } = await readSite(CHECKOUT);
  const listed = groups.flatMap(({ pages }) => pages.map(({ source }) => source));
  assert.is(new Set(listed).size, listed.length);
  for (const file of await readdir(join(CHECKOUT, 'docs')))
    if (file.endsWith('.md') && file !== 'README.md')
      assert.ok(listed.includes(`docs/${file}`), `docs/README.md lists no ${file}`);
});

test('a page has its navigation and drawings, and needs nothing from elsewhere', async () => {
  const page = await readFile(box.at('site/docs/concepts.html'), 'utf8');
  assert.match(page, '<a href="../docs/concepts.html" aria-current="page">Concepts</a>');
  assert.match(page, '<img src="drawings/hooks.svg"');
  assert.match(await readFile(box.at('site/docs/drawings/hooks.svg'), 'utf8'), '<svg');
  const own = [...page.matchAll(/<(?:script|link|img)[^>]* (?:src|href)="([^"]*)"/g)].map(
    ([, address = '']) => address,
  );
  for (const address of own) assert.not.match(address, /^\w+:|^\//);
  assert.is(own.length, 8);
});

test('a link whose text is the path of a page has its title', async () => {
  assert.match(
    await readFile(box.at('site/docs/errors.html'), 'utf8'),
    '<a href="../docs/cli.html#exit-status">The command line</a>',
  );
});

test('wide text and tables scroll by keys, and no header of a table is empty', async () => {
  for (const name of ['cli', 'benchmarks', 'signing']) {
    const page = await readFile(box.at(`site/docs/${name}.html`), 'utf8');
    assert.not.match(page, /<(?:pre|table)>|<th[^>]*><\/th>/);
    assert.match(page, /<(?:pre|table) tabindex="0">/);
  }
});

test('text in braces stays as it is in the source', async () => {
  assert.match(await readFile(box.at('site/docs/preflights.html'), 'utf8'), '<code>{{kurl</code>');
});

test('the index of the search finds sections by their titles and text', async () => {
  const found: unknown = runInNewContext(
    `${await readFile(box.at('site/minisearch.js'), 'utf8')};
${await readFile(box.at('site/search-index.js'), 'utf8')};
const index = MiniSearch.loadJS(SEARCH_INDEX, SEARCH_OPTIONS);
JSON.stringify(['roll back', 'HOOK_FAILED'].map((query) => index.search(query)[0].url))`,
    { console },
  );
  assert.equal(JSON.parse(String(found)), [
    'docs/removing.html#rolling-back-and-removing',
    'docs/errors.html#hook_failed',
  ]);
});

unless(missing('chromium'), test)('a browser searches the pages where they are, as files', async () => {
  const flags = ['--headless', '--no-sandbox', '--disable-gpu', `--user-data-dir=${box.at('browser')}`, '--dump-dom'];
  const { stdout } = await execa('chromium', [...flags, `file://${box.at('site/docs/cli.html')}?q=rollback`]);
  assert.match(stdout, /\d+ found: rollback/);
  assert.match(stdout, '<a href="../docs/removing.html#');
});

unless(missing('chromium', AXE), test)('axe finds nothing on any page, in light and dark', async () => {
  await using browser = await startBrowser(box.at('browser-axe'));
  const { groups } = await readSite(CHECKOUT);
  const addresses = groups.flatMap(({ pages }) => pages.map(({ url }) => url));
  assert.ok(addresses.length > 30);
  for (const address of addresses) {
    await browser.open(`file://${box.at('site', address)}`);
    for (const scheme of ['light', 'dark']) {
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
      assert.equal(await axeViolations(browser), [], `${address} ${scheme}`);
    }
  }
});

test.run();
