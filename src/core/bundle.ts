/** `bundle.json` at the root of a bundle: what it holds and what it was made from. Pure; nodes read it. */
import { canonicalJson, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { DEEPEST, isObject, isTexts, parseJson } from './json.ts';
import { BUNDLE_JSON, fileNameProblem, prefixOf } from './layout.ts';
import { addonRef, ARCHES, type AddonTree, type Arch } from './ref.ts';

export const BUNDLE_FORMAT = 1;
/** Most bytes of a `bundle.json` that are read. */
export const BUNDLE_JSON_LIMIT: number = 16 << 20;
/** Most bytes of an installer spec that are read. */
export const INSTALLER_LIMIT: number = 4 << 20;

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly tree: AddonTree;
  readonly arch: Arch;
  /** As the spec had it: exact, `latest`, `1.2.x`. */
  readonly requested: string;
  /** The package's identity. */
  readonly digest: Digest;
  /** Of the package's own file, as it lies in the store. */
  readonly sha256: Digest;
  /** Bytes of the package's own file. */
  readonly size: number;
}

/** Of a bundle that some folders of operating systems were left out of. */
export interface BundledSystems {
  /** The folders that stay, where packages have them. */
  readonly kept: readonly string[];
  /** Unpacked bytes of the files that were left out. */
  readonly omitted: number;
}

/** Of a bundle that holds only what another place lacks: which bundle it makes there. */
export interface DeltaJson {
  /** Identity of the inventory of that place. */
  readonly since: Digest;
  /** Digest of the table of contents of the bundle that is made. */
  readonly contents: Digest;
  /** Bytes of that bundle. */
  readonly size: number;
}

/**
 * Why a package is there that the spec does not name: a version that an upgrade passes through; something that the machine
 * itself needs; or because somebody asked for it, so that a spec may name it later.
 */
export type BesideRole = 'step' | 'machine' | 'asked';
const ROLES: readonly BesideRole[] = ['step', 'machine', 'asked'];

export interface BesidePackage extends BundledPackage {
  readonly role: BesideRole;
}

export interface BundleJson {
  readonly format: typeof BUNDLE_FORMAT;
  readonly release: string;
  readonly arch: Arch;
  /** Of `installer.yaml` in the bundle. */
  readonly installer: Digest;
  /** In the order in which they are installed. */
  readonly packages: readonly BundledPackage[];
  /** Those that the spec does not name; absent when there are none. */
  readonly beside?: readonly BesidePackage[] | undefined;
  /** Absent when the packages are whole. */
  readonly os?: BundledSystems | undefined;
  /** Whose scripts it is for; absent for curlew's own. */
  readonly layout?: 'kurl' | undefined;
  /** Version of curlew that made the bundle. */
  readonly tool: string;
  /** Absent in a bundle that is whole. */
  readonly delta?: DeltaJson;
}

/** Canonical text of a `bundle.json`; nothing in it depends on time or place. */
export function formatBundleJson(bundle: BundleJson): string {
  return `${canonicalJson(bundle)}\n`;
}

/** Reads a `bundle.json` from outside; `from` names the bundle for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseBundleJson(text: string, from: string): BundleJson {
  const bad = (what: string): CurlewError => new CurlewError('PACKAGE_INVALID', `${from}: ${BUNDLE_JSON}: ${what}`);
  let value: unknown;
  try {
    value = parseJson(text, DEEPEST);
  } catch (error) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${BUNDLE_JSON} is not proper JSON`, { cause: error });
  }
  if (!isObject(value)) throw bad('not an object');
  if (value['format'] !== BUNDLE_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: bundle format ${JSON.stringify(value['format'])} is not known`, {
      hint: 'a newer curlew made this bundle; use the one inside it',
    });
  }
  const { release, arch, installer, packages, beside = [], layout, tool } = value;
  if (typeof release !== 'string' || typeof tool !== 'string') throw bad('release or tool is missing');
  if (!isArch(arch)) throw bad('arch is not known');
  if (!isDigestText(installer)) throw bad('installer');
  if (value['delta'] !== undefined && !isDelta(value['delta'])) throw bad('delta');
  if (value['os'] !== undefined && !isSystems(value['os'])) throw bad('os');
  if (!Array.isArray(packages)) throw bad('packages');
  const seen = new Set<string>();
  for (const one of packages as readonly unknown[]) {
    if (!isPackage(one)) throw bad('a package is not described');
    const { name } = addonRef(one.name, one.version, one.tree);
    if (seen.has(name)) throw bad(`${name} stands twice`);
    seen.add(name);
  }
  if (layout !== undefined && layout !== 'kurl') throw bad('layout is not known');
  if (!Array.isArray(beside)) throw bad('beside');
  const prefixes = new Set(packages.map((one: BundledPackage) => prefixOf(one)));
  for (const one of beside as readonly unknown[]) {
    if (!isPackage(one) || !isObject(one) || !ROLES.some((role) => role === one['role'])) {
      throw bad('a package beside the spec is not described');
    }
    const prefix = prefixOf(addonRef(one.name, one.version, one.tree));
    if (prefixes.has(prefix)) throw bad(`${prefix} stands twice`);
    prefixes.add(prefix);
  }
  // Every field was checked above; the shape is the interface's.
  return value as unknown as BundleJson;
}

function isPackage(value: unknown): value is BundledPackage {
  if (!isObject(value)) return false;
  const { name, version, tree, arch, requested, digest, sha256, size } = value;
  return (
    typeof name === 'string' &&
    typeof version === 'string' &&
    (tree === 'addons' || tree === 'packages') &&
    isArch(arch) &&
    typeof requested === 'string' &&
    isDigestText(digest) &&
    isDigestText(sha256) &&
    typeof size === 'number' &&
    Number.isSafeInteger(size) &&
    size >= 0
  );
}

function isSystems(value: unknown): value is BundledSystems {
  if (!isObject(value)) return false;
  const { kept, omitted } = value;
  if (!isTexts(kept) || kept.some((folder) => fileNameProblem(folder) !== undefined)) return false;
  return kept.length > 0 && typeof omitted === 'number' && Number.isSafeInteger(omitted) && omitted >= 0;
}

function isDelta(value: unknown): value is DeltaJson {
  if (!isObject(value)) return false;
  const { since, contents, size } = value;
  return isDigestText(since) && isDigestText(contents) && typeof size === 'number' && Number.isSafeInteger(size);
}

function isArch(value: unknown): value is Arch {
  return ARCHES.some((known) => known === value);
}

function isDigestText(value: unknown): value is Digest {
  return typeof value === 'string' && isDigest(value);
}
