/** What each folder of `src` is for and may import: CONTRIBUTING's table; test/scripts/folders checks the source against it. */

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
  ['own', 'what comes with curlew itself: its version, its scripts', ''],
  ['platform/limit', 'how much happens at once, and how often: semaphores, caches, memory, repetition', 'core'],
  ['platform/process', 'running other programs, and ending all that they start', 'core'],
  ['platform/files', 'atomic file writes: free space, syncing, partial files, locks', 'core platform/process'],
  ['platform/http', 'HTTP with proxies, private CAs, retries, resumption', 'core platform/limit'],
  ['formats/yaml', 'YAML as JSON-safe data with source positions', 'core'],
  ['formats/bash', 'what a script defines and calls, without running it', 'core'],
  ['formats/go-template', 'Go templates with the functions of sprig', 'core'],
  ['formats/archive', 'package format 1: write, index, read by range, splice, verify, extract', 'core platform/files'],
  ['formats/oci', 'image manifests, OCI layouts, docker archives', 'core'],
  ['formats/signing', 'keys and signatures', 'core'],
  [
    'channel',
    'which add-on versions fit which Kubernetes: read, choose, explain, check, plan an upgrade, records',
    'core formats/yaml formats/go-template',
  ],
  [
    'rollout',
    'how an add-on spreads over the clusters of a fleet: one pure `step` for all of them',
    'core formats/yaml formats/go-template channel',
  ],
  [
    'machine',
    'the machines of a cluster: versions, etcd, drains, and the next steps from what is seen to what is desired; no I/O',
    'core channel rollout',
  ],
  [
    'fleet/upstream',
    'kinds of the Helm add-on provider of Cluster API and of Open Cluster Management: their rules, and what they become',
    'core formats/yaml channel rollout',
  ],
  [
    'fleet',
    'the files of a fleet: clusters, add-ons and their channels, read and checked; what would happen to it now',
    'core formats/yaml channel rollout fleet/upstream',
  ],
  [
    'hub',
    'the hub of a fleet: its kinds, what its objects say, what a step writes to them, and who its agents are; no I/O',
    'core formats/yaml formats/signing channel rollout fleet/upstream fleet',
  ],
  ['spec', 'installer specs', 'core formats/yaml'],
  [
    'manifest',
    'directives, parser, linter, lock',
    `core platform/limit platform/files platform/process formats/yaml formats/bash formats/archive formats/oci
      channel`,
  ],
  [
    'manifest/scaffold',
    'new add-ons, and the next versions of those that have a template',
    'core platform/files platform/process spec manifest',
  ],
  ['registry', 'the distribution API', 'core platform/limit platform/process platform/http formats/oci'],
  [
    'store',
    'stores in folders and S3, and on web servers (read-only)',
    'core platform/limit platform/files platform/http',
  ],
  [
    'transfer',
    'one file from the network to disk: resumed after any interruption, verified before it gets its name',
    'core platform/limit platform/files platform/http formats/archive store',
  ],
  [
    'build',
    'plan, fetch, cache, pack',
    `core platform/limit platform/files platform/process platform/http formats/archive formats/oci manifest
      registry transfer`,
  ],
  ['build/sbom', 'SBOMs and provenance of packages and bundles', 'core formats/signing manifest'],
  ['store/release', 'publish, catalog, promote', 'core platform/limit formats/archive formats/signing channel store'],
  [
    'bundle',
    'plan; `write` it anywhere, in `parts`, as a `delta`',
    'core platform/limit platform/files formats/archive channel spec store',
  ],
  [
    'serve',
    'a store over HTTP: bundles made on request, online installs, images',
    'core platform/limit platform/files formats/yaml formats/archive formats/oci spec store bundle',
  ],
  [
    'kube',
    'requests to the API server that a kubeconfig names',
    'core platform/limit platform/files platform/process platform/http formats/yaml',
  ],
  ['ssh', "programs on other machines, by OpenSSH's own client", 'core platform/process platform/files'],
  [
    'agent',
    'the agent of a cluster: its folder, and its certificate',
    'core platform/files formats/signing fleet/upstream hub kube',
  ],
  [
    'deliver',
    'add-ons on a cluster: manifests and charts are applied, observed, pruned, recorded, removed',
    'core platform/limit platform/process platform/files platform/http formats/signing channel spec kube',
  ],
  [
    'runtime/preflight',
    'host preflights: collectors and analyzers',
    'core platform/limit platform/process platform/files platform/http formats/yaml formats/go-template spec',
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
    'core platform/limit platform/files formats/archive store transfer runtime/plan',
  ],
  [
    'runtime/hooks',
    'one hook in its shell: environment, control, logs, sandbox',
    'core platform/limit platform/process platform/files spec runtime/plan runtime/node',
  ],
  [
    'runtime/cluster',
    'records of the cluster that the node belongs to',
    'core platform/limit platform/files spec kube runtime/plan runtime/node',
  ],
  [
    'runtime/images',
    'images in the container runtime',
    'core platform/limit platform/process platform/files formats/archive formats/oci runtime/plan runtime/node',
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
    'open',
    'what use cases open: stores, networks, configuration, keys, channels',
    `core own platform/limit platform/files platform/http formats/signing channel registry store transfer
      store/release bundle requests`,
  ],
  [
    'archives',
    'packages and bundles as files: opened anywhere, verified, described, written in parts',
    `core platform/files formats/archive spec manifest store build/sbom store/release bundle runtime/node
      runtime/images requests open`,
  ],
  [
    'sources',
    'where a command on a node gets its packages and its spec',
    `core platform/limit platform/files formats/yaml formats/archive formats/signing spec store store/release
      bundle runtime/plan runtime/node requests open archives`,
  ],
  [
    'node',
    'runs on a node: target, spec, cluster, saved requests',
    `core own platform/files platform/process spec kube runtime/plan runtime/node runtime/hooks runtime/cluster runtime/prepare
      runtime/history runtime/run requests sources`,
  ],
  [
    'building',
    'a build: its plan, what has changed since a release, and its clients, threads and folders',
    'core own platform/limit formats/archive manifest registry build store/release requests open',
  ],
  [
    'bundling',
    'the plan of a bundle, and its target',
    `core own platform/files formats/yaml formats/archive spec store build store/release bundle requests open
      archives sources building`,
  ],
  ['deliver/channel', 'a pass over the channels of a cluster', 'core channel deliver requests open'],
  [
    'fleet/run',
    'the files of a fleet, what its clusters record, the state between passes, and the deliveries of a pass',
    'core platform/limit platform/files channel rollout fleet spec kube deliver requests open',
  ],
  [
    'machine/run',
    'machines of a cluster: those of a file over SSH; nodes of the cluster of this machine: drains, upgrades, snapshots of etcd, removal, and health',
    'core platform/files platform/limit platform/process formats/yaml channel fleet kube deliver open ssh machine fleet/run',
  ],
  [
    'hub/run',
    'a pass of the controller of a hub: what a step of its fleet writes, into its objects; deliveries to its clusters; tokens, requests and rights of agents',
    `core platform/limit platform/files formats/signing channel rollout fleet/upstream fleet hub kube deliver requests
      open fleet/run`,
  ],
  [
    'agent/run',
    'the loop of an agent: deliveries to its own cluster, and what it reports to its hub',
    'core own platform/limit platform/files formats/signing channel rollout fleet hub kube deliver requests open fleet/run hub/run',
  ],
  ['app', 'use cases, one per file: a request that could be JSON and its result'],
  ['cli', 'options, commands and rendering; only `cli` prints, exits or reads the process'],
];

export const FOLDERS: readonly Folder[] = ROWS.map(([name, holds, imports]) => {
  return { name, holds, imports: imports?.split(/\s+/).filter((one) => one !== '') };
});

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

function importsText({ imports }: Folder): string {
  if (imports === undefined) return 'all';
  if (imports.length === 0) return 'nothing';
  return imports.join(', ');
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
