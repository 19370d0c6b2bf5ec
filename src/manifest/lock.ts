/** `Manifest.lock`: what each directive resolved to. Canonical JSON, written into every package. */
import { canonicalJson, isDigest, type Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';

export interface LockedImage {
  readonly id: string;
  /** Normalised, as in the Manifest: with the tag that was resolved. */
  readonly reference: string;
  /** What the reference named in the registry: an index or a manifest; of the archive file for a local one. */
  readonly digest: Digest;
  /** Platform to the manifest that was packed for it. */
  readonly platforms: Readonly<Record<string, { readonly digest: Digest; readonly size: number }>>;
}

export interface LockedAsset {
  readonly name: string;
  /** As written in the Manifest. */
  readonly source: string;
  readonly size: number;
  readonly digest: Digest;
}

/** Names that the operator must install: nothing to fetch, but part of what the package says. */
export interface LockedDeps {
  readonly os: string;
  readonly names: readonly string[];
}

export interface ManifestLock {
  readonly format: 1;
  readonly images: readonly LockedImage[];
  readonly assets: readonly LockedAsset[];
  readonly deps: readonly LockedDeps[];
}

export function formatLock(lock: ManifestLock): string {
  return `${canonicalJson(lock)}\n`;
}

/** Reads a lock from outside; `from` names the file for messages. */
export function parseLock(text: string, from: string): ManifestLock {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: ${MANIFEST_LOCK}: ${what}`, { cause });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw bad('not JSON', error);
  }
  if (!isRecord(value) || value['format'] !== 1) throw bad('not a lock of format 1');
  const { images, assets, deps } = value;
  if (!Array.isArray(images) || !images.every(isImage)) throw bad('images');
  if (!Array.isArray(assets) || !assets.every(isAsset)) throw bad('assets');
  if (!Array.isArray(deps) || !deps.every(isDeps)) throw bad('deps');
  return { format: 1, images, assets, deps };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function hasDigest(value: Record<string, unknown>): boolean {
  return typeof value['digest'] === 'string' && isDigest(value['digest']);
}

function isImage(value: unknown): value is LockedImage {
  if (!isRecord(value) || !isRecord(value['platforms'])) return false;
  const platforms = Object.values(value['platforms']);
  return (
    typeof value['id'] === 'string' &&
    typeof value['reference'] === 'string' &&
    hasDigest(value) &&
    platforms.every((one) => isRecord(one) && hasDigest(one) && Number.isSafeInteger(one['size']))
  );
}

function isAsset(value: unknown): value is LockedAsset {
  if (!isRecord(value)) return false;
  const { name, source, size } = value;
  return typeof name === 'string' && typeof source === 'string' && Number.isSafeInteger(size) && hasDigest(value);
}

function isDeps(value: unknown): value is LockedDeps {
  if (!isRecord(value) || !Array.isArray(value['names'])) return false;
  return typeof value['os'] === 'string' && value['names'].every((name) => typeof name === 'string');
}
