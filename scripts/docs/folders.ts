/** What each folder of `src` is for and may import: CONTRIBUTING's table, and what test/scripts/folders holds the source against. */

export interface Folder {
  readonly name: string;
  readonly holds: string;
  /** Folders above its own line, each of which it does import; all where it is left out. */
  readonly imports?: readonly string[];
  /** How much of these it uses, where that is not all. */
  readonly only?: Readonly<Record<string, string>>;
}

/** Lower ones first: a folder imports only those above it. */
export const FOLDERS: readonly Folder[] = [
  {
    name: 'core',
    holds: 'errors, diagnostics, digests, references, operating systems, every path and key, events',
    imports: [],
  },
  { name: 'files', holds: 'files that appear whole: room, syncing, what is still being written', imports: ['core'] },
  { name: 'net', holds: 'HTTP with proxies, private CAs, retries, resumption', imports: ['core'] },
  {
    name: 'archive',
    holds: 'package format 1: write, index, read by range, splice, verify, extract',
    imports: ['core', 'files'],
  },
  { name: 'manifest', holds: 'directives, parser, linter, lock', imports: ['core', 'archive'] },
  { name: 'registry', holds: 'the distribution API, OCI layouts, docker archives', imports: ['core', 'net'] },
  {
    name: 'build',
    holds: 'plan, fetch, cache, pack',
    imports: ['core', 'files', 'net', 'manifest', 'archive', 'registry'],
  },
  { name: 'store', holds: 'folder, S3, and web servers to read from', imports: ['core', 'files', 'net'] },
  { name: 'trust', holds: 'keys and signatures', imports: ['core'] },
  {
    name: 'sbom',
    holds: 'what packages are made of and where they come from: SBOMs, provenance',
    imports: ['core', 'manifest', 'trust'],
  },
  { name: 'release', holds: 'publish, catalogue, promote', imports: ['core', 'archive', 'store', 'trust'] },
  { name: 'installer', holds: 'installer specs', imports: ['core'] },
  {
    name: 'bundle',
    holds: 'plan; `write` it anywhere, in `parts`, as a `delta`',
    imports: ['core', 'files', 'archive', 'store', 'installer'],
  },
  { name: 'pull', holds: 'fetching one file that proves itself', imports: ['core', 'files', 'archive', 'store'] },
  {
    name: 'serve',
    holds: 'a store over HTTP: bundles as they are read, online installs, images',
    imports: ['core', 'files', 'archive', 'registry', 'store', 'installer', 'bundle'],
    only: { registry: 'manifests' },
  },
  {
    name: 'scaffold',
    holds: 'new add-ons, and the next versions of those that have a template',
    imports: ['core', 'files', 'manifest', 'build', 'installer'],
  },
  {
    name: 'preflight',
    holds: 'facts about a host, and judgements of them',
    imports: ['core', 'files', 'net', 'installer'],
  },
  {
    name: 'migrate',
    holds: 'what a repository made for kURL finds here, and the tables of compatibility',
    imports: ['core', 'files', 'manifest', 'installer', 'preflight'],
  },
  {
    name: 'kube',
    holds: 'requests to the API server that a kubeconfig names',
    imports: ['core', 'files', 'net', 'installer'],
    only: { installer: 'reading YAML' },
  },
  {
    name: 'runtime',
    holds: 'what happens on a node',
    imports: ['core', 'files', 'archive', 'registry', 'store', 'installer', 'preflight', 'kube'],
    only: { registry: 'forms of images' },
  },
  { name: 'cli', holds: 'commands and rendering; only here anything is printed, exits, or reads the environment' },
];

/** Folders that import a package; packages that are not named here may be imported anywhere. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['store'],
  '@cyclonedx/cyclonedx-library': ['sbom'],
  ajv: ['installer', 'manifest', 'runtime'],
  dockerode: ['build'],
  execa: ['kube', 'manifest', 'registry', 'runtime'],
  fflate: ['archive'],
  listr2: ['cli'],
  tar: ['archive', 'registry'],
  undici: ['net'],
  uvu: [],
  yaml: ['installer', 'manifest', 'preflight'],
};

/** Modules of Node that do I/O, which `core` does not import. */
export const IO: readonly string[] = [
  'child_process',
  'fs',
  'fs/promises',
  'http',
  'https',
  'net',
  'tls',
  'worker_threads',
].map((name) => `node:${name}`);

function importsText({ imports, only = {} }: Folder): string {
  if (imports === undefined) return 'all';
  if (imports.length === 0) return 'nothing';
  return imports.map((name) => (only[name] === undefined ? name : `${name} (${only[name]})`)).join(', ');
}

const BEGIN = '<!-- folders: made by npm run docs -->';
const END = '<!-- end of folders -->';

/** The text of CONTRIBUTING.md with the table of folders in its place. Throws where the text has no place for it. */
export function withFolders(contributing: string): string {
  const [before, rest] = contributing.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`CONTRIBUTING.md has no ${BEGIN} … ${END}`);
  const rows = FOLDERS.map((folder) => `| \`${folder.name}\` | ${folder.holds} | ${importsText(folder)} |`);
  const table = ['| folder | holds | imports |', '| --- | --- | --- |', ...rows].join('\n');
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
}
