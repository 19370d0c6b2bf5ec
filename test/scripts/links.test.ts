/** Links and paths in the documentation lead to files and headings, and each decision that is mentioned has a record. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { anchor } from '../../scripts/site/pages.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('links of the documentation');
const ROOT = join(import.meta.dirname, '../..');
const ROOTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'addons', 'docs', 'packages', 'scripts', 'src', 'test'];
const RECORDS = 'docs/decisions';
/** Binary fixtures, and pages of other projects. */
const SKIPPED = /(?:^|\/)(?:node_modules|fixtures)\//;

async function textsBelow(root: string, paths: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const path of paths) {
    const below = await readdir(join(root, path), { recursive: true, withFileTypes: true }).catch(() => undefined);
    const files = below?.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)) ?? [
      join(root, path),
    ];
    for (const file of files) {
      const name = file.slice(root.length + 1);
      if (!SKIPPED.test(name)) texts.set(name, await readFile(file, 'utf8'));
    }
  }
  return texts;
}

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = page.replaceAll(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm);
  return new Set([...headings].map(([, title = '']) => anchor(title)));
}

/** One line for each relative link of a page that leads nowhere. */
async function brokenLinks(root: string, texts: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [name, text] of texts) {
    if (!name.endsWith('.md')) continue;
    const prose = text.replaceAll(/^```.*?^```|`[^`\n]+`/gms, '');
    for (const [, link = '', path = '', anchor] of prose.matchAll(/\]\((?!\w+:)(([^)#\s]*)(?:#([^)\s]+))?)\)/g)) {
      const target = path === '' ? name : join(dirname(name), path);
      const isThere = await stat(join(root, target)).then(Boolean, () => false);
      const page = texts.get(target);
      const isHeading = anchor === undefined || (page !== undefined && anchorsOf(page).has(anchor));
      if (!isThere || !isHeading) broken.push(`${name}: ${link}`);
    }
  }
  return broken;
}

/** One line for each path of the source in a page that does not exist; a change log names those of its day. */
async function unknownPaths(root: string, texts: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const unknown: string[] = [];
  for (const [name, text] of texts) {
    if (!name.endsWith('.md') || name === 'CHANGELOG.md') continue;
    for (const [, path = ''] of text.matchAll(/`((?:src|scripts|test)\/[\w./-]+)`/g)) {
      const isThere = await stat(join(root, path)).then(Boolean, () => false);
      if (!isThere) unknown.push(`${name}: ${path}`);
    }
  }
  return unknown;
}

/** One line for each mention of a decision that has no record. */
function unknownDecisions(texts: ReadonlyMap<string, string>): readonly string[] {
  const known = new Set([...texts.keys()].map((name) => Number(/decisions\/(\d{4})-/.exec(name)?.[1])));
  return [...texts].flatMap(([name, text]) =>
    [...text.matchAll(/\bdecisions? (\d{1,4})\b/gi)]
      .filter(([, number]) => !known.has(Number(number)))
      .map(([mention]) => `${name}: ${mention}`),
  );
}

const texts = await textsBelow(ROOT, ROOTS);

test('each link of a page leads to a file, and to a heading if it names one', async () => {
  assert.equal(await brokenLinks(ROOT, texts), []);
});

test('each file and folder of the source that a page names exists', async () => {
  assert.equal(await unknownPaths(ROOT, texts), []);
});

test('each decision that a page, a script or the source mentions has a record', () => {
  assert.equal(unknownDecisions(texts), []);
});

test('the index of decisions has the number and title of each record', () => {
  const index = texts.get(`${RECORDS}/README.md`) ?? '';
  const listed = [...index.matchAll(/^\| (\d+) \| \[(.*?)\]\((.*?)\) \|/gm)].map((row) => row.slice(1, 4).join(' '));
  const records = [...texts].flatMap(([name, text]) => {
    const [, file = '', number = ''] = /decisions\/((\d{4})-.*\.md)$/.exec(name) ?? [];
    const [, heading, title = ''] = /^# (\d+)\. (.*)\n/.exec(text) ?? [];
    if (file === '' || Number(number) === 0) return [];
    assert.is(heading, String(Number(number)), name);
    return [`${heading} ${title} ${file}`];
  });
  assert.equal(listed.toSorted(), records.toSorted());
});

/** Not written out, because this file is checked, too. */
const MISSING = ['decision', 8].join(' ');

test('broken links, missing headings, files and decisions are named by their page', async () => {
  await using box = await tree({
    'docs/a.md':
      '# A page, here\n\n[a](b.md) [b](#a-page-here) [c](#b) [d](../src/x.ts) `[e](f.md)` [g](https://h.example/) `src/y.ts` `src/x.ts`\n',
    'docs/decisions/0001-one.md': '# 1. One\n',
    'src/x.ts': `// Decision 1, and ${MISSING}.\n`,
  });
  const found = await textsBelow(box.path, ['docs', 'src']);
  assert.equal(await brokenLinks(box.path, found), ['docs/a.md: b.md', 'docs/a.md: #b']);
  assert.equal(await unknownPaths(box.path, found), ['docs/a.md: src/y.ts']);
  assert.equal(unknownDecisions(found), [`src/x.ts: ${MISSING}`]);
});

test.run();
