/** The frame of every page around its content. Pure. */
import { html, type Html } from './html.ts';

/** Nothing from elsewhere, nothing inline, no page around it, and no address of it in requests to others. */
export const PAGE_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  Vary: 'Accept',
};

export interface Frame {
  readonly title: string;
  /** Version of curlew. */
  readonly tool: string;
  /** Path of the server for clients, with a slash at its end. */
  readonly root: string;
}

export function pageText({ title, tool, root }: Frame, content: Html): string {
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
        <link rel="stylesheet" href="${root}page.css" />
        <script src="${root}page.js" defer></script>
      </head>
      <body>
        <header>
          <nav aria-label="Pages">
            <a href="${root}">Installer</a> <a href="${root}changes.html">Changes between releases</a>
          </nav>
        </header>
        <main>${content}</main>
        <footer>curlew ${tool}</footer>
      </body>
    </html> `;
  return page.text;
}

/** A command or a text to copy. */
export function copyable(text: string, label: string): Html {
  return html`<div class="copy">
    <pre tabindex="0" role="region" aria-label="${label}"><code>${text}</code></pre>
  </div>`;
}

/** Hidden fields with the pairs of a query, so that a form keeps them. */
export function hiddenFields(query: string): Html {
  const pairs = [...new URLSearchParams(query)];
  return html`${pairs.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}`;
}

/** Buttons of a form that go to another page of a list; `more` are attributes. */
export function pager(page: number, pages: number, more: Html): Html | false {
  if (pages <= 1) return false;
  const button = (to: number, text: string): Html =>
    html`<button name="_page" value="${to}" ${more}${(to < 1 || to > pages) && html` disabled`}>${text}</button>`;
  return html`<p class="pager">
    ${button(page - 1, 'Previous')} page ${page} of ${pages} ${button(page + 1, 'Next')}
  </p>`;
}

/** The requested page of a list, from 1, and its items. */
export function sliceOf<Item>(
  items: readonly Item[],
  { query, most }: { readonly query: URLSearchParams; readonly most: number },
): { readonly shown: readonly Item[]; readonly page: number; readonly pages: number } {
  const pages = Math.max(1, Math.ceil(items.length / most));
  const page = Math.min(pages, Math.max(1, Math.trunc(Number(query.get('_page'))) || 1));
  return { shown: items.slice((page - 1) * most, page * most), page, pages };
}
