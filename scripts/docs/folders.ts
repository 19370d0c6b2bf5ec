/** What each folder of `src` is for and may import: CONTRIBUTING's tables; test/scripts/folders checks the source against them. */

/** Folders that belong together, by the first part of their paths. A group with only one folder has the line of that folder. */
const GROUPS: Readonly<Record<string, string>> = {
  platform: 'the operating system, without terms of the product',
  formats: 'formats and languages, without terms of the product',
  cluster: 'one cluster: its API server, its channels, and the delivery of add-ons to it',
  manifest: 'add-ons as their authors write them',
  ship: 'packages on their way from a build to a node: stores, releases, bundles, servers',
  build: 'add-ons become packages',
  runtime: 'packages are run on a node',
  steps: 'what several use cases share: what they open, prepare and carry out for a request',
  fleet: 'many clusters: their add-ons, the hub that says when, and the agents that follow it',
  machine: 'the machines of a cluster',
};

export interface Folder {
  readonly name: string;
  readonly holds: string;
  /** Folders above its own line, each of which it does import; undefined for all. */
  readonly imports: readonly string[] | undefined;
}

/** Lower ones first: a folder imports only those above it. Without a list, it imports all. */
const ROWS: readonly (readonly [name: string, holds: string, imports?: string])[] = [
  [
    'core',
    'errors, diagnostics, digests, references, operating systems, every path and key, events, the context of a use case',
    '',
  ],
  ['platform/limit', 'how much happens at once, and how often: semaphores, caches, memory, repetition', 'core'],
  ['platform/process', 'running other programs, and ending all that they start', 'core'],
  ['platform/files', 'atomic file writes: free space, syncing, partial files, locks', 'core platform/process'],
  ['platform/http', 'HTTP with proxies, private CAs, retries, resumption', 'core platform/limit'],
  ['formats/yaml', 'YAML as JSON-safe data with source positions', 'core'],
  ['formats/bash', 'what a script defines and calls, without running it', 'core'],
  ['formats/go-template', 'Go templates with the functions of sprig', 'core'],
  ['formats/archive', 'package format 1: write, index, read by range, splice, verify, extract', 'core platform/files'],
  [
    'formats/oci',
    'image manifests, OCI layouts, docker archives, layers',
    'core platform/limit platform/files formats/archive',
  ],
  ['formats/signing', 'keys and signatures', 'core'],
  [
    'own',
    'what comes with curlew itself: its version, its scripts, the files and executables that it puts into bundles',
    'core platform/files formats/archive',
  ],
  ['spec', 'installer specs', 'core formats/yaml'],
  [
    'cluster/channel',
    'which add-on versions fit which Kubernetes: read, choose, explain, check, plan an upgrade, records',
    'core formats/yaml formats/go-template',
  ],
  [
    'cluster/kube',
    'requests to the API server that a kubeconfig names',
    'core platform/limit platform/process platform/files platform/http formats/yaml',
  ],
  [
    'cluster/deliver',
    'add-ons on a cluster: manifests and charts are applied, observed, pruned, recorded, removed',
    `core platform/limit platform/process platform/files platform/http formats/signing spec cluster/channel
      cluster/kube`,
  ],
  [
    'manifest',
    'directives, parser, linter, lock',
    `core platform/limit platform/process platform/files formats/yaml formats/bash formats/archive formats/oci
      spec cluster/channel`,
  ],
  [
    'manifest/scaffold',
    'new add-ons, and the next versions of those that have a template',
    'core platform/process platform/files spec manifest',
  ],
  [
    'ship/store',
    'stores in folders and S3, and on web servers (read-only)',
    'core platform/limit platform/files platform/http',
  ],
  [
    'ship/transfer',
    'one file from the network to disk: resumed after any interruption, verified before it gets its name',
    'core platform/limit platform/files platform/http formats/archive ship/store',
  ],
  [
    'ship/release',
    'publish, catalog, promote',
    'core platform/limit formats/archive formats/signing cluster/channel ship/store',
  ],
  [
    'ship/bundle',
    'plan; `write` it anywhere, in `parts`, as a `delta`',
    'core platform/limit platform/files formats/archive own spec cluster/channel ship/store',
  ],
  [
    'ship/serve',
    'a store over HTTP: bundles made on request, online installs, images',
    `core platform/limit platform/files formats/yaml formats/archive formats/oci own spec ship/store ship/bundle`,
  ],
  ['build/registry', 'the distribution API', 'core platform/limit platform/process platform/http formats/oci'],
  [
    'build',
    'plan, fetch, cache, pack',
    `core platform/limit platform/process platform/files platform/http formats/archive formats/oci manifest
      ship/transfer build/registry`,
  ],
  ['build/sbom', 'SBOMs and provenance of packages and bundles', 'core formats/signing manifest'],
  [
    'runtime/preflight',
    'host preflights: collectors and analyzers',
    `core platform/limit platform/process platform/files platform/http formats/yaml formats/go-template spec`,
  ],
  ['runtime/journal', 'the write-ahead log of a run: actions by id, and how far they got', 'core platform/files'],
  [
    'runtime/plan',
    'what a run on a node does, and why: hooks, actions, records, space, ports; no I/O',
    'core spec runtime/journal',
  ],
  [
    'runtime/node',
    'the install folder: its lock, records, and packages, and where these come from',
    'core platform/limit platform/files formats/archive ship/store ship/transfer runtime/plan',
  ],
  [
    'runtime/hooks',
    'one hook in its shell: environment, control, logs, sandbox',
    'core platform/limit platform/process platform/files spec runtime/plan runtime/node',
  ],
  [
    'runtime/cluster',
    'records of the cluster that the node belongs to',
    'core platform/limit platform/files spec cluster/kube runtime/plan runtime/node',
  ],
  [
    'runtime/images',
    'images in the container runtime',
    `core platform/limit platform/process platform/files formats/archive formats/oci runtime/plan runtime/node`,
  ],
  [
    'runtime/prepare',
    'a run before it starts: its request, the state of node and cluster, its plan, its folder',
    `core platform/process platform/files spec runtime/journal runtime/plan runtime/node runtime/hooks
      runtime/cluster`,
  ],
  [
    'runtime/host',
    'the machine: its space, ports, operating system, and its checks before a run',
    `core platform/process platform/files spec runtime/preflight runtime/plan runtime/node runtime/cluster
      runtime/images runtime/prepare`,
  ],
  [
    'runtime/history',
    'what earlier runs did: status, reasons, logs, files',
    'core runtime/journal runtime/plan runtime/node runtime/hooks runtime/cluster runtime/prepare',
  ],
  [
    'runtime/support',
    'support bundles: what they collect, how they hide secrets, their archive',
    `core platform/limit platform/files formats/yaml formats/go-template formats/archive spec cluster/channel cluster/kube runtime/plan runtime/node
      runtime/preflight runtime/prepare runtime/history`,
  ],
  [
    'runtime/run',
    'the phases of a run, and its dry run',
    `core platform/limit platform/files spec runtime/journal runtime/plan runtime/node runtime/hooks
      runtime/cluster runtime/images runtime/prepare runtime/host`,
  ],
  [
    'kurl',
    'migration of kURL repositories, and the compatibility tables',
    'core platform/files formats/bash spec manifest runtime/preflight',
  ],
  [
    'requests',
    'the request of each command: a table of fields is its type, its options and its check',
    'core manifest runtime/images runtime/prepare',
  ],
  [
    'steps/open',
    'what use cases open: stores, networks, configuration, keys, channels',
    `core platform/limit platform/files platform/http formats/signing own cluster/channel ship/store
      ship/transfer ship/release build/registry requests`,
  ],
  [
    'steps/archives',
    'packages and bundles as files: opened anywhere, verified, described, written in parts',
    `core platform/files formats/archive formats/oci spec manifest ship/store ship/release ship/bundle build/sbom
      runtime/node runtime/images requests steps/open`,
  ],
  [
    'steps/sources',
    'where a command on a node gets its packages and its spec',
    `core platform/limit platform/files formats/yaml formats/archive formats/signing spec ship/store ship/release
      ship/bundle runtime/plan runtime/node requests steps/open steps/archives`,
  ],
  [
    'steps/node',
    'runs on a node: target, spec, cluster, saved requests',
    `core platform/process platform/files own spec cluster/kube runtime/plan runtime/node runtime/hooks
      runtime/cluster runtime/prepare runtime/history runtime/run requests steps/sources`,
  ],
  [
    'steps/build',
    'a build: its plan, what has changed since a release, and its clients, threads and folders',
    `core platform/limit formats/archive formats/oci own manifest ship/release build/registry build requests steps/open`,
  ],
  [
    'steps/bundle',
    'the plan of a bundle, and its target',
    `core platform/files formats/yaml formats/archive own spec ship/store ship/release ship/bundle build requests
      steps/open steps/archives steps/sources steps/build`,
  ],
  [
    'steps/channel',
    'a pass over the channels of a cluster',
    'core cluster/channel cluster/deliver requests steps/open',
  ],
  [
    'fleet/rollout',
    'how an add-on spreads over the clusters of a fleet: one pure `step` for all of them',
    'core formats/yaml formats/go-template cluster/channel',
  ],
  [
    'fleet/upstream',
    'kinds of the Helm add-on provider of Cluster API and of Open Cluster Management: their rules, and what they become',
    'core formats/yaml formats/signing cluster/channel fleet/rollout',
  ],
  [
    'fleet',
    'the files of a fleet: clusters, add-ons and their channels, read and checked; what would happen to it now',
    'core formats/yaml cluster/channel fleet/rollout fleet/upstream',
  ],
  [
    'fleet/hub',
    'the hub of a fleet: its kinds, what its objects say, what a step writes to them, and who its agents are; no I/O',
    'core formats/yaml formats/signing cluster/channel fleet/rollout fleet/upstream fleet',
  ],
  [
    'fleet/run',
    'the files of a fleet, what its clusters record, the state between passes, and the deliveries of a pass',
    `core platform/limit platform/files spec cluster/channel cluster/kube cluster/deliver requests steps/open
      fleet/rollout fleet/upstream fleet`,
  ],
  [
    'fleet/hub/run',
    'a pass of the controller of a hub: what a step of its fleet writes, into its objects; deliveries to its clusters; tokens, requests and rights of agents',
    `core platform/limit formats/signing cluster/channel cluster/kube cluster/deliver requests
      steps/open fleet/rollout fleet/upstream fleet fleet/hub fleet/run`,
  ],
  [
    'fleet/agent',
    'the agent of a cluster: its folder, its certificate, and those of add-ons',
    'core platform/limit platform/files formats/signing cluster/kube fleet/rollout fleet/upstream fleet/hub',
  ],
  [
    'fleet/agent/run',
    'the loop of an agent: deliveries to its own cluster, and what it reports to its hub',
    `core platform/limit platform/files formats/signing own cluster/channel cluster/kube cluster/deliver requests
      steps/open fleet/rollout fleet/upstream fleet fleet/hub fleet/run fleet/hub/run fleet/agent`,
  ],
  ['machine/ssh', "programs on other machines, by OpenSSH's own client", 'core platform/process platform/files'],
  [
    'machine',
    'the machines of a cluster: versions, etcd, drains, and the next steps from what is seen to what is desired; no I/O',
    'core cluster/channel fleet/rollout',
  ],
  [
    'machine/run',
    'machines of a cluster: those of a file over SSH; nodes of the cluster of this machine: drains, upgrades, snapshots of etcd, removal, and health',
    `core platform/limit platform/process platform/files formats/yaml formats/archive cluster/channel
      cluster/kube cluster/deliver runtime/plan runtime/support steps/open fleet fleet/run machine/ssh machine`,
  ],
  [
    'conformance',
    "test vectors against curlew's own functions: the library `curlew/conformance`",
    'core formats/yaml cluster/channel fleet/rollout fleet/upstream fleet/hub machine',
  ],
  ['app', 'use cases, one per file: a request that could be JSON and its result'],
  ['cli', 'options, commands and rendering; only `cli` prints, exits or reads the process'],
];

export const FOLDERS: readonly Folder[] = ROWS.map(([name, holds, imports]) => {
  return { name, holds, imports: imports?.split(/\s+/).filter((one) => one !== '') };
});

/** Folders that import a package; packages that are not listed may be imported anywhere. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['ship/store'],
  '@cyclonedx/cyclonedx-library': ['build/sbom'],
  ajv: ['manifest', 'runtime/run', 'spec'],
  dockerode: ['build'],
  execa: [],
  fflate: ['formats/archive'],
  fzstd: ['formats/oci'],
  listr2: ['cli'],
  'node:child_process': ['platform/process', 'runtime/hooks'],
  tar: ['formats/archive'],
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

function importsText(imports: Folder['imports']): string {
  if (imports === undefined) return 'all';
  if (imports.length === 0) return 'nothing';
  return imports.join(', ');
}

const BEGIN = '<!-- folders: made by npm run docs -->';
const END = '<!-- end of folders -->';

/** The first part of a path. */
export function groupOf(folder: string): string {
  return folder.split('/')[0] ?? folder;
}

/** Whether the code of a folder may know the requests of commands: by itself, or by the steps that carry them out. */
export function usesRequests({ imports }: Folder): boolean {
  return imports?.some((name) => name === 'requests' || groupOf(name) === 'steps') ?? true;
}

/** Lines of the groups, in the order of their folders. */
function groupLines(): readonly string[] {
  return [...new Set(FOLDERS.map(({ name }) => groupOf(name)))].map((group) => {
    const own = FOLDERS.filter(({ name }) => groupOf(name) === group);
    const imported = FOLDERS.filter(({ name }) =>
      own.some(({ imports }) => imports === undefined || imports.includes(name)),
    );
    const others = [...new Set(imported.map(({ name }) => groupOf(name)))].filter((name) => name !== group);
    const holds = GROUPS[group] ?? own[0]?.holds ?? '';
    return `| \`${group}\` | ${holds} | ${importsText(own.some(({ imports }) => imports === undefined) ? undefined : others)} |`;
  });
}

/** The text of CONTRIBUTING.md with the tables of groups and folders between its markers. Throws if the text has no markers for them. */
export function withFolders(contributing: string): string {
  const [before, rest] = contributing.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error(`CONTRIBUTING.md has no ${BEGIN} … ${END}`);
  const rows = FOLDERS.map((folder) => `| \`${folder.name}\` | ${folder.holds} | ${importsText(folder.imports)} |`);
  const groups = ['| group | holds | imports |', '| --- | --- | --- |', ...groupLines()].join('\n');
  const folders = ['| folder | holds | imports |', '| --- | --- | --- |', ...rows].join('\n');
  return `${before}${BEGIN}\n\n${groups}\n\n${folders}\n\n${END}${after}`;
}
