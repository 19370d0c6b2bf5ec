/** `Manifest.lock`: the resolved directives. Canonical JSON, written into every package. */
import * as v from 'valibot';
import { canonicalJson } from '../core/digest.ts';
import { CurlewError, errorAbout } from '../core/errors.ts';
import { isObject, parseText, shallowJson } from '../core/json.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import { byKey, checked, digest, integer, textList, type Read } from '../core/schema.ts';

/** Size limit of a lock, in bytes. */
export const LOCK_LIMIT: number = 32 << 20;

const lockedImage = v.object({
  id: v.string(),
  /** Normalized, as in the Manifest, with the resolved tag. */
  reference: v.string(),
  /** Digest of the index or manifest in the registry; for a local image, of the archive file. */
  digest,
  /** By platform: the packed manifest. */
  platforms: byKey(v.object({ digest, size: integer })),
});
export type LockedImage = Read<typeof lockedImage>;

const lockedAsset = v.object({
  name: v.string(),
  /** Text from the Manifest. */
  source: v.string(),
  size: integer,
  digest,
});
export type LockedAsset = Read<typeof lockedAsset>;

/** A package file, by its name in the package manager, and its source. */
const lockedFile = v.object({
  file: v.string(),
  name: v.string(),
  /** `[epoch:]version[-release]`. */
  version: v.string(),
  /** Name that the package manager uses: `x86_64`, `all`. */
  arch: v.string(),
  size: integer,
  digest,
  /** URL without user info and query, or the repository's id. */
  repository: v.string(),
});
export type LockedFile = Read<typeof lockedFile>;

/** The host packages of one operating system. */
const lockedHostPackages = v.object({
  os: v.string(),
  arch: v.string(),
  /** Names in the order of the Manifest: those whose files are packed, and those that are only in `Deps`. */
  archives: textList,
  deps: textList,
  /** The other inputs of the result: the builder image or the repositories. Empty if nothing was fetched. */
  inputs: v.string(),
  files: v.array(lockedFile),
  /** The lines of `Deps`. */
  required: textList,
});
export type LockedHostPackages = Read<typeof lockedHostPackages>;

/** The inputs of a container build. Its output is in the package's index. */
const lockedContainerBuild = v.object({
  folder: v.string(),
  arch: v.string(),
  /** Text from the Manifest. */
  dockerfile: v.string(),
  version: v.string(),
  /** Digest of Dockerfile, context, version and base images. */
  inputs: digest,
  /** Names required by the packages that it built, for systems whose packages are not resolved. */
  requires: textList,
});

const manifestLock = v.object({
  format: v.literal(1),
  images: v.array(lockedImage),
  assets: v.array(lockedAsset),
  hostPackages: v.array(lockedHostPackages),
  containerBuilds: v.array(lockedContainerBuild),
});
export type ManifestLock = Read<typeof manifestLock>;

export function formatLock(lock: ManifestLock): string {
  return `${canonicalJson(lock)}\n`;
}

/** Reads a lock from outside; `from` names the file for messages. One of a later format is `UNSUPPORTED`. */
export function parseLock(text: string, from: string): ManifestLock {
  return checkedLock(parseText(text, shallowJson, invalidLock(from)), from);
}

function invalidLock(from: string): ReturnType<typeof errorAbout> {
  return errorAbout('PACKAGE_INVALID', `${from}: ${MANIFEST_LOCK}`);
}

/** Checks a lock that is already parsed as JSON. */
export function checkedLock(value: unknown, from: string): ManifestLock {
  if (isObject(value) && typeof value['format'] === 'number' && value['format'] > 1) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${from}: ${MANIFEST_LOCK}: not a lock of format 1, but of ${value['format']}`,
      { hint: 'a newer curlew wrote it; use that version or a newer one' },
    );
  }
  if (!isObject(value) || value['format'] !== 1) throw invalidLock(from)('not a lock of format 1');
  const lock = checked(manifestLock, value, invalidLock(from));
  const { format, images, assets, hostPackages, containerBuilds } = lock;
  return { format, images, assets, hostPackages, containerBuilds };
}
