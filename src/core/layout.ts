/**
 * Defines every path inside a package, every key of a store and every folder on a node, and checks names from outside
 * that are used as paths.
 */
import { hexOf, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import type { AddonRef, AddonTree, Arch } from './ref.ts';

export const ADDON_JSON = 'addon.json';
/** Only in packages of a bundle: lists the files that the bundle leaves out. */
export const OMITTED_JSON = 'addon.omitted.json';
export const MANIFEST = 'Manifest';
export const HOST_PREFLIGHT = 'host-preflight.yaml';
export const MANIFEST_LOCK = 'Manifest.lock';
export const INSTALL_SH = 'install.sh';
export const TOC_NAME = 'stargz.index.json';

/** Names that the builder creates; a source folder must not contain them. (It may contain a `Manifest.lock`.) */
export const RESERVED_NAMES: readonly string[] = [ADDON_JSON, OMITTED_JSON, 'images', 'assets'];

/** Paths under a package's prefix. */
export const packagePath = {
  image: (path: string): string => `images/${path}`,
  /** The folder of all blobs. */
  blobs: 'images/blobs/',
  blob: (digest: Digest): string => `images/blobs/sha256/${hexOf(digest)}`,
  dockerArchive: (id: string): string => `images/${id}.tar.gz`,
  asset: (fileName: string): string => `assets/${fileName}`,
  archives: (os: string): string => `${os}/archives`,
  deps: (os: string): string => `${os}/Deps`,
} as const;

/** Prefix of all entries of a package, with its slash: `addons/<name>/<version>/`. */
export function prefixOf({ tree, name, version }: AddonRef): string {
  return `${tree}/${name}/${version}/`;
}

const PREFIX = /^(addons|packages)\/([^/]+)\/([^/]+)\//;

/** The package that contains an entry of a bundle, or undefined for a file at the bundle's root. */
export function ownerOf(path: string): { tree: AddonTree; name: string; version: string } | undefined {
  const [, tree, name, version] = PREFIX.exec(path) ?? [];
  if ((tree !== 'addons' && tree !== 'packages') || name === undefined || version === undefined) return undefined;
  return { tree, name, version };
}

/** File name and key of a package: `<name>-<version>.tar.gz`, `_<arch>` for all but amd64, `+` written as `-`. */
export function packageFileName({ name, version }: Pick<AddonRef, 'name' | 'version'>, arch: Arch): string {
  return `${name}-${version}${arch === 'amd64' ? '' : `_${arch}`}.tar.gz`.replaceAll('+', '-');
}

/** Keys under a store's address. */
export const storeKey = {
  package: (release: string, fileName: string): string => `${release}/${fileName}`,
  catalog: (release: string): string => `${release}/index.json`,
  /** The inputs of the package builds. */
  inputs: (release: string): string => `${release}/inputs.json`,
  supportedVersions: (release: string): string => `${release}/supported-versions-gen.json`,
  addons: (release: string): string => `${release}/addons-gen.json`,
  /** The folder of the channels, in a release and next to the releases, and one of them. */
  channels: 'channels/',
  channel: (release: string, name: string): string => `${release}/${storeKey.channels}${name}.yaml`,
  latestChannel: (name: string): string => `${storeKey.channels}${name}.yaml`,
  version: 'VERSION',
  /** Signatures of the catalog and of the name of the current release. */
  catalogSignature: (release: string): string => `${release}/index.json.sigstore.json`,
  versionSignature: 'VERSION.sigstore.json',
  /** Packages of other publishers, which kURL's readers expect next to `dist`. */
  external: (fileName: string): string => `external/${fileName}`,
  addonRegistry: 'external/addon-registry.json',
  latestSupportedVersions: 'supported-versions-gen.json',
  latestAddons: 'addons-gen.json',
  latest: (fileName: string): string => fileName,
} as const;

/** Files at a bundle's root. */
export const BUNDLE_JSON = 'bundle.json';
export const INSTALLER_YAML = 'installer.yaml';
/** Only deltas have it: the table of contents of the bundle that it recreates, byte for byte. */
export const DELTA_CONTENTS = 'contents.json';
export const BUNDLE_SCRIPTS: readonly string[] = ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh'];

/** True for names in the folder of an unpacked bundle, also of one that is incomplete. */
export function hasBundleFiles(names: readonly string[]): boolean {
  return [TOC_NAME, BUNDLE_JSON, ...BUNDLE_SCRIPTS].some((name) => names.includes(name));
}
/** The folder of the files that kURL's own scripts move into the install folder. */
export const KURL_FOLDER = 'kurl/';
/** The curlew in a bundle, its sha256 in sha256sum format, and the license of the Node.js that it contains. */
export const BUNDLED_TOOL = 'bin/curlew';
export const BUNDLED_TOOL_SUM = 'bin/curlew.sha256';
export const BUNDLED_TOOL_LICENSE = 'bin/curlew.license';

/** File name of the node executable in a build of curlew. */
export function executableFileName(arch: Arch): string {
  return `curlew-linux-${arch}`;
}

/** File name of the node executable packed in format 1, as in bundles. */
export function packedExecutableName(arch: Arch): string {
  return `${executableFileName(arch)}.tar.gz`;
}

/** File name of the same archive in a release of curlew itself. */
export function releasedExecutableName(version: string, arch: Arch): string {
  return `curlew-${version}-linux-${arch}.tar.gz`;
}

/** File name of the index of that archive as JSON, which a package without the executable has instead. */
export function executableIndexName(arch: Arch): string {
  return `index-linux-${arch}.json`;
}

/** The sha256 of the packed executables of a build, in sha256sum format. */
export const EXECUTABLE_SUMS = 'SHA256SUMS';

/** The default install folder on a node. */
export const INSTALL_DIRECTORY = '/var/lib/curlew';

/** Where containerd listens on a node, as far as nothing names another address. */
export const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';

/** Records of the files of installed packages are in the same folders under this one. */
export const PLACED = 'placed';

/** Paths under the install folder. */
export const nodePath = {
  addon: (ref: AddonRef): string => prefixOf(ref).slice(0, -1),
  /** Keeps a package after another package of the same version replaces it. */
  previous: (ref: AddonRef): string => `previous/${prefixOf(ref).slice(0, -1)}`,
  /** Record of the files in a package's folder `path`. */
  placed: (path: string): string => `${PLACED}/${path}.json`,
  kustomize: (name: string): string => `kustomize/${name}`,
  /** Packages between download and extraction. */
  fetched: 'fetched',
  records: 'records.json',
  /** A snapshot of etcd, with keys, which the package of kubernetes reads in the next install. */
  restore: 'restore',
  /** The kubeconfig of a trial's hooks, during a run. */
  kubeconfig: 'kubeconfig',
  lock: 'lock',
  /** containerd's entry of the spec: it is installed before a cluster exists that could hold it. */
  containerdApplied: 'containerd-last-applied',
  run: (id: string): string => `runs/${id}`,
  journal: (id: string): string => `runs/${id}/journal.jsonl`,
} as const;

/** Length limit of a path in bytes, supported by ustar and pax readers and by file systems. */
const PATH_LIMIT = 1024;
const NAME_LIMIT = 255;
const DEPTH_LIMIT = 64;

/** The problem of a file name (one path component) from outside, or undefined if it is safe. */
export function fileNameProblem(name: string): string | undefined {
  if (name.length === 0) return 'is empty';
  if (name === '.' || name === '..') return 'is a folder reference';
  if (name.includes('/')) return 'contains "/"';
  if (name.includes('\\')) return 'contains "\\"';
  if (/[\u0000-\u001f\u007f]/.test(name)) return 'contains a control character';
  if (/[\ud800-\udfff]/u.test(name)) return 'is not valid Unicode';
  if (Buffer.byteLength(name) > NAME_LIMIT) return `is longer than ${NAME_LIMIT} bytes`;
  return undefined;
}

/** The ConfigMap in a cluster with the records of add-ons that runs on nodes applied. */
export const RUN_RECORDS = { namespace: 'kurl', name: 'curlew-records' } as const;

/** The ConfigMap in a cluster with the records of add-ons that channels keep, and the Lease of its writer. */
export const CHANNEL_RECORDS = { namespace: 'kube-system', name: 'curlew-addons' } as const;

/** The problem of a relative path from outside, or undefined if it is safe. */
export function pathProblem(path: string): string | undefined {
  if (path.startsWith('/')) return 'is absolute';
  if (Buffer.byteLength(path) > PATH_LIMIT) return `is longer than ${PATH_LIMIT} bytes`;
  const components = path.split('/');
  if (components.length > DEPTH_LIMIT) return `is deeper than ${DEPTH_LIMIT} folders`;
  for (const component of components) {
    const problem = fileNameProblem(component);
    if (problem !== undefined) return component.length === path.length ? problem : `has a component that ${problem}`;
  }
  return undefined;
}

/** The path itself if it is safe to use under a folder; `from` names its source. */
export function safePath(path: string, from: string): string {
  const problem = pathProblem(path);
  if (problem === undefined) return path;
  throw new CurlewError('PACKAGE_INVALID', `${from}: the path ${JSON.stringify(path.slice(0, 200))} ${problem}`);
}
