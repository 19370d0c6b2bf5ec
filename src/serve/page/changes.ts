/** The page that compares two releases. Pure. */
import type { Catalog, CatalogPackage } from '../../core/catalog.ts';
import { counted } from '../../core/counted.ts';
import { compareText, type Arch } from '../../core/ref.ts';
import { formatBytes } from '../../core/units.ts';
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

interface AddonChange {
  readonly name: string;
  readonly lines: readonly string[];
  /** Bytes of the newest version; 0 without one. */
  readonly before: number;
  readonly after: number;
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

function changeRow({ name, lines, before, after }: AddonChange): Html {
  const more = lines.length - MAX_LINES;
  const size =
    before === 0 || after === 0 ? formatBytes(before + after) : `${formatBytes(before)} → ${formatBytes(after)}`;
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

type Packages = ReadonlyMap<string, CatalogPackage>;

function packagesOf({ addons }: Catalog, arch: Arch): ReadonlyMap<string, Packages> {
  return new Map(
    addons.map(({ name, versions }) => {
      const built = versions.flatMap(({ version, packages }) => {
        const listed = packages[arch];
        return listed === undefined ? [] : [[version, listed] as const];
      });
      return [name, new Map(built)];
    }),
  );
}

/** The add-ons with other packages, by name. */
function changedAddons(before: Catalog, after: Catalog, arch: Arch): readonly AddonChange[] {
  const [was, is] = [packagesOf(before, arch), packagesOf(after, arch)];
  const names = [...new Set([...was.keys(), ...is.keys()])].toSorted(compareText);
  return names.flatMap((name) => {
    const [older, newer] = [was.get(name) ?? new Map(), is.get(name) ?? new Map()];
    const lines = changeLines(older, newer);
    return lines.length === 0
      ? []
      : [{ name, lines, before: newestOf(older)?.size ?? 0, after: newestOf(newer)?.size ?? 0 }];
  });
}

function newestOf(packages: Packages): CatalogPackage | undefined {
  return packages.values().next().value;
}

function changeLines(older: Packages, newer: Packages): readonly string[] {
  const added = [...newer.keys()].filter((version) => !older.has(version));
  const removed = [...older.keys()].filter((version) => !newer.has(version));
  const [was] = older.keys();
  const [is] = newer.keys();
  const [first, last] = [newestOf(older), newestOf(newer)];
  return [
    ...(was !== undefined && is !== undefined && was !== is ? [`the newest is ${is}, was ${was}`] : []),
    ...(was !== is && first !== undefined && last !== undefined ? imageLines(first, last) : []),
    ...added.map((version) => `${version} is new`),
    ...removed.map((version) => `${version} is gone`),
    ...[...newer].flatMap(([version, one]) => {
      const other = older.get(version);
      if (other === undefined || other.digest === one.digest) return [];
      return [`${version} has other content`, ...imageLines(other, one)];
    }),
  ];
}

function imageLines(older: CatalogPackage, newer: CatalogPackage): readonly string[] {
  const [was, is] = [older, newer].map(({ images }) => new Map(images.map((one) => [one.reference, one.digest])));
  return [
    ...[...(is ?? [])].flatMap(([reference, digest]) => {
      const before = was?.get(reference);
      if (before === undefined) return [`image ${reference} is new`];
      return before === digest ? [] : [`image ${reference} has another digest`];
    }),
    ...[...(was?.keys() ?? [])].filter((one) => is?.has(one) !== true).map((one) => `image ${one} is gone`),
  ];
}
