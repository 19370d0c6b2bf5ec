/** Each page with commands is run by a test: on a machine of its own, or where its clusters, packages or checkouts are. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';

const test = suite('pages that are run');
const ROOT = join(import.meta.dirname, '../..');
const MACHINES = 'test/components/pages';

const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/addons.md': 'test/components/addons-page.test.ts',
  'docs/cluster.md': 'test/scripts/grid-pages.test.ts',
  'docs/clusters-as-data.md': 'test/scripts/grid-pages.test.ts',
  'docs/concepts.md': 'test/cli/concepts-page.test.ts',
  'docs/fleets.md': 'test/cli/fleets-page.test.ts',
  'docs/install.md': 'test/components/linux-packages.test.ts',
  'docs/library.md': 'test/components/library.test.ts',
  'docs/migrating.md': 'test/cli/migrating-page.test.ts',
};

async function textOf(path: string): Promise<string> {
  return readFile(join(ROOT, path), 'utf8');
}

/** Which of these pages have a block of shell. */
async function withCommands(pages: readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all(pages.map(textOf));
  return pages.filter((_, index) => /^```(?:sh|bash|console)$/m.test(texts[index] ?? ''));
}

test('a test runs each page that has commands, and says when one of its blocks is left', async () => {
  const docs = (await readdir(join(ROOT, 'docs'))).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`);
  const machines = await Promise.all(
    (await readdir(join(ROOT, MACHINES))).map(async (name) => textOf(`${MACHINES}/${name}`)),
  );
  const pages = await withCommands(['README.md', ...docs]);
  assert.ok(pages.length > 20, pages.join());
  const notRun: string[] = [];
  for (const page of pages) {
    const other = ELSEWHERE[page];
    const tests = other === undefined ? machines : [await textOf(other)];
    const its = tests.filter((text) => text.includes(page));
    const isWhole = other !== undefined || its.some((text) => /assert\.equal\(\s*machine\s*\.left\(\)/.test(text));
    if (its.length === 0 || !isWhole) notRun.push(page);
  }
  assert.equal(notRun, []);
});

test.run();
