/** The page of one package: what it contains, needs and can be set to, and its other versions. Pure. */
import type { Catalog } from '../../../core/catalog.ts';
import { counted } from '../../../core/counted.ts';
import { formatBytes } from '../../../core/units.ts';
import type { ResolvedPackage } from '../../bundle/resolve.ts';
import type { Description } from '../plan-protocol.ts';
import { type Choice, formatChoice, specNameOf } from './choice.ts';
import { settingFields } from './fields.ts';
import { hiddenFields, pager, sliceOf } from './frame.ts';
import { html, type Html } from './html.ts';

export interface ContentsPage {
  readonly catalog: Catalog;
  readonly choice: Choice;
  readonly query: URLSearchParams;
  /** Path of the server for clients, with a slash at its end. */
  readonly root: string;
  readonly resolved: ResolvedPackage;
  readonly description: Description;
}

const MAX_VERSIONS = 100;

export function contentsPage(page: ContentsPage): Html {
  const { root, choice, resolved, catalog, description } = page;
  const { name, version, size } = resolved;
  const { addon, files, count } = description;
  const { unpacked, images, deps, os } = addon;
  const systems = Object.entries(deps).map(([system, needs]) => `${needs.join(', ')} on ${system}`);
  const { fields, others } = settingFields(specNameOf(name), addon.settings);
  return html`<h1><bdi>${name}</bdi> <code>${version}</code></h1>
    <form action="${root}addon.html" method="get">
      ${hiddenFields(formatChoice(choice))}
      <input type="hidden" name="_name" value="${name}" />
      <p class="bar">
        ${chooseButton(page, version, 'main')} <a href="${root}?${formatChoice(choice)}">Back to the installer</a>
      </p>
      <dl>
        ${row('Release', catalog.release)}
        ${row('Size', `${formatBytes(size)}, unpacked ${formatBytes(unpacked.files + unpacked.images)}`)}
        ${row('For Kubernetes', addon.kubernetesVersion)} ${row('Requires', addon.requires.join(', '))}
        ${row('Recommends', addon.recommends?.join(', '))} ${row('Also counts as', addon.fulfills.join(', '))}
        ${row('Host packages for', os.join(', '))} ${row('Needs on the machine', systems.join('; '))}
        ${row('Hooks', addon.hooks.join(', '))} ${row('Built by', `curlew ${addon.tool}`)}
        ${row('Identity', resolved.digest)} ${row('SHA-256 of the file', resolved.sha256)}
      </dl>
      <h2>Images</h2>
      ${
        images.length === 0
          ? html`<p class="empty">It has none.</p>`
          : html`<ul>
              ${images.map(
                ({ reference, digest }) =>
                  html`<li>
                    <code>${reference}</code> <small><code>${digest}</code></small>
                  </li>`,
              )}
            </ul>`
      }
      <h2>Settings</h2>
      ${
        fields.length + others.length === 0
          ? html`<p class="empty">None are known.</p>`
          : html`<ul>
              ${fields.map(({ name: field, about }) => html`<li><code>${field}</code> ${about}</li>`)}${others.map((field) => html`<li><code>${field}</code> <small>secret, or not a plain value</small></li>`)}
            </ul>`
      }
      <h2>Files</h2>
      <details>
        <summary>${counted(count, 'file')} without those of images</summary>
        <ul class="files">
          ${files.map((file) => html`<li><code>${file.path}</code> <small>${formatBytes(file.size)}</small></li>`)}
          ${count > files.length && html`<li>and ${count - files.length} more: <code>curlew inspect</code> shows all of them</li>`}
        </ul>
      </details>
      ${versionList(page)}
    </form>`;
}

function row(title: string, text: string | undefined): Html | false {
  return (
    text !== undefined &&
    text !== '' &&
    html`<div>
      <dt>${title}</dt>
      <dd>${text}</dd>
    </div>`
  );
}

function chooseButton({ root, choice, resolved }: ContentsPage, version: string, look: 'main' | 'link'): Html {
  const key = specNameOf(resolved.name);
  if (choice.versions.get(key) === version) return html`<span>${version} is chosen</span>`;
  return html`<button class="${look}" formaction="${root}#installer" name="${key}" value="${version}">
    Choose ${version}
  </button>`;
}

function versionList(page: ContentsPage): Html {
  const { catalog, query, choice, resolved } = page;
  const offered = catalog.addons.find(({ name }) => name === resolved.name)?.versions ?? [];
  const built = offered.flatMap(({ version, packages }) => {
    const listed = packages[choice.arch];
    return listed === undefined ? [] : [{ version, listed }];
  });
  const { shown, page: at, pages } = sliceOf(built, { query, most: MAX_VERSIONS });
  return html`<h2 id="versions">Versions</h2>
    <table>
      <caption>
        ${counted(built.length, 'version')} for ${choice.arch}, the newest first
      </caption>
      <thead>
        <tr>
          <th scope="col">Version</th>
          <th scope="col" class="number">Size</th>
          <th scope="col" class="number">Images</th>
          <th scope="col">Choose</th>
        </tr>
      </thead>
      <tbody>
        ${shown.map(
          ({ version, listed }) =>
            html`<tr>
              <td>
                ${
                  version === resolved.version
                    ? html`<code>${version}</code> <small>shown above</small>`
                    : html`<button class="link" name="_version" value="${version}">
                        <code>${version}</code><span class="hidden">: contents</span>
                      </button>`
                }
              </td>
              <td class="number">${formatBytes(listed.size)}</td>
              <td class="number">${counted(listed.images.length, 'image')}</td>
              <td>${chooseButton(page, version, 'link')}</td>
            </tr> `,
        )}
      </tbody>
    </table>
    ${pager(at, pages, html`formaction="#versions"`)}`;
}
