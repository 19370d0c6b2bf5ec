/**
 * `addon.json`, the first entry of every package: it describes the package without unpacking it. Pure; the builder writes
 * it; stores, bundles and nodes read it.
 */
import * as v from 'valibot';
import { canonicalJson, digestOf, type Digest } from './digest.ts';
import { errorAbout, type CurlewError } from './errors.ts';
import { ADDON_JSON } from './layout.ts';
import { addonRef, compareText, type AddonRef } from './ref.ts';
import { arch, byKey, digest, fileName, imageFormat, readJson, size, textList, tree, type Read } from './schema.ts';

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

const packageImage = v.object({
  /** The id of the Manifest's `image` line. */
  id: v.string(),
  /** The full normalized reference, as the node's runtime stores it. */
  reference: v.string(),
  /** Digest of the manifest for this package's platform, byte for byte as the registry has it. */
  digest,
  platform: v.string(),
});
export type PackageImage = Read<typeof packageImage>;

/** The package whose image contains the programs that add-ons run in pods; KURL_UTIL_IMAGE names that image. */
export const HELPER_PACKAGE = 'curlew-utils';

export type ImageFormat = Read<typeof imageFormat>;

const addonJson = v.object({
  format: v.literal(PACKAGE_FORMAT),
  name: v.string(),
  version: v.string(),
  tree,
  arch,
  /** Folders of operating systems in the package, such as `rhel-9`. */
  os: v.array(fileName),
  /** Lifecycle functions that install.sh defines, by their full names. */
  hooks: textList,
  images: v.array(packageImage),
  imageFormat,
  /** By OS folder: names of the packages that the operator must install. */
  deps: byKey(textList),
  /** Sums of unpacked sizes in bytes. */
  unpacked: v.object({ files: size, images: size }),
  requires: textList,
  fulfills: textList,
  /** Absent when there are none. */
  recommends: v.exactOptional(textList),
  /** Range of the Kubernetes versions that it is for; absent for all of them. */
  kubernetesVersion: v.exactOptional(v.string()),
  /** JSON Schema of the add-on's settings, if it includes one. */
  settings: v.optional(v.unknown()),
  /** Version of curlew that built the package. */
  tool: v.string(),
  /** The package's identity; see {@link packageDigest}. */
  digest,
});
export type AddonJson = Read<typeof addonJson>;

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
  const bad = errorAbout('PACKAGE_INVALID', `${from}: ${ADDON_JSON}`);
  const hint = 'a newer curlew built this package; use that version or a newer one';
  const unsupported = errorAbout('UNSUPPORTED', from, hint);
  const other = (shown: string): CurlewError => unsupported(`package format ${shown} is not supported`);
  const addon = readJson(addonJson, text, { bad, format: { only: PACKAGE_FORMAT, other } });
  refOf(addon);
  return addon;
}
