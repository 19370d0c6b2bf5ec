/** `bundle.json` at the root of a bundle: what the bundle contains and what it was built from. Pure; nodes read it. */
import * as v from 'valibot';
import { canonicalJson } from './digest.ts';
import { errorAbout, type CurlewError } from './errors.ts';
import { BUNDLE_JSON, prefixOf } from './layout.ts';
import { addonRef } from './ref.ts';
import { arch, digest, fileName, readJson, size, tree, type Read } from './schema.ts';

export const BUNDLE_FORMAT = 1;
/** Size limit of a `bundle.json`, in bytes. */
export const BUNDLE_JSON_LIMIT: number = 16 << 20;
/** Size limit of an installer spec, in bytes. */
export const INSTALLER_LIMIT: number = 4 << 20;

const packageEntries = {
  name: v.string(),
  version: v.string(),
  tree,
  arch,
  /** Version in the spec: exact, `latest`, `1.2.x`, `channel:stable`. */
  requested: v.string(),
  /** Why a channel has this version; absent if none was asked. */
  because: v.exactOptional(v.string()),
  /** The package's identity. */
  digest,
  /** Digest of the package file in the store. */
  sha256: digest,
  /** Bytes of the package file. */
  size,
};
const bundledPackage = v.object(packageEntries);
export type BundledPackage = Read<typeof bundledPackage>;

/** Recorded when a bundle leaves out some folders of operating systems. */
const bundledSystems = v.object({
  /** The folders that are kept, in packages that have them. */
  kept: v.pipe(v.array(fileName), v.minLength(1, 'empty')),
  /** Unpacked bytes of the files that were left out. */
  omitted: size,
});
export type BundledSystems = Read<typeof bundledSystems>;

/** Recorded in a delta, which contains only what its target is missing: the bundle that it recreates there. */
const deltaJson = v.object({
  /** Identity of the target's inventory. */
  since: digest,
  /** Digest of the table of contents of the recreated bundle. */
  contents: digest,
  /** Bytes of the recreated bundle. */
  size,
});
export type DeltaJson = Read<typeof deltaJson>;

/**
 * Why a bundle contains a package that the spec does not name: an upgrade passes through this version (`step`), the machine
 * itself needs it (`machine`), or it was requested so that a later spec may name it (`asked`).
 */
const besideRole = v.picklist(['step', 'machine', 'asked']);
export type BesideRole = Read<typeof besideRole>;

const besidePackage = v.object({ ...packageEntries, role: besideRole });
export type BesidePackage = Read<typeof besidePackage>;

const bundleJson = v.object({
  format: v.literal(BUNDLE_FORMAT),
  release: v.string(),
  arch,
  /** Digest of `installer.yaml` in the bundle. */
  installer: digest,
  /** Packages in the order in which they are installed. */
  packages: v.array(bundledPackage),
  /** Packages that the spec does not name; absent when there are none. */
  beside: v.optional(v.array(besidePackage)),
  /** Absent when the packages are complete. */
  os: v.optional(bundledSystems),
  /** The scripts that read it; absent for curlew's own. */
  layout: v.optional(v.literal('kurl')),
  /** Version of curlew that built the bundle. */
  tool: v.string(),
  /** Absent in a complete bundle. */
  delta: v.exactOptional(deltaJson),
});
export type BundleJson = Read<typeof bundleJson>;

/** Canonical text of a `bundle.json`; nothing in it depends on time or place. */
export function formatBundleJson(bundle: BundleJson): string {
  return `${canonicalJson(bundle)}\n`;
}

/** Reads a `bundle.json` from outside; `from` names the bundle for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseBundleJson(text: string, from: string): BundleJson {
  const bad = errorAbout('PACKAGE_INVALID', `${from}: ${BUNDLE_JSON}`);
  const unsupported = errorAbout('UNSUPPORTED', from, 'a newer curlew built this bundle; use the one inside it');
  const other = (shown: string): CurlewError => unsupported(`bundle format ${shown} is not supported`);
  const bundle = readJson(bundleJson, text, { bad, format: { only: BUNDLE_FORMAT, other } });
  const names = new Set<string>();
  const prefixes = new Set<string>();
  for (const { name, version, tree } of bundle.packages) {
    if (names.has(name)) throw bad(`${name} is listed twice`);
    names.add(name);
    prefixes.add(prefixOf(addonRef(name, version, tree)));
  }
  for (const { name, version, tree } of bundle.beside ?? []) {
    const prefix = prefixOf(addonRef(name, version, tree));
    if (prefixes.has(prefix)) throw bad(`${prefix} is listed twice`);
    prefixes.add(prefix);
  }
  return bundle;
}
