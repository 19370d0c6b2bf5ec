/** YAML documents that are no resources, though add-ons are made from them: what they are, and what to do instead. Pure. */
import { firstOf } from '../../core/counted.ts';
import { fieldsOf, isObject, listOf } from '../../core/json.ts';
import { imageLines } from './image-lines.ts';

/** What a document refers to, as it writes it. */
interface References {
  readonly images?: readonly unknown[];
  readonly charts?: readonly unknown[];
  readonly files?: readonly unknown[];
}

type Fields = Readonly<Record<string, unknown>>;

interface OtherFile {
  readonly what: string;
  readonly is: (fields: Fields) => boolean;
  readonly instead: string;
  readonly refers?: (fields: Fields) => References;
}

const SOURCES = 'create the add-on from a chart or from the YAML of its resources';

/** The first that fits counts. */
const OTHER_FILES: readonly OtherFile[] = [
  {
    what: 'a hauler manifest, which lists what to download',
    is: ({ apiVersion }) => isOfGroup(apiVersion, 'hauler.cattle.io'),
    instead: SOURCES,
    refers: ({ spec }) => fieldsOf(spec),
  },
  {
    what: 'a zarf.yaml, which lists charts, manifests and images',
    is: ({ kind }) => kind === 'ZarfPackageConfig' || kind === 'ZarfInitConfig',
    instead: `${SOURCES}, one for each component`,
    refers: ({ components }) => {
      const all = (name: string): readonly unknown[] =>
        listOf(components).flatMap((one) => listOf(fieldsOf(one)[name]));
      return { images: all('images'), charts: all('charts') };
    },
  },
  {
    what: 'an installer spec, which lists add-ons',
    is: ({ apiVersion, kind }) => kind === 'Installer' && isOfGroup(apiVersion, 'kurl.sh'),
    instead: SOURCES,
  },
  {
    what: 'a kustomization, which only refers to resources',
    is: ({ apiVersion, kind, resources }) =>
      isOfGroup(apiVersion, 'kustomize.config.k8s.io') || (kind === undefined && Array.isArray(resources)),
    instead: 'render it first: kubectl kustomize FOLDER > FILE',
  },
  {
    what: 'a compose file, whose services are not resources',
    is: ({ kind, services }) =>
      kind === undefined && servicesOf(services).some((one) => 'image' in one || 'build' in one),
    instead: 'convert it to resources first, for example with kompose convert --stdout',
    refers: ({ services }) => ({ images: servicesOf(services).map((one) => one['image']) }),
  },
  {
    what: 'no apiVersion and kind, like the values of a chart',
    is: ({ apiVersion, kind }) => apiVersion === undefined && kind === undefined,
    instead: 'use the chart itself, or render it with its values: helm template NAME CHART --values FILE > NAME.yaml',
  },
];

/** What a document is that contains no resources, and what to do instead; undefined for any other document. */
export function otherFile(document: unknown): { readonly message: string; readonly hint: string } | undefined {
  if (!isObject(document)) return undefined;
  const found = OTHER_FILES.find(({ is }) => is(document));
  if (found === undefined) return undefined;
  const { images, charts, files } = found.refers?.(document) ?? {};
  const lines = [...imageLines(texts(images, 'name')), ...texts(files, 'path').map((path) => `asset ${path}`)];
  const commands = listOf(charts).flatMap(renderCommand);
  const hints = [
    found.instead,
    ...(commands.length === 0 ? [] : [`render its charts with: ${firstOf(commands, MOST)}`]),
    ...(lines.length === 0 ? [] : [`lines for the Manifest: ${firstOf(lines, MOST)}`]),
  ];
  return { message: `not a Kubernetes resource: ${found.what}`, hint: hints.join('; ') };
}

const MOST = 20;

function isOfGroup(apiVersion: unknown, group: string): boolean {
  return typeof apiVersion === 'string' && (apiVersion.split('/')[0] ?? '').endsWith(group);
}

function servicesOf(services: unknown): readonly Fields[] {
  return Object.values(fieldsOf(services)).filter(isObject);
}

/** The items that are texts, or that have a text of this name. */
function texts(items: unknown, name: string): readonly string[] {
  const found = listOf(items).map((item) => (isObject(item) ? item[name] : item));
  return found.filter((item): item is string => typeof item === 'string' && !/\s/.test(item));
}

/**
 * A helm command for a chart with a repository: hauler writes `repoURL`, and zarf `url`, which for OCI includes the name.
 * Charts in folders and in git need none.
 */
function renderCommand(chart: unknown): readonly string[] {
  const { name, repoURL, url = repoURL, version } = fieldsOf(chart);
  if (typeof name !== 'string' || typeof url !== 'string' || /\s/.test(name + url) || url.endsWith('.git')) return [];
  const inOci = url === repoURL ? `${url.replace(/\/$/, '')}/${name}` : url;
  const from = url.startsWith('oci:') ? inOci : `${name} --repo ${url}`;
  return [`helm template ${name} ${from}${typeof version === 'string' ? ` --version ${version}` : ''}`];
}
