/** `Manifest.lock`: the resolved directives. Canonical JSON, written into every package. */
import { canonicalJson, isDigest, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { isObject, isTexts, shallowJson } from '../core/json.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';

/** Size limit of a lock, in bytes. */
export const LOCK_LIMIT: number = 32 << 20;

export interface LockedImage {
  readonly id: string;
  /** Normalized, as in the Manifest, with the resolved tag. */
  readonly reference: string;
  /** Digest of the index or manifest in the registry; for a local image, of the archive file. */
  readonly digest: Digest;
  /** By platform: the packed manifest. */
  readonly platforms: Readonly<Record<string, { readonly digest: Digest; readonly size: number }>>;
}

export interface LockedAsset {
  readonly name: string;
  /** As written in the Manifest. */
  readonly source: string;
  readonly size: number;
  readonly digest: Digest;
}

/** A package file, by its name in the package manager, and its source. */
export interface LockedFile {
  readonly file: string;
  readonly name: string;
  /** `[epoch:]version[-release]`. */
  readonly version: string;
  /** In the package manager's form: `x86_64`, `all`. */
  readonly arch: string;
  readonly size: number;
  readonly digest: Digest;
  /** URL without user info and query, or the repository's id. */
  readonly repository: string;
}

/** The host packages of one operating system. */
export interface LockedHostPackages {
  readonly os: string;
  readonly arch: string;
  /** Names in the order of the Manifest: those whose files are packed, and those that are only in `Deps`. */
  readonly archives: readonly string[];
  readonly deps: readonly string[];
  /** The other inputs of the result: the builder image or the repositories. Empty if nothing was fetched. */
  readonly inputs: string;
  readonly files: readonly LockedFile[];
  /** The lines of `Deps`. */
  readonly required: readonly string[];
}

/** The inputs of a container build. Its output is in the package's index. */
export interface LockedContainerBuild {
  readonly folder: string;
  readonly arch: string;
  /** As written in the Manifest. */
  readonly dockerfile: string;
  readonly version: string;
  /** Digest of Dockerfile, context, version and base images. */
  readonly inputs: Digest;
  /** Names required by the packages that it built, for systems whose packages are not resolved. */
  readonly requires: readonly string[];
}

export interface ManifestLock {
  readonly format: 1;
  readonly images: readonly LockedImage[];
  readonly assets: readonly LockedAsset[];
  readonly hostPackages: readonly LockedHostPackages[];
  readonly containerBuilds: readonly LockedContainerBuild[];
}

export function formatLock(lock: ManifestLock): string {
  return `${canonicalJson(lock)}\n`;
}

function bad(from: string, what: string, cause?: unknown): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${from}: ${MANIFEST_LOCK}: ${what}`, { cause });
}

/** Reads a lock from outside; `from` names the file for messages. One of a later format is `UNSUPPORTED`. */
export function parseLock(text: string, from: string): ManifestLock {
  let value: unknown;
  try {
    value = shallowJson(text);
  } catch (error) {
    throw bad(from, 'not JSON', error);
  }
  return checkedLock(value, from);
}

/** Checks a lock that is already parsed as JSON. */
export function checkedLock(value: unknown, from: string): ManifestLock {
  if (!isObject(value)) throw bad(from, 'not a lock of format 1');
  if (typeof value['format'] === 'number' && value['format'] > 1) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${from}: ${MANIFEST_LOCK}: not a lock of format 1, but of ${value['format']}`,
      {
        hint: 'a newer curlew wrote it; use that version or a newer one',
      },
    );
  }
  if (value['format'] !== 1) throw bad(from, 'not a lock of format 1');
  const { images, assets, hostPackages, containerBuilds } = value;
  const invalid = (field: string): CurlewError => bad(from, `${field} is not valid`);
  if (!Array.isArray(images) || !images.every(isImage)) throw invalid('images');
  if (!Array.isArray(assets) || !assets.every(isAsset)) throw invalid('assets');
  if (!Array.isArray(hostPackages) || !hostPackages.every(isHostPackages)) throw invalid('hostPackages');
  if (!Array.isArray(containerBuilds) || !containerBuilds.every(isContainerBuild)) throw invalid('containerBuilds');
  return { format: 1, images, assets, hostPackages, containerBuilds };
}

function hasDigest(value: Record<string, unknown>): boolean {
  return isDigest(value['digest']);
}

function isImage(value: unknown): value is LockedImage {
  if (!isObject(value) || !isObject(value['platforms'])) return false;
  const platforms = Object.values(value['platforms']);
  return (
    typeof value['id'] === 'string' &&
    typeof value['reference'] === 'string' &&
    hasDigest(value) &&
    platforms.every((one) => isObject(one) && hasDigest(one) && Number.isSafeInteger(one['size']))
  );
}

function isAsset(value: unknown): value is LockedAsset {
  if (!isObject(value)) return false;
  const { name, source, size } = value;
  return typeof name === 'string' && typeof source === 'string' && Number.isSafeInteger(size) && hasDigest(value);
}

function hasTexts(value: Record<string, unknown>, ...keys: readonly string[]): boolean {
  return keys.every((key) => typeof value[key] === 'string');
}

function isFile(value: unknown): value is LockedFile {
  if (!isObject(value) || !hasDigest(value) || !Number.isSafeInteger(value['size'])) return false;
  return hasTexts(value, 'file', 'name', 'version', 'arch', 'repository');
}

function isHostPackages(value: unknown): value is LockedHostPackages {
  if (!isObject(value) || !hasTexts(value, 'os', 'arch', 'inputs')) return false;
  const { archives, deps, files, required } = value;
  return isTexts(archives) && isTexts(deps) && isTexts(required) && Array.isArray(files) && files.every(isFile);
}

function isContainerBuild(value: unknown): value is LockedContainerBuild {
  if (!isObject(value) || !hasTexts(value, 'folder', 'arch', 'dockerfile', 'version')) return false;
  return isDigest(value['inputs']) && isTexts(value['requires']);
}
