/**
 * Every path inside a package, every key of a store and every folder on a node has its one author here, and so has the
 * check that a name from outside may be used as one.
 */
import { hexOf, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import type { AddonRef, AddonTree, Arch } from './ref.ts';

export const ADDON_JSON = 'addon.json';
/** In a package of a bundle only: the files of it that were left out. */
export const OMITTED_JSON = 'addon.omitted.json';
export const MANIFEST = 'Manifest';
export const MANIFEST_LOCK = 'Manifest.lock';
export const INSTALL_SH = 'install.sh';
export const TOC_NAME = 'stargz.index.json';

/** Names that the builder makes; a source folder may not hold them (but a committed `Manifest.lock`). */
export const RESERVED_NAMES: readonly string[] = [ADDON_JSON, OMITTED_JSON, 'images', 'assets'];

/** Below a package's prefix. */
export const packagePath = {
  image: (path: string): string => `images/${path}`,
  /** Every blob lies below it. */
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

/** Which package an entry of a bundle belongs to, or undefined for a file of the bundle's own. */
export function ownerOf(path: string): { tree: AddonTree; name: string; version: string } | undefined {
  const [, tree, name, version] = PREFIX.exec(path) ?? [];
  if ((tree !== 'addons' && tree !== 'packages') || name === undefined || version === undefined) return undefined;
  return { tree, name, version };
}

/** File name and key of a package: `<name>-<version>.tar.gz`, `_<arch>` for all but amd64, `+` written as `-`. */
export function packageFileName({ name, version }: Pick<AddonRef, 'name' | 'version'>, arch: Arch): string {
  return `${name}-${version}${arch === 'amd64' ? '' : `_${arch}`}.tar.gz`.replaceAll('+', '-');
}

/** Keys below a store's address (design: store and releases). */
export const storeKey = {
  package: (release: string, fileName: string): string => `${release}/${fileName}`,
  catalogue: (release: string): string => `${release}/index.json`,
  /** What the builds of the packages saw. */
  inputs: (release: string): string => `${release}/inputs.json`,
  supportedVersions: (release: string): string => `${release}/supported-versions-gen.json`,
  addons: (release: string): string => `${release}/addons-gen.json`,
  version: 'VERSION',
  /** Who says that the catalogue is this one, and which release is the current one. */
  catalogueSignature: (release: string): string => `${release}/index.json.sigstore.json`,
  versionSignature: 'VERSION.sigstore.json',
  /** Packages of other publishers; their readers look for them beside `dist`. */
  external: (fileName: string): string => `external/${fileName}`,
  addonRegistry: 'external/addon-registry.json',
  latestSupportedVersions: 'supported-versions-gen.json',
  latestAddons: 'addons-gen.json',
  latest: (fileName: string): string => fileName,
} as const;

/** Files at a bundle's root. */
export const BUNDLE_JSON = 'bundle.json';
export const INSTALLER_YAML = 'installer.yaml';
/** In a delta only: the table of contents of the bundle that it makes, byte for byte. */
export const DELTA_CONTENTS = 'contents.json';
export const BUNDLE_SCRIPTS: readonly string[] = ['install.sh', 'join.sh', 'upgrade.sh', 'tasks.sh'];
/** What kURL's own scripts move into the install folder lies below it. */
export const KURL_FOLDER = 'kurl/';
/** The curlew of a bundle, its sha256 as sha256sum reads it, and the licence of the Node inside. */
export const BUNDLED_TOOL = 'bin/curlew';
export const BUNDLED_TOOL_SUM = 'bin/curlew.sha256';
export const BUNDLED_TOOL_LICENSE = 'bin/curlew.license';

/** The executable for nodes in a build of curlew. */
export function executableFileName(arch: Arch): string {
  return `curlew-linux-${arch}`;
}

/** The same, packed in format 1 as bundles hold it. */
export function packedExecutableName(arch: Arch): string {
  return `${executableFileName(arch)}.tar.gz`;
}

/** The default install folder on a node. */
export const INSTALL_DIRECTORY = '/var/lib/curlew';

/** What is known of the files of packages in place lies in the same folders below this one. */
export const PLACED = 'placed';

/** Below the install folder. */
export const nodePath = {
  addon: (ref: AddonRef): string => prefixOf(ref).slice(0, -1),
  /** Where a package is put by when another one of the same version takes its place. */
  previous: (ref: AddonRef): string => `previous/${prefixOf(ref).slice(0, -1)}`,
  /** What is known of the files in a package's folder; `path` is that folder. */
  placed: (path: string): string => `${PLACED}/${path}.json`,
  kustomize: (name: string): string => `kustomize/${name}`,
  /** Packages on their way: only between a store and their extraction. */
  fetched: 'fetched',
  records: 'records.json',
  lock: 'lock',
  run: (id: string): string => `runs/${id}`,
  journal: (id: string): string => `runs/${id}/journal.jsonl`,
} as const;

/** Most bytes that a path may have: what ustar and pax readers, and file systems, agree on. */
const PATH_LIMIT = 1024;
const NAME_LIMIT = 255;
const DEPTH_LIMIT = 64;

/** What is wrong with a file name (one path component) that came from outside, or undefined if nothing is. */
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

/** What is wrong with a relative path that came from outside, or undefined if nothing is. */
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

/** The path itself if it may be used below some folder; `from` names where it came from. */
export function safePath(path: string, from: string): string {
  const problem = pathProblem(path);
  if (problem === undefined) return path;
  throw new CurlewError('PACKAGE_INVALID', `${from}: the path ${JSON.stringify(path.slice(0, 200))} ${problem}`);
}
