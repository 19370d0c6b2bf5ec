/** The site of the documentation, by Eleventy: pages with navigation, an index for the search, and checked links. */
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { anchor, linkIn, readSite, rootOf, type Page, type Site } from './pages.ts';

/** What Eleventy and its Markdown parser, which bring no types, are used for. */
interface Token {
  type: string;
  content: string;
  nesting: number;
  readonly children: readonly Token[] | null;
  readonly attrGet: (name: string) => string | null;
  readonly attrSet: (name: string, value: string) => void;
}
interface Markdown {
  readonly core: {
    readonly ruler: {
      readonly push: (
        name: string,
        rule: (state: { readonly tokens: readonly Token[]; readonly env: Data }) => void,
      ) => void;
    };
  };
}
interface Config {
  readonly addTransform: (name: string, transform: (html: string) => string) => void;
  readonly addTemplate: (path: string, text: string, data: Data) => void;
  readonly amendLibrary: (name: string, change: (markdown: Markdown) => void) => void;
  readonly setUseGitIgnore: (use: boolean) => void;
}
type Eleventy = new (
  input: string,
  output: string,
  options: { readonly quietMode: boolean; readonly configPath: null; readonly config: (config: Config) => void },
) => { readonly write: () => Promise<unknown> };

/** The part of MiniSearch that builds an index. */
type MiniSearch = new (options: object) => { readonly addAll: (sections: readonly Section[]) => void };

/** What a page is rendered with. */
type Data = Readonly<Record<string, unknown>> & { readonly page?: Page };

interface Section {
  readonly id: number;
  readonly url: string;
  readonly page: string;
  readonly title: string;
  readonly text: string;
  readonly excerpt: string;
}

/** For the index and for each query. */
const SEARCH_OPTIONS = {
  fields: ['title', 'page', 'text'],
  storeFields: ['url', 'page', 'title', 'excerpt'],
  searchOptions: { prefix: true, fuzzy: 0.15, boost: { title: 4, page: 2 }, combineWith: 'AND' },
};
/** Characters of a section that results show. */
const EXCERPT = 160;

/** Builds the site in an empty folder. Throws if a link leads nowhere. */
export async function buildSite(
  checkout: string,
  folder: string,
): Promise<{ readonly pages: number; readonly sections: number }> {
  const tools = join(checkout, '.curlew/tools/site/node_modules');
  const site = await readSite(checkout);
  await rm(folder, { recursive: true, force: true });
  const { Eleventy } = (await import(pathToFileURL(join(tools, '@11ty/eleventy/src/Eleventy.js')).href)) as {
    readonly Eleventy: Eleventy;
  };
  const config = configOf(site);
  await new Eleventy(join(checkout, 'scripts/site'), folder, { quietMode: true, configPath: null, config }).write();
  const copies = [...site.files].map((file) => [file, file] as const);
  const own = ['style.css', 'search.js'].map((file) => [`scripts/site/${file}`, file] as const);
  for (const [from, to] of [...copies, ...own]) await copyInto(folder, join(checkout, from), to);
  await copyInto(folder, join(tools, 'minisearch/dist/umd/index.js'), 'minisearch.js');

  const html = new Map<string, string>();
  for (const { url } of site.pages.values()) html.set(url, await readFile(join(folder, url), 'utf8'));
  checkLinks(html, new Set([...site.files, 'style.css', 'search.js', 'minisearch.js', 'search-index.js']));
  const sections = [...site.pages.values()].flatMap((page) => sectionsOf(page, html.get(page.url) ?? ''));
  await writeIndex(
    tools,
    folder,
    sections.map((section, id) => ({ ...section, id })),
  );
  return { pages: html.size, sections: sections.length };
}

async function copyInto(folder: string, from: string, to: string): Promise<void> {
  await mkdir(dirname(join(folder, to)), { recursive: true });
  await cp(from, join(folder, to));
}

function configOf(site: Site): (config: Config) => void {
  const order = site.groups.flatMap(({ pages }) => pages);
  return (config) => {
    config.setUseGitIgnore(false);
    config.amendLibrary('md', (markdown) => {
      markdown.core.ruler.push('site', ({ tokens, env }) => {
        const page = site.pages.get(String(env['source']));
        if (page !== undefined) adapt(site, page, tokens);
      });
    });
    config.addTransform('keyboard', forKeyboard);
    for (const page of site.pages.values()) {
      const at = order.indexOf(page);
      const around = at === -1 ? {} : { before: order[at - 1], after: order[at + 1] };
      const { source, title, url, text } = page;
      // Braces of a page are text, not the template language of Eleventy.
      const engine = { templateEngineOverride: 'md', layout: 'page.liquid', permalink: url };
      const data = { source, title, url, root: rootOf(page), groups: site.groups };
      config.addTemplate(source, text, { ...engine, ...data, ...around });
    }
  };
}

/** Text and tables that are wider than a screen scroll by keys, too. An empty cell is no header. */
function forKeyboard(html: string): string {
  return html.replaceAll(/<(pre|table)>/g, '<$1 tabindex="0">').replaceAll(/<th([^>]*)><\/th>/g, '<td$1></td>');
}

/** Gives each heading its anchor, and each link its place in the site; what the site does not have is no link. */
function adapt(site: Site, page: Page, tokens: readonly Token[]): void {
  const used = new Map<string, number>();
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'heading_open') {
      const name = anchor((tokens[at + 1]?.children ?? []).map(({ content }) => content).join(''));
      const times = used.get(name) ?? 0;
      used.set(name, times + 1);
      token.attrSet('id', times === 0 ? name : `${name}-${times}`);
    }
    adaptLinks(site, page, token.children ?? []);
  }
}

/** Text of a link that is only the path of a page; the site shows the title instead. */
const PATH = /^(?:docs\/)?[\w-]+\.md$/;

function adaptLinks(site: Site, page: Page, tokens: readonly Token[]): void {
  let isLinked = true;
  for (const [at, token] of tokens.entries()) {
    if (token.type === 'link_open') {
      const to = linkIn(site, page, token.attrGet('href') ?? '');
      isLinked = to !== undefined;
      if (to !== undefined) token.attrSet('href', to);
      const text = tokens[at + 1];
      const named = [...site.pages.values()].find(({ url }) => rootOf(page) + url === to?.replace(/#.*/, ''));
      if (text !== undefined && named !== undefined && PATH.test(text.content)) text.content = named.title;
    }
    if (!isLinked && (token.type === 'link_open' || token.type === 'link_close'))
      Object.assign(token, { type: 'text', content: '', nesting: 0 });
  }
}

/** Throws with all links of the pages that lead to no file or anchor of the site. */
function checkLinks(pages: ReadonlyMap<string, string>, files: ReadonlySet<string>): void {
  const broken: string[] = [];
  for (const [url, html] of pages) {
    for (const [, href = ''] of html.matchAll(/ (?:href|src)="([^"]*)"/g)) {
      if (/^\w+:/.test(href)) continue;
      const [path = '', id] = href.split('#', 2);
      const to = path === '' ? url : join(dirname(url), path);
      const page = pages.get(to);
      const isThere = page === undefined ? files.has(to) : id === undefined || page.includes(` id="${decodeURI(id)}"`);
      if (!isThere) broken.push(`${url}: ${href}`);
    }
  }
  if (broken.length > 0) throw new Error(`links of the site that lead nowhere:\n${broken.join('\n')}`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&#39;': "'",
  '&amp;': '&',
};

function plain(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/&(?:lt|gt|quot|#39|amp);/g, (entity) => ENTITIES[entity] ?? entity)
    .replaceAll(/\s+/g, ' ')
    .trim();
}

/** The headings of a page with the text below each. */
function sectionsOf({ url, title: page }: Page, html: string): readonly Omit<Section, 'id'>[] {
  const [, main = ''] = /<main[^>]*>(.*?)(?:<footer>|<\/main>)/s.exec(html) ?? [];
  return main.split(/(?=<h[1-6] id=)/).flatMap((part) => {
    const [heading = '', id = '', title = ''] = /^<h[1-6] id="([^"]*)"[^>]*>(.*?)<\/h[1-6]>/s.exec(part) ?? [];
    if (heading === '') return [];
    const text = plain(part.slice(heading.length));
    return [{ url: `${url}#${id}`, page, title: plain(title), text, excerpt: text.slice(0, EXCERPT) }];
  });
}

async function writeIndex(tools: string, folder: string, sections: readonly Section[]): Promise<void> {
  const index = new (createRequire(join(tools, 'x.js'))('minisearch') as MiniSearch)(SEARCH_OPTIONS);
  index.addAll(sections);
  const lines = [`SEARCH_OPTIONS = ${JSON.stringify(SEARCH_OPTIONS)};`, `SEARCH_INDEX = ${JSON.stringify(index)};`];
  await writeFile(join(folder, 'search-index.js'), lines.map((line) => `globalThis.${line}\n`).join(''));
}
