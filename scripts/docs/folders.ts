/** What each folder of `src` is for and may import: CONTRIBUTING's table; test/scripts/folders checks the source against it. */

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
    holds:
      'errors, diagnostics, digests, references, operating systems, every path and key, events, the context of a use case',
    imports: [],
  },
  {
    name: 'own',
    holds: 'what comes with curlew itself: its version, its scripts',
    imports: [],
  },
  { name: 'platform/limit', holds: 'how much happens at once: semaphores, caches, memory', imports: ['core'] },
  { name: 'platform/process', holds: 'running other programs, and ending all that they start', imports: ['core'] },
  {
    name: 'platform/files',
    holds: 'atomic file writes: free space, syncing, partial files',
    imports: ['core', 'platform/process'],
  },
  { name: 'platform/http', holds: 'HTTP with proxies, private CAs, retries, resumption', imports: ['core'] },
  { name: 'formats/yaml', holds: 'YAML as JSON-safe data with source positions', imports: ['core'] },
  { name: 'formats/bash', holds: 'what a script defines and calls, without running it', imports: ['core'] },
  { name: 'formats/go-template', holds: 'Go templates with the functions of sprig', imports: ['core'] },
  {
    name: 'formats/archive',
    holds: 'package format 1: write, index, read by range, splice, verify, extract',
    imports: ['core', 'platform/files'],
  },
  { name: 'formats/oci', holds: 'image manifests, OCI layouts, docker archives', imports: ['core'] },
  { name: 'formats/signing', holds: 'keys and signatures', imports: ['core'] },
  {
    name: 'channel',
    holds: 'which add-on versions fit which Kubernetes: read, choose, explain, check, plan an upgrade, records',
    imports: ['core', 'formats/yaml', 'formats/go-template'],
  },
  {
    name: 'rollout',
    holds:
      'how an add-on spreads over the clusters of a fleet: one pure `step` for all of them, and the rules of upstream',
    imports: ['core'],
  },
  { name: 'spec', holds: 'installer specs', imports: ['core', 'formats/yaml'] },
  {
    name: 'manifest',
    holds: 'directives, parser, linter, lock',
    imports: [
      'core',
      'platform/limit',
      'platform/files',
      'platform/process',
      'formats/yaml',
      'formats/bash',
      'formats/archive',
      'channel',
    ],
  },
  {
    name: 'manifest/scaffold',
    holds: 'new add-ons, and the next versions of those that have a template',
    imports: ['core', 'platform/files', 'platform/process', 'spec', 'manifest'],
  },
  {
    name: 'registry',
    holds: 'the distribution API',
    imports: ['core', 'platform/limit', 'platform/process', 'platform/http', 'formats/oci'],
  },
  {
    name: 'store',
    holds: 'stores in folders and S3, and on web servers (read-only)',
    imports: ['core', 'platform/limit', 'platform/files', 'platform/http'],
  },
  {
    name: 'transfer',
    holds: 'one file from the network to disk: resumed after any interruption, verified before it gets its name',
    imports: ['core', 'platform/limit', 'platform/files', 'platform/http', 'formats/archive', 'store'],
  },
  {
    name: 'build',
    holds: 'plan, fetch, cache, pack',
    imports: [
      'core',
      'platform/limit',
      'platform/files',
      'platform/process',
      'platform/http',
      'formats/archive',
      'formats/oci',
      'manifest',
      'registry',
      'transfer',
    ],
  },
  {
    name: 'build/sbom',
    holds: 'SBOMs and provenance of packages and bundles',
    imports: ['core', 'formats/signing', 'manifest'],
  },
  {
    name: 'store/release',
    holds: 'publish, catalog, promote',
    imports: ['core', 'platform/limit', 'formats/archive', 'formats/signing', 'channel', 'store'],
  },
  {
    name: 'bundle',
    holds: 'plan; `write` it anywhere, in `parts`, as a `delta`',
    imports: ['core', 'platform/limit', 'platform/files', 'formats/archive', 'channel', 'spec', 'store'],
  },
  {
    name: 'serve',
    holds: 'a store over HTTP: bundles made on request, online installs, images',
    imports: [
      'core',
      'platform/limit',
      'platform/files',
      'formats/yaml',
      'formats/archive',
      'formats/oci',
      'spec',
      'store',
      'bundle',
    ],
  },
  {
    name: 'kube',
    holds: 'requests to the API server that a kubeconfig names',
    imports: ['core', 'platform/limit', 'platform/files', 'platform/process', 'platform/http', 'formats/yaml'],
  },
  {
    name: 'deliver',
    holds: 'add-ons on a cluster: manifests and charts are applied, observed, pruned, recorded, removed',
    imports: [
      'core',
      'platform/limit',
      'platform/process',
      'platform/files',
      'platform/http',
      'formats/signing',
      'channel',
      'spec',
      'kube',
    ],
  },
  {
    name: 'runtime/preflight',
    holds: 'host preflights: collectors and analyzers',
    imports: [
      'core',
      'platform/limit',
      'platform/process',
      'platform/files',
      'platform/http',
      'formats/yaml',
      'formats/go-template',
      'spec',
    ],
  },
  {
    name: 'runtime/journal',
    holds: 'the write-ahead log of a run: actions by id, and how far they got',
    imports: ['core', 'platform/files'],
  },
  {
    name: 'runtime/plan',
    holds: 'what a run on a node does, and why: hooks, actions, records, space, ports; no I/O',
    imports: ['core', 'spec', 'runtime/journal'],
  },
  {
    name: 'runtime/node',
    holds: 'the install folder: its lock, records, and packages, and where these come from',
    imports: [
      'core',
      'platform/limit',
      'platform/process',
      'platform/files',
      'formats/archive',
      'store',
      'transfer',
      'runtime/plan',
    ],
  },
  {
    name: 'runtime/hooks',
    holds: 'one hook in its shell: environment, control, logs, sandbox',
    imports: ['core', 'platform/limit', 'platform/process', 'platform/files', 'spec', 'runtime/plan', 'runtime/node'],
  },
  {
    name: 'runtime/cluster',
    holds: 'records of the cluster that the node belongs to',
    imports: ['core', 'platform/files', 'spec', 'kube', 'runtime/plan', 'runtime/node'],
  },
  {
    name: 'runtime/images',
    holds: 'images in the container runtime',
    imports: [
      'core',
      'platform/limit',
      'platform/process',
      'platform/files',
      'formats/archive',
      'formats/oci',
      'runtime/plan',
      'runtime/node',
    ],
  },
  {
    name: 'runtime/prepare',
    holds: 'a run before it starts: its request, the state of node and cluster, its plan, its folder',
    imports: [
      'core',
      'platform/process',
      'platform/files',
      'spec',
      'runtime/journal',
      'runtime/plan',
      'runtime/node',
      'runtime/hooks',
      'runtime/cluster',
    ],
  },
  {
    name: 'runtime/host',
    holds: 'the machine: its space, ports, operating system, and its checks before a run',
    imports: [
      'core',
      'platform/process',
      'platform/files',
      'spec',
      'runtime/preflight',
      'runtime/plan',
      'runtime/node',
      'runtime/cluster',
      'runtime/images',
      'runtime/prepare',
    ],
  },
  {
    name: 'runtime/history',
    holds: 'what earlier runs did: status, reasons, logs, files',
    imports: [
      'core',
      'runtime/journal',
      'runtime/plan',
      'runtime/node',
      'runtime/hooks',
      'runtime/cluster',
      'runtime/prepare',
    ],
  },
  {
    name: 'runtime/run',
    holds: 'the phases of a run, and its dry run',
    imports: [
      'core',
      'platform/limit',
      'platform/files',
      'spec',
      'runtime/journal',
      'runtime/plan',
      'runtime/node',
      'runtime/hooks',
      'runtime/cluster',
      'runtime/images',
      'runtime/prepare',
      'runtime/host',
    ],
  },
  {
    name: 'kurl',
    holds: 'migration of kURL repositories, and the compatibility tables',
    imports: ['core', 'platform/files', 'formats/bash', 'spec', 'manifest', 'runtime/preflight'],
  },
  {
    name: 'app/requests',
    holds: 'fields that requests of several use cases have',
    imports: ['core', 'runtime/preflight', 'runtime/images', 'runtime/prepare'],
  },
  {
    name: 'app/ports',
    holds: 'what use cases open: stores, networks, configuration, keys, channels',
    imports: [
      'core',
      'own',
      'platform/limit',
      'platform/files',
      'platform/http',
      'formats/archive',
      'formats/signing',
      'channel',
      'registry',
      'store',
      'build',
      'store/release',
      'app/requests',
    ],
  },
  {
    name: 'app/archives',
    holds: 'packages and bundles as files: opened anywhere, verified, described, written in parts',
    imports: [
      'core',
      'platform/files',
      'formats/archive',
      'spec',
      'manifest',
      'store',
      'build/sbom',
      'store/release',
      'bundle',
      'runtime/node',
      'runtime/images',
      'app/requests',
      'app/ports',
    ],
  },
  {
    name: 'app/sources',
    holds: 'where a command on a node gets its packages and its spec',
    imports: [
      'core',
      'platform/limit',
      'platform/files',
      'formats/yaml',
      'formats/archive',
      'formats/signing',
      'spec',
      'store',
      'store/release',
      'bundle',
      'runtime/plan',
      'runtime/node',
      'app/requests',
      'app/ports',
      'app/archives',
    ],
  },
  {
    name: 'app/node',
    holds: 'runs on a node: target, spec, cluster, saved requests',
    imports: [
      'core',
      'own',
      'platform/files',
      'spec',
      'runtime/node',
      'runtime/hooks',
      'runtime/cluster',
      'runtime/prepare',
      'runtime/history',
      'runtime/run',
      'app/requests',
      'app/sources',
    ],
  },
  {
    name: 'app/building',
    holds: 'the plan of a build',
    imports: ['core', 'manifest', 'build', 'app/ports'],
  },
  {
    name: 'app/bundling',
    holds: 'the plan of a bundle, and its target',
    imports: [
      'core',
      'own',
      'platform/files',
      'formats/yaml',
      'formats/archive',
      'spec',
      'store',
      'build',
      'store/release',
      'bundle',
      'app/requests',
      'app/ports',
      'app/archives',
      'app/sources',
      'app/building',
    ],
  },
  {
    name: 'app/channels',
    holds: 'a pass over the channels of a cluster',
    imports: ['core', 'channel', 'kube', 'deliver', 'app/ports'],
  },
  {
    name: 'app',
    holds: 'use cases, one per file: a request that could be JSON and its result',
  },
  { name: 'cli', holds: 'options, commands and rendering; only `cli` prints, exits or reads the process' },
];

/** Folders that import a package; packages that are not listed may be imported anywhere. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['store'],
  '@cyclonedx/cyclonedx-library': ['build/sbom'],
  ajv: ['manifest', 'runtime/run', 'spec'],
  dockerode: ['build'],
  execa: ['platform/process'],
  fflate: ['formats/archive'],
  listr2: ['cli'],
  'node:child_process': ['platform/process', 'runtime/hooks'],
  tar: ['formats/archive', 'formats/oci'],
  uvu: [],
  yaml: ['formats/yaml', 'manifest', 'runtime/preflight', 'spec'],
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

/** The text of CONTRIBUTING.md with the table of folders between its markers. Throws if the text has no markers for it. */
export function withFolders(contributing: string): string {
  const [before, rest] = contributing.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`CONTRIBUTING.md has no ${BEGIN} … ${END}`);
  const rows = FOLDERS.map((folder) => `| \`${folder.name}\` | ${folder.holds} | ${importsText(folder)} |`);
  const table = ['| folder | holds | imports |', '| --- | --- | --- |', ...rows].join('\n');
  return `${before}${BEGIN}\n\n${table}\n\n${END}${after}`;
}
