/** Links and paths in the documentation lead to files and headings, and each decision that is mentioned has a record. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { execa } from 'execa';
import { parse } from 'yaml';
import { anchor } from '../../scripts/site/pages.ts';
import { helpAbout } from '../../src/cli/help.ts';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('links of the documentation');
const ROOT = join(import.meta.dirname, '../..');
const ROOTS = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'addons',
  'docs',
  'packages',
  'scripts',
  'src',
  'test',
];
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

interface Link {
  readonly page: string;
  readonly link: string;
  /** Path of the file or folder that it leads to. */
  readonly target: string;
  readonly heading: string | undefined;
}

/** The relative links of pages. */
function linksOf(texts: ReadonlyMap<string, string>): readonly Link[] {
  return [...texts].flatMap(([page, text]) => {
    if (!page.endsWith('.md')) return [];
    const prose = text.replaceAll(/^```.*?^```|`[^`\n]+`/gms, '');
    const links = prose.matchAll(/\]\((?!\w+:)(([^)#\s]*)(?:#([^)\s]+))?)\)/g);
    return [...links].map(([, link = '', path = '', heading]): Link => {
      return { page, link, target: path === '' ? page : join(dirname(page), path), heading };
    });
  });
}

/** One line for each relative link of a page that leads nowhere. */
async function brokenLinks(root: string, texts: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const { page, link, target, heading } of linksOf(texts)) {
    const isThere = await stat(join(root, target)).then(Boolean, () => false);
    const text = texts.get(target);
    const isHeading = heading === undefined || (text !== undefined && anchorsOf(text).has(heading));
    if (!isThere || !isHeading) broken.push(`${page}: ${link}`);
  }
  return broken;
}

/** One line for each relative link of a page among these files that leads to none of them, and to no folder of them. */
function linksOut(files: readonly string[], texts: ReadonlyMap<string, string>): readonly string[] {
  const there = new Set(files.flatMap((file) => [file, ...parentsOf(file)]));
  const pages = new Map([...texts].filter(([name]) => there.has(name)));
  return linksOf(pages).flatMap(({ page, link, target }) =>
    there.has(target.replace(/\/$/, '')) ? [] : [`${page}: ${link}`],
  );
}

function parentsOf(file: string): readonly string[] {
  const parts = file.split('/');
  return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join('/'));
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

/** One line for each page or topic of `curlew help` that a message or a help text of the source names and that does not exist. */
async function unknownTopics(root: string, texts: ReadonlyMap<string, string>): Promise<readonly string[]> {
  const unknown: string[] = [];
  for (const [name, text] of texts) {
    if (!/^(?:src|scripts)\/.*\.(?:ts|sh|bash)$/.test(name)) continue;
    const messages = text.replaceAll(/^\s*(?:\/?\*|\/\/|#).*$/gm, '');
    for (const [path] of messages.matchAll(/\bdocs\/[\w/-]+\.md\b/g)) {
      const isThere = await stat(join(root, path)).then(Boolean, () => false);
      if (!isThere) unknown.push(`${name}: ${path}`);
    }
    for (const [named, topic = ''] of messages.matchAll(/\bcurlew help ([a-z][\w-]*(?:\.md)?)(?![\w$])/g)) {
      const isTopic = await helpAbout([topic]).then(Boolean, () => false);
      if (!isTopic) unknown.push(`${name}: ${named}`);
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

/** What a checkout is packed into, as npm does it. */
async function npmFiles(): Promise<readonly string[]> {
  await using box = await tree();
  const env = { NPM_CONFIG_CACHE: box.at('npm'), NPM_CONFIG_OFFLINE: 'true' };
  const words = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await execa('npm', words, { cwd: ROOT, env });
  const [first] = JSON.parse(stdout) as readonly { readonly files: readonly { readonly path: string }[] }[];
  const files = first?.files.map(({ path }) => path) ?? [];
  assert.ok(files.includes('docs/install.md'), stdout);
  return files;
}

const packed = await npmFiles();

test('each link of a page in the npm package leads to something in the package', () => {
  assert.equal(linksOut(packed, texts), []);
});

test('each link of a page in /usr/share/doc of the deb and the rpm leads to something there', async () => {
  const recipe = parse(await readFile(join(ROOT, 'scripts/linux-packages/nfpm.yaml'), 'utf8')) as {
    readonly contents: readonly { readonly type?: string; readonly src: string; readonly dst: string }[];
  };
  const links = recipe.contents.filter(({ type }) => type === 'symlink');
  const shown = links.map(({ src, dst }) => {
    const name = relative('/usr/share/doc/curlew', dst);
    assert.is(join(dirname(dst), src), join('/usr/lib/curlew', name), 'a link has the name of what it leads to');
    return name;
  });
  const files = packed.filter((file) => [file, ...parentsOf(file)].some((path) => shown.includes(path)));
  for (const page of ['README.md', 'CHANGELOG.md', 'docs/install.md']) assert.ok(files.includes(page), page);
  assert.equal(linksOut(files, texts), []);
});

test('each file and folder of the source that a page names exists', async () => {
  assert.equal(await unknownPaths(ROOT, texts), []);
});

test('each page and topic of help that a message names exists', async () => {
  assert.equal(await unknownTopics(ROOT, texts), []);
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
    'src/z.ts':
      "// docs/c.md\nconst hints = ['docs/a.md', 'docs/d.md', 'curlew help install.md', 'curlew help nothing'];\n",
  });
  const found = await textsBelow(box.path, ['docs', 'src']);
  assert.equal(await brokenLinks(box.path, found), ['docs/a.md: b.md', 'docs/a.md: #b']);
  assert.equal(linksOut(['docs/a.md', 'src/y.ts'], found), ['docs/a.md: b.md', 'docs/a.md: ../src/x.ts']);
  assert.equal(await unknownPaths(box.path, found), ['docs/a.md: src/y.ts']);
  assert.equal(await unknownTopics(box.path, found), ['src/z.ts: docs/d.md', 'src/z.ts: curlew help nothing']);
  assert.equal(unknownDecisions(found), [`src/x.ts: ${MISSING}`]);
});

test.run();
