/** Which files of the checkout are pages of the site, in which order, and what links between them lead to. */
import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

export interface Page {
  /** Path of the Markdown file in the checkout. */
  readonly source: string;
  readonly text: string;
  readonly title: string;
  /** Path of the page in the site. */
  readonly url: string;
}

interface Group {
  readonly title: string;
  readonly pages: readonly Page[];
}

export interface Site {
  readonly pages: ReadonlyMap<string, Page>;
  /** Other files that pages link to. */
  readonly files: ReadonlySet<string>;
  /** Navigation: the lists in the README of docs, which are the only declaration of the order. */
  readonly groups: readonly Group[];
}

/** Relative links and images: path, then anchor. */
const LINK = /\]\((?!\w+:)([^)#\s]*)(?:#[^)\s]+)?\)/g;

/** The anchor that GitHub gives to a heading. */
export function anchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** Path of the page that a Markdown file becomes. */
function urlOf(source: string): string {
  return source.replace(/(^|\/)README\.md$/, '$1index.md').replace(/md$/, 'html');
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  return found.isFile() ? 'file' : 'folder';
}

const LISTS = 'docs/README.md';

/** What a link leads to: a file, the README of a folder, or undefined for a folder without one. Throws if nothing is there. */
async function targetOf(checkout: string, page: string, path: string): Promise<string | undefined> {
  const target = join(dirname(page), path).replace(/\/$/, '');
  const kind = await kindOf(join(checkout, target));
  if (kind === undefined) throw new Error(`${page}: the link ${path} leads nowhere`);
  if (kind === 'file') return target;
  const readme = join(target, 'README.md');
  return (await kindOf(join(checkout, readme))) === undefined ? undefined : readme;
}

/** Reads the README and all that it and its pages link to. */
export async function readSite(checkout: string): Promise<Site> {
  const pages = new Map<string, Page>();
  const files = new Set<string>();
  const waiting = ['README.md'];
  for (let source = waiting.pop(); source !== undefined; source = waiting.pop()) {
    if (pages.has(source) || files.has(source)) continue;
    if (!source.endsWith('.md')) {
      files.add(source);
      continue;
    }
    const text = await readFile(join(checkout, source), 'utf8');
    const title = /^# (.*)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? source;
    pages.set(source, { source, text, title, url: urlOf(source) });
    const prose = text.replaceAll(/^```.*?^```|`[^`\n]+`/gms, '');
    for (const [, path = ''] of prose.matchAll(LINK)) {
      const target = path === '' ? undefined : await targetOf(checkout, source, path);
      if (target !== undefined) waiting.push(target);
    }
  }
  return { pages, files, groups: await groupsOf(checkout, pages) };
}

async function groupsOf(checkout: string, pages: ReadonlyMap<string, Page>): Promise<readonly Group[]> {
  const groups: Group[] = [];
  for (const part of pages.get(LISTS)?.text.split(/^## /m).slice(1) ?? []) {
    const [title = ''] = part.split('\n', 1);
    const found: Page[] = [];
    for (const [, path = ''] of part.matchAll(/^- \[[^\]]*\]\(([^)#]+)\)/gm)) {
      const page = pages.get((await targetOf(checkout, LISTS, path)) ?? '');
      if (page !== undefined) found.push(page);
    }
    groups.push({ title, pages: found });
  }
  return groups;
}

/** Where a link of a page leads in the site; undefined if the site does not have it. The anchor stays. */
export function linkIn(site: Site, page: Page, href: string): string | undefined {
  const [path = '', fragment] = href.split('#', 2);
  const suffix = fragment === undefined ? '' : `#${fragment}`;
  if (path === '' || /^\w+:/.test(href)) return href;
  const target = join(dirname(page.source), path).replace(/\/$/, '');
  const found = site.pages.get(target) ?? site.pages.get(join(target, 'README.md'));
  const to = found?.url ?? (site.files.has(target) ? target : undefined);
  return to === undefined ? undefined : rootOf(page) + to + suffix;
}

/** From a page to the root of the site: empty, or `../` for each folder. */
export function rootOf({ url }: Pick<Page, 'url'>): string {
  return '../'.repeat(url.split('/').length - 1);
}
