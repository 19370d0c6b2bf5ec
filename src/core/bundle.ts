/** `bundle.json` at the root of a bundle: what the bundle contains and what it was built from. Pure; nodes read it. */
import { canonicalJson, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { DEEPEST, isObject, isSize, isTexts, parseJson } from './json.ts';
import { BUNDLE_JSON, fileNameProblem, prefixOf } from './layout.ts';
import { addonRef, ARCHES, type AddonTree, type Arch } from './ref.ts';

export const BUNDLE_FORMAT = 1;
/** Size limit of a `bundle.json`, in bytes. */
export const BUNDLE_JSON_LIMIT: number = 16 << 20;
/** Size limit of an installer spec, in bytes. */
export const INSTALLER_LIMIT: number = 4 << 20;

export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly tree: AddonTree;
  readonly arch: Arch;
  /** As written in the spec: exact, `latest`, `1.2.x`. */
  readonly requested: string;
  /** The package's identity. */
  readonly digest: Digest;
  /** Of the package file in the store. */
  readonly sha256: Digest;
  /** Bytes of the package file. */
  readonly size: number;
}

/** Recorded when a bundle leaves out some folders of operating systems. */
export interface BundledSystems {
  /** The folders that are kept, in packages that have them. */
  readonly kept: readonly string[];
  /** Unpacked bytes of the files that were left out. */
  readonly omitted: number;
}

/** Recorded in a delta, which contains only what its target is missing: the bundle that it recreates there. */
export interface DeltaJson {
  /** Identity of the target's inventory. */
  readonly since: Digest;
  /** Digest of the table of contents of the recreated bundle. */
  readonly contents: Digest;
  /** Bytes of the recreated bundle. */
  readonly size: number;
}

/**
 * Why a bundle contains a package that the spec does not name: an upgrade passes through this version (`step`), the machine
 * itself needs it (`machine`), or it was requested so that a later spec may name it (`asked`).
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
  /** Packages that the spec does not name; absent when there are none. */
  readonly beside?: readonly BesidePackage[] | undefined;
  /** Absent when the packages are complete. */
  readonly os?: BundledSystems | undefined;
  /** The scripts that read it; absent for curlew's own. */
  readonly layout?: 'kurl' | undefined;
  /** Version of curlew that built the bundle. */
  readonly tool: string;
  /** Absent in a complete bundle. */
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
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${BUNDLE_JSON} is not valid JSON`, { cause: error });
  }
  if (!isObject(value)) throw bad('not an object');
  if (value['format'] !== BUNDLE_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: bundle format ${JSON.stringify(value['format'])} is not supported`, {
      hint: 'a newer curlew built this bundle; use the one inside it',
    });
  }
  const { release, arch, installer, packages, beside = [], layout, tool } = value;
  if (typeof release !== 'string' || typeof tool !== 'string') throw bad('release or tool is missing');
  if (!isArch(arch)) throw bad('arch is not known');
  if (!isDigest(installer)) throw bad('installer');
  if (value['delta'] !== undefined && !isDelta(value['delta'])) throw bad('delta');
  if (value['os'] !== undefined && !isSystems(value['os'])) throw bad('os');
  if (!Array.isArray(packages)) throw bad('packages');
  const seen = new Set<string>();
  for (const one of packages as readonly unknown[]) {
    if (!isPackage(one)) throw bad('a package entry is not valid');
    const { name } = addonRef(one.name, one.version, one.tree);
    if (seen.has(name)) throw bad(`${name} is listed twice`);
    seen.add(name);
  }
  if (layout !== undefined && layout !== 'kurl') throw bad('layout is not known');
  if (!Array.isArray(beside)) throw bad('the list of packages outside the spec is not valid');
  const prefixes = new Set(packages.map((one: BundledPackage) => prefixOf(one)));
  for (const one of beside as readonly unknown[]) {
    if (!isPackage(one) || !isObject(one) || !ROLES.some((role) => role === one['role'])) {
      throw bad('a package outside the spec is not valid');
    }
    const prefix = prefixOf(addonRef(one.name, one.version, one.tree));
    if (prefixes.has(prefix)) throw bad(`${prefix} is listed twice`);
    prefixes.add(prefix);
  }
  // Every field is checked above.
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
    isDigest(digest) &&
    isDigest(sha256) &&
    isSize(size)
  );
}

function isSystems(value: unknown): value is BundledSystems {
  if (!isObject(value)) return false;
  const { kept, omitted } = value;
  if (!isTexts(kept) || kept.some((folder) => fileNameProblem(folder) !== undefined)) return false;
  return kept.length > 0 && isSize(omitted);
}

function isDelta(value: unknown): value is DeltaJson {
  if (!isObject(value)) return false;
  const { since, contents, size } = value;
  return isDigest(since) && isDigest(contents) && isSize(size);
}

function isArch(value: unknown): value is Arch {
  return ARCHES.some((known) => known === value);
}
