/** The page on which add-ons, versions and settings are chosen, and what the choice becomes. Pure. */
import { findPackage, type Catalog } from '../../../core/catalog.ts';
import { counted } from '../../../core/counted.ts';
import { compareText, type Arch } from '../../../core/ref.ts';
import { formatBytes } from '../../../core/units.ts';
import type { ResolvedPackage } from '../../bundle/resolve.ts';
import { folderName } from '../../../spec/installer.ts';
import { type Choice, formatChoice, specNameOf } from './choice.ts';
import type { ContentsPage } from './contents.ts';
import { type PageFields, renderField } from './fields.ts';
import { copyable, hiddenFields, pager, sliceOf } from './frame.ts';
import { html, type Html } from './html.ts';

/** The outcome of a choice. */
export interface ChoiceResult {
  /** The spec; undefined if it would not be valid. */
  readonly made: { readonly id: string; readonly yaml: string } | undefined;
  /** The packages that the release has for it. */
  readonly packages: readonly ResolvedPackage[];
  /** Sizes in bytes; `tool` is that of the curlew for nodes. */
  readonly bundle?: { readonly size: number; readonly tool: number; readonly toc: string } | undefined;
  /** Why there is no bundle. */
  readonly problems: readonly string[];
}

export interface ChoosePage extends Pick<ContentsPage, 'catalog' | 'choice' | 'query' | 'root'> {
  /** Address of this server as the client sees it. */
  readonly base: string;
  /** Fields by key in the spec: of the chosen add-ons, and of `kurl`. */
  readonly fields: ReadonlyMap<string, PageFields>;
  /** Undefined if nothing is chosen. */
  readonly outcome: ChoiceResult | undefined;
  /** The server wants signed releases on nodes. */
  readonly signed: boolean;
}

const MAX_ROWS = 100;
const MAX_VERSIONS = 12;
const MAX_SHARED = 10;

export function choosePage(page: ChoosePage): Html {
  const { catalog, choice, outcome, root } = page;
  return html`<h1>Installer</h1>
    <p>
      Choose add-ons of release <strong>${catalog.release}</strong>, then take the installer spec, the command for a
      machine with network, or the bundle for one without.
    </p>
    <form action="${root}#installer" method="get">
      ${hiddenFields(formatChoice(withoutFields(page)))}
      <div class="columns">
        ${addonList(page)}
        <section id="installer" aria-labelledby="installer-title">
          <h2 id="installer-title">Your installer</h2>
          ${choice.versions.size === 0 ? html`<p class="empty">No add-on is chosen yet. Select some, then press “Update”.</p>` : chosenList(page)}
          ${outcome !== undefined && result(outcome, page)}
        </section>
      </div>
    </form>`;
}

/** The part of a choice without a field in the form, which must not be lost when the form is sent. */
function withoutFields({ choice, fields }: ChoosePage): Choice {
  const rest = [...choice.settings].map(([key, values]) => {
    const shown = new Set(fields.get(key)?.fields.map(({ name }) => name));
    return [key, new Map([...values].filter(([name]) => !shown.has(name)))] as const;
  });
  return { release: choice.release, arch: 'amd64', versions: new Map(), settings: new Map(rest) };
}

type Addon = Catalog['addons'][number];

function versionsFor({ versions }: Addon, arch: Arch): Addon['versions'] {
  return versions.filter(({ packages }) => packages[arch] !== undefined);
}

function addonList({ catalog, choice, query, root }: ChoosePage): Html {
  const { arch } = choice;
  const find = (query.get('_find') ?? '').slice(0, 100);
  const matching = catalog.addons
    .filter(({ name }) => name.includes(find.trim().toLowerCase()))
    .filter((addon) => versionsFor(addon, arch).length > 0)
    .toSorted((a, b) => compareText(a.name, b.name));
  const { shown, page, pages } = sliceOf(matching, { query, most: MAX_ROWS });
  return html`<section id="add-ons" aria-labelledby="add-ons-title">
    <h2 id="add-ons-title">Add-ons</h2>
    <div class="bar">
      <label for="_find">Find</label> <input type="search" id="_find" name="_find" value="${find}" />
      <label for="_arch">for</label>
      <select id="_arch" name="_arch">
        ${['amd64', 'arm64'].map((one) => html`<option${one === arch && html` selected`}>${one}</option>`)}
      </select>
      <button formaction="${root}#add-ons">Show</button>
    </div>
    <table>
      <caption>
        ${counted(matching.length, 'add-on')}${find !== '' && html` with “${find}” in its name`}
      </caption>
      <thead>
        <tr>
          <th scope="col">Add-on</th>
          <th scope="col">Newest</th>
          <th scope="col" class="number">Size</th>
          <th scope="col"><span class="hidden">Contents</span></th>
        </tr>
      </thead>
      <tbody>
        ${shown.map((addon) => addonRow(addon, root, choice))}
      </tbody>
    </table>
    ${pager(page, pages, html`formaction="${root}#add-ons"`)}
    <p class="bar below"><button class="main">Update the installer</button></p>
  </section>`;
}

function addonRow(addon: Addon, root: string, { arch, versions }: Choice): Html {
  const { name } = addon;
  const chosen = versions.get(specNameOf(name));
  const [newest, ...older] = versionsFor(addon, arch);
  const box =
    chosen === undefined
      ? html`<label><input type="checkbox" name="_add" value="${name}" /> <bdi>${name}</bdi></label>`
      : html`<span class="chosen"><bdi>${name}</bdi> <small>chosen: ${chosen}</small></span>`;
  return html`<tr>
    <td>${box}</td>
    <td><code>${newest?.version}</code>${older.length > 0 && html` <small>and ${older.length} more</small>`}</td>
    <td class="number">${formatBytes(newest?.packages[arch]?.size ?? 0)}</td>
    <td>
      <button class="link" formaction="${root}addon.html" name="_name" value="${name}">
        contents<span class="hidden"> of ${name}</span>
      </button>
    </td>
  </tr> `;
}

function chosenList(page: ChoosePage): Html {
  const { choice } = page;
  return html`<ul class="chosen-list">
      ${[...choice.versions].map(([specName, requested]) => chosenAddon(specName, requested, page))}
    </ul>
    ${settingsOf('kurl', 'Settings of the installation itself', page)}
    <p class="bar"><button class="main">Update the installer</button></p>`;
}

function chosenAddon(specName: string, requested: string, page: ChoosePage): Html {
  const { catalog, choice, outcome, root } = page;
  const name = folderName(specName);
  const addon = catalog.addons.find((one) => one.name === name);
  const offered = addon === undefined ? [] : versionsFor(addon, choice.arch).map(({ version }) => version);
  const resolved = outcome?.packages.find((one) => one.name === name);
  const channels = (catalog.channels ?? []).map((channel) => `channel:${channel}`);
  const options = new Set([...offered.slice(0, MAX_VERSIONS), requested, 'latest', ...channels]);
  const more = offered.length - MAX_VERSIONS;
  return html`<li>
    <div class="bar">
      <label for="${specName}"><bdi>${name}</bdi></label>
      <select id="${specName}" name="${specName}">
        <option value="">remove</option>
        ${[...options].map((one) => html`<option${one === requested && html` selected`}>${one}</option>`)}
      </select>
      <span class="size">${resolved === undefined ? 'not in this release' : formatBytes(resolved.size)}</span>
      <button class="link" formaction="${root}addon.html" name="_name" value="${name}">
        ${more > 0 ? `all ${offered.length} versions` : 'contents'}<span class="hidden"> of ${name}</span>
      </button>
    </div>
    ${resolved !== undefined && resolved.version !== requested && html`<p class="about">${requested} is ${resolved.version} now</p>`}
    ${settingsOf(specName, 'Settings', page)}
  </li> `;
}

function settingsOf(specName: string, title: string, { choice, fields }: ChoosePage): Html | false {
  const { fields: own, others } = fields.get(specName) ?? { fields: [], others: [] };
  if (own.length + others.length === 0) return false;
  const values = choice.settings.get(specName);
  const set = own.filter(({ name }) => values?.has(name) === true).length;
  const isOpen = set > 0 || own.some(({ required }) => required);
  return html`<details${isOpen && html` open`}><summary>${title} <small>${set} of ${own.length} set</small></summary>
<div class="fields" role="group" aria-label="${title} of ${specName}">${own.map((one) => renderField(specName, one, values?.get(one.name)))}</div>
${others.length > 0 && html`<p class="about">Write these into the spec, or a site’s overlay; secrets belong there, not into an address: <code>${others.join(', ')}</code></p>`}
</details>`;
}

function result(outcome: ChoiceResult, page: ChoosePage): Html {
  const { problems, made } = outcome;
  return html`<div id="result">
    ${
      problems.length > 0 &&
      html`<div class="problems" role="alert">
        <h3>It cannot be installed like this</h3>
        <ul>
          ${problems.map((one) => html`<li>${one}</li>`)}
        </ul>
      </div>`
    }
    ${
      made !== undefined &&
      html`<h3>Installer spec</h3>
        ${copyable(made.yaml, 'Installer spec')}
        <p>
          <a href="${page.root}installer.yaml?${formatChoice(page.choice)}" download="installer.yaml"
            >Download installer.yaml</a
          >
          <small>id ${made.id}</small>
        </p>
        ${outcome.bundle !== undefined && commands(made.id, { ...outcome, bundle: outcome.bundle }, page)}`
    }
  </div>`;
}

function commands(
  id: string,
  { packages, bundle }: Pick<ChoiceResult, 'packages'> & { readonly bundle: NonNullable<ChoiceResult['bundle']> },
  page: ChoosePage,
): Html {
  const { choice, base, signed } = page;
  const query = formatChoice(choice);
  const address = (file: string): string => quoted(`${base}/${file}?${query}`);
  const key = signed ? ' -s -- --key /etc/curlew/release.pub' : '';
  const insecure = base.startsWith('http:') ? ` --allow-http ${base.slice('http://'.length).replace(/\/.*$/, '')}` : '';
  return html`<h3>With network</h3>
    ${copyable(`curl -fsSL ${address('install.sh')} | sudo bash${key}`, 'Command for a machine with network')}
    <h3>Without network</h3>
    <p>
      <a class="main" href="${page.root}bundle.tar.gz?${query}" download="${id}.tar.gz">Download the bundle</a>
      <strong>${formatBytes(bundle.size)}</strong> <small>(${bundle.size} bytes)</small>
    </p>
    ${sizes(packages, bundle, page)}
    <p>Or download it on a machine with network, by a command that resumes and checks every byte:</p>
    ${copyable(`curlew pull ${address('bundle.tar.gz')} -o ${id}.tar.gz${insecure}`, 'Command to download the bundle')}
    <p>Then on the machine without network, next to a copy of the bundle:</p>
    ${copyable(
      `mkdir bundle && tar -xzf ${id}.tar.gz -C bundle && sudo bundle/install.sh${signed ? ' --key /etc/curlew/release.pub' : ''}`,
      'Command for a machine without network',
    )}
    <p>
      <code>curlew verify ${id}.tar.gz</code> checks every byte of a copy, and shows this digest of its contents. It is
      the sha256 of the table of contents, which has the digest of each file; <code>sha256sum</code> of the bundle
      prints another one.
    </p>
    ${copyable(bundle.toc, 'Digest of the contents')}`;
}

/** For a shell. A query has no quotes. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", '%27')}'`;
}

function sizes(
  packages: readonly ResolvedPackage[],
  { size, tool }: NonNullable<ChoiceResult['bundle']>,
  { catalog, choice: { arch } }: ChoosePage,
): Html {
  const sum = packages.reduce((total, one) => total + one.size, 0);
  const saved = sum + tool - size;
  const shared = sharedImages(packages, catalog, arch);
  const more = shared.length - MAX_SHARED;
  return html`<p class="about">
      ${counted(packages.length, 'package')}: ${formatBytes(sum)}; curlew for the machine:
      ${formatBytes(tool)}${saved > tool / 100 && html`; less ${formatBytes(saved)} that several of them have, which is in the bundle once`}.
    </p>
    ${
      shared.length > 0 &&
      html`<ul class="about">
        ${shared.slice(0, MAX_SHARED)}${more > 0 && html`<li>and ${more} more images</li>`}
      </ul>`
    }`;
}

/** The images that several of these packages have. */
function sharedImages(packages: readonly ResolvedPackage[], catalog: Catalog, arch: Arch): readonly Html[] {
  const owners = new Map<string, { readonly reference: string; readonly names: Set<string> }>();
  for (const ref of packages) {
    for (const { reference, digest } of findPackage(catalog, ref, arch)?.listed.images ?? []) {
      const one = owners.get(digest) ?? { reference, names: new Set() };
      owners.set(digest, one);
      one.names.add(ref.name);
    }
  }
  const shared = [...owners.values()].filter(({ names }) => names.size > 1);
  return shared.map(({ reference, names }) => html`<li><code>${reference}</code> is in ${[...names].join(', ')}</li>`);
}
