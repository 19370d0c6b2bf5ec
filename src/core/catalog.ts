/**
 * `index.json` of a release: every add-on with its versions in order (the first is what `latest` means) and where its
 * packages are. Pure; publishing writes it, bundles and nodes read it.
 */
import * as v from 'valibot';
import { canonicalJson } from './digest.ts';
import { CurlewError, errorAbout } from './errors.ts';
import { packageFileName, storeKey } from './layout.ts';
import { addonRef, ARCHES, isAddonName, isVersion, type AddonRef, type Arch } from './ref.ts';
import { digest, longList, readJson, size, textList, tree, type Read } from './schema.ts';

export const CATALOG_FORMAT = 1;
/** Size limit of an `index.json`, in bytes. */
export const CATALOG_LIMIT: number = 64 << 20;

/** One package; its key is the release and {@link packageFileName}. */
const catalogPackage = v.object({
  /** The package's identity. */
  digest,
  /** Digest of the file. */
  sha256: digest,
  /** Digest of its table of contents, which covers every other byte; absent in older catalogs. */
  toc: v.exactOptional(digest),
  /** Bytes of the file. */
  size,
  /** Bytes when unpacked. */
  unpacked: size,
  images: v.array(v.object({ reference: v.string(), digest })),
  /** Stored under `external/`, shared by all releases; any other value means that it is not. */
  external: v.exactOptional(v.custom<true>(() => true)),
});
export type CatalogPackage = Read<typeof catalogPackage>;

const onePackage = v.exactOptional(catalogPackage);
const catalogVersion = v.object({
  version: v.string(),
  tree,
  requires: textList,
  fulfills: textList,
  /** Absent when there are none. */
  recommends: v.exactOptional(textList),
  /** Range of the Kubernetes versions that it is for; absent for all of them. */
  kubernetesVersion: v.exactOptional(v.string()),
  packages: v.pipe(
    v.strictObject({ amd64: onePackage, arm64: onePackage }, 'not a known architecture'),
    v.minEntries(1, 'empty'),
  ),
});
export type CatalogVersion = Read<typeof catalogVersion>;

/** True for the name of a channel of a release, which is part of a key. */
export function isChannelName(text: string): boolean {
  return isAddonName(text);
}

/** True for an instant as catalogs have it: ISO 8601 in UTC, with milliseconds. */
export function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text));
}

const catalogSchema = v.object({
  format: v.literal(CATALOG_FORMAT),
  release: v.pipe(v.string(), v.check(isRelease, 'not a release')),
  /** When the release first appeared, ISO 8601 in UTC; a copy of the store keeps it. Absent in older catalogs. */
  published: v.exactOptional(v.pipe(v.string(), v.check(isTime, 'not a time'))),
  /** Names of the channels that are published with it, sorted; absent when there are none. */
  channels: v.exactOptional(v.array(v.pipe(v.string(), v.check(isChannelName, 'not the name of a channel')))),
  /** By name. */
  addons: longList(
    v.object({
      name: v.string(),
      /** The first is the latest. */
      versions: v.pipe(v.array(catalogVersion), v.minLength(1, 'empty')),
    }),
  ),
});
export type Catalog = Read<typeof catalogSchema>;

/** Canonical text of a catalog. */
export function formatCatalog(catalog: Catalog): string {
  return `${canonicalJson(catalog)}\n`;
}

/** A release string is a folder name in a store: `v2026.11.20-0`, or any other valid version. */
export function isRelease(text: string): boolean {
  return isVersion(text) && text !== 'VERSION' && !text.endsWith('.tar.gz') && !text.endsWith('.json');
}

/** Reads an `index.json` from outside; `from` names it for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseCatalog(text: string, from: string): Catalog {
  const bad = errorAbout(
    'PACKAGE_INVALID',
    `${from}: not a valid catalog`,
    'publish the release again under another name',
  );
  const unsupported = errorAbout('UNSUPPORTED', from, 'a newer curlew wrote it; use that version or a newer one');
  const other = (shown: string): CurlewError => unsupported(`catalog format ${shown} is not supported`);
  const catalog = readJson(catalogSchema, text, { bad, format: { only: CATALOG_FORMAT, other } });
  const files = new Set<string>();
  const names = new Set<string>();
  for (const { name, versions } of catalog.addons) {
    if (names.has(name)) throw bad(`${name} is listed twice`);
    names.add(name);
    for (const { version, tree, packages } of versions) {
      try {
        addonRef(name, version, tree);
      } catch (error) {
        throw error instanceof CurlewError ? bad(error.message) : error;
      }
      for (const one of ARCHES.filter((known) => packages[known] !== undefined)) {
        const file = packageFileName({ name, version }, one);
        if (files.has(file)) throw bad(`${JSON.stringify(name)}: two packages named ${file}`);
        files.add(file);
      }
    }
  }
  return catalog;
}

/** The package of an add-on's version, or undefined if the catalog does not have it. */
export function findPackage(
  catalog: Catalog,
  { name, version }: Pick<AddonRef, 'name' | 'version'>,
  arch: Arch,
): { readonly entry: CatalogVersion; readonly file: string; readonly listed: CatalogPackage } | undefined {
  const addon = catalog.addons.find((one) => one.name === name);
  const entry = addon?.versions.find((one) => one.version === version);
  const listed = entry?.packages[arch];
  if (entry === undefined || listed === undefined) return undefined;
  return { entry, file: packageFileName({ name, version }, arch), listed };
}

/** The key of a package in the store. */
export function packageKey(
  release: string,
  ref: Pick<AddonRef, 'name' | 'version'>,
  arch: Arch,
  { external }: Pick<CatalogPackage, 'external'>,
): string {
  if (external === true) return storeKey.external(packageFileName(ref, 'amd64'));
  return storeKey.package(release, packageFileName(ref, arch));
}
