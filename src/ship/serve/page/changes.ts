/** The page that compares two releases. Pure. */
import type { Catalog } from '../../../core/catalog.ts';
import { counted } from '../../../core/counted.ts';
import type { Arch } from '../../../core/ref.ts';
import { changedAddons, type AddonChange } from '../../store/changed-addons.ts';
import { pager, sliceOf } from './frame.ts';
import { html, type Html } from './html.ts';

export interface ChangesPage {
  /** Undefined if there is nothing to compare with yet. */
  readonly before: Catalog | undefined;
  readonly after: Catalog;
  readonly arch: Arch;
  /** Releases of the store, as far as they are known. */
  readonly releases: readonly string[];
  readonly query: URLSearchParams;
  /** Path of the server for clients, with a slash at its end. */
  readonly root: string;
}

const MAX_ROWS = 100;
const MAX_LINES = 20;

export function changesPage(page: ChangesPage): Html {
  const { before, after, arch, releases, query, root } = page;
  return html`<h1>Changes between releases</h1>
    <form action="${root}changes.html" method="get">
      <p class="bar">
        <label for="_from">From</label>
        <input id="_from" name="_from" list="releases" value="${before?.release}" required />
        <label for="_to">to</label> <input id="_to" name="_to" list="releases" value="${after.release}" required />
        <label for="_arch">for</label>
        <select id="_arch" name="_arch">
          ${['amd64', 'arm64'].map((one) => html`<option${one === arch && html` selected`}>${one}</option>`)}
        </select>
        <button class="main">Compare</button>
      </p>
      <datalist id="releases">${releases.map((one) => html`<option value="${one}"></option>`)}</datalist>
      ${before === undefined ? html`<p class="empty">Name a release to compare ${after.release} with.</p>` : comparison(page, before)}
    </form>
    ${
      releases.length > 0 &&
      html`<h2>Releases</h2>
        <ul>
          ${releases.map((one) => html`<li><a href="${root}?${new URLSearchParams({ _release: one }).toString()}">${one}</a></li>`)}
        </ul>`
    }`;

  function comparison({ after: newer }: ChangesPage, older: Catalog): Html {
    const changes = changedAddons(older, newer, arch);
    const { shown, page: at, pages } = sliceOf(changes, { query, most: MAX_ROWS });
    if (changes.length === 0)
      return html`<p>${older.release} and ${newer.release} have the same packages for ${arch}.</p>`;
    return html`<table>
        <caption>
          ${counted(changes.length, 'add-on')} changed
        </caption>
        <thead>
          <tr>
            <th scope="col">Add-on</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map(changeRow)}
        </tbody>
      </table>
      ${pager(at, pages, html``)}`;
  }
}

function changeRow({ name, lines, size }: AddonChange): Html {
  const more = lines.length - MAX_LINES;
  return html`<tr>
    <th scope="row"><bdi>${name}</bdi> <small>${size}</small></th>
    <td>
      <ul>
        ${lines.slice(0, MAX_LINES).map((line) => html`<li>${line}</li>`)}
        ${more > 0 && html`<li>and ${more} more</li>`}
      </ul>
    </td>
  </tr> `;
}
