/**
 * `addon.json`, the first entry of every package: it describes the package without unpacking it. Pure; the builder writes
 * it; stores, bundles and nodes read it.
 */
import { canonicalJson, digestOf, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { DEEPEST, isObject, isSize, isTexts, parseJson } from './json.ts';
import { ADDON_JSON, pathProblem } from './layout.ts';
import { addonRef, ARCHES, compareText, type AddonRef, type AddonTree, type Arch } from './ref.ts';

export const PACKAGE_FORMAT = 1;
/** Size limit of an `addon.json`, in bytes. */
export const ADDON_JSON_LIMIT: number = 8 << 20;

/** File modes in a package. */
export type FileMode = 0o644 | 0o755;

/** One file of a package; `path` is relative to the package's prefix. */
export interface PackageFile {
  readonly path: string;
  readonly mode: FileMode;
  readonly size: number;
  readonly digest: Digest;
}

export interface PackageImage {
  /** The id of the Manifest's `image` line. */
  readonly id: string;
  /** The full normalized reference, as the node's runtime stores it. */
  readonly reference: string;
  /** Of the manifest for this package's platform, byte for byte as the registry has it. */
  readonly digest: Digest;
  readonly platform: string;
}

/** The package whose image contains the programs that add-ons run in pods; KURL_UTIL_IMAGE names that image. */
export const HELPER_PACKAGE = 'curlew-utils';

export type ImageFormat = 'oci' | 'docker-archive';

export interface AddonJson {
  readonly format: typeof PACKAGE_FORMAT;
  readonly name: string;
  readonly version: string;
  readonly tree: AddonTree;
  readonly arch: Arch;
  /** Folders of operating systems in the package, such as `rhel-9`. */
  readonly os: readonly string[];
  /** Lifecycle functions that install.sh defines, by their full names. */
  readonly hooks: readonly string[];
  readonly images: readonly PackageImage[];
  readonly imageFormat: ImageFormat;
  /** By OS folder: names of the packages that the operator must install. */
  readonly deps: Readonly<Record<string, readonly string[]>>;
  /** Sums of unpacked sizes in bytes. */
  readonly unpacked: { readonly files: number; readonly images: number };
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  /** Absent when there are none. */
  readonly recommends?: readonly string[];
  /** JSON Schema of the add-on's settings, if it includes one. */
  readonly settings: unknown;
  /** Version of curlew that built the package. */
  readonly tool: string;
  /** The package's identity; see {@link packageDigest}. */
  readonly digest: Digest;
}

/**
 * The identity of a package, independent of compression: sha256 over the RFC 8785 JSON of
 * `[path, mode, size, sha256]` of all files except `addon.json`, sorted by path in code units.
 */
export function packageDigest(files: readonly PackageFile[]): Digest {
  const rows = files
    .filter(({ path }) => path !== ADDON_JSON)
    .map(({ path, mode, size, digest }) => [path, mode, size, digest] as const)
    .toSorted(([a], [b]) => compareText(a, b));
  return digestOf(canonicalJson(rows));
}

export function refOf({ tree, name, version }: Pick<AddonJson, 'tree' | 'name' | 'version'>): AddonRef {
  return addonRef(name, version, tree);
}

/** Canonical text of an `addon.json`. */
export function formatAddonJson(addon: AddonJson): string {
  return `${canonicalJson(addon)}\n`;
}

/** Reads an `addon.json` from outside; `from` names the package for messages. */
export function parseAddonJson(text: string, from: string): AddonJson {
  const bad = (what: string): CurlewError => new CurlewError('PACKAGE_INVALID', `${from}: ${ADDON_JSON}: ${what}`);
  let value: unknown;
  try {
    value = parseJson(text, DEEPEST);
  } catch (error) {
    throw new CurlewError('PACKAGE_INVALID', `${from}: ${ADDON_JSON} is not valid JSON`, { cause: error });
  }
  if (!isObject(value)) throw bad('not an object');
  if (value['format'] !== PACKAGE_FORMAT) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${from}: package format ${JSON.stringify(value['format'])} is not supported`,
      {
        hint: 'a newer curlew built this package; use that version or a newer one',
      },
    );
  }
  const { name, version, tree, arch, os, hooks, images, imageFormat, deps, unpacked, digest } = value;
  if (typeof name !== 'string' || typeof version !== 'string') throw bad('name or version is missing');
  if (tree !== 'addons' && tree !== 'packages') throw bad('tree is neither addons nor packages');
  addonRef(name, version, tree);
  if (!ARCHES.some((known) => known === arch)) throw bad('arch is not known');
  if (!isTexts(os) || os.some((folder) => pathProblem(folder) !== undefined || folder.includes('/'))) throw bad('os');
  if (!isTexts(hooks)) throw bad('hooks');
  if (imageFormat !== 'oci' && imageFormat !== 'docker-archive') throw bad('imageFormat');
  if (!Array.isArray(images) || !images.every(isImage)) throw bad('images');
  if (!isObject(deps) || !Object.values(deps).every(isTexts)) throw bad('deps');
  if (!isObject(unpacked) || !isSize(unpacked['files']) || !isSize(unpacked['images'])) throw bad('unpacked');
  if (!isTexts(value['requires']) || !isTexts(value['fulfills'])) throw bad('requires or fulfills');
  if (value['recommends'] !== undefined && !isTexts(value['recommends'])) throw bad('recommends');
  if (typeof value['tool'] !== 'string') throw bad('tool');
  if (!isDigest(digest)) throw bad('digest');
  // Every field is checked above.
  return value as unknown as AddonJson;
}

function isImage(value: unknown): value is PackageImage {
  if (!isObject(value)) return false;
  const { id, reference, digest, platform } = value;
  return (
    typeof id === 'string' &&
    typeof reference === 'string' &&
    typeof platform === 'string' &&
    typeof digest === 'string' &&
    isDigest(digest)
  );
}
