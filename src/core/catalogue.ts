/**
 * `index.json` of a release: every add-on with its versions in order (the first is what `latest` means) and where its
 * packages are. Pure; publishing writes it, bundles and nodes read it.
 */
import * as v from 'valibot';
import { canonicalJson } from './digest.ts';
import { CurlewError } from './errors.ts';
import { packageFileName, storeKey } from './layout.ts';
import { addonRef, ARCHES, isVersion, type AddonRef, type Arch } from './ref.ts';
import { digest, longList, readJson, size, texts, tree, type Read } from './schema.ts';

export const CATALOGUE_FORMAT = 1;
/** Size limit of an `index.json`, in bytes. */
export const CATALOGUE_LIMIT: number = 64 << 20;

/** One package; its key is the release and {@link packageFileName}. */
const cataloguePackage = v.object({
  /** The package's identity. */
  digest,
  /** Of the file. */
  sha256: digest,
  /** Of its table of contents, which covers every other byte; absent in older catalogues. */
  toc: v.exactOptional(digest),
  /** Bytes of the file. */
  size,
  /** Bytes when unpacked. */
  unpacked: size,
  images: v.array(v.object({ reference: v.string(), digest })),
  /** Stored under `external/`, shared by all releases; any other value means that it is not. */
  external: v.exactOptional(v.custom<true>(() => true)),
});
export type CataloguePackage = Read<typeof cataloguePackage>;

const onePackage = v.exactOptional(cataloguePackage);
const catalogueVersion = v.object({
  version: v.string(),
  tree,
  requires: texts,
  fulfills: texts,
  /** Absent when there are none. */
  recommends: v.exactOptional(texts),
  packages: v.pipe(
    v.strictObject({ amd64: onePackage, arm64: onePackage }, 'not a known architecture'),
    v.minEntries(1, 'empty'),
  ),
});
export type CatalogueVersion = Read<typeof catalogueVersion>;

const catalogueSchema = v.object({
  format: v.literal(CATALOGUE_FORMAT),
  release: v.pipe(v.string(), v.check(isRelease, 'not a release')),
  /** By name. */
  addons: longList(
    v.object({
      name: v.string(),
      /** The first is the latest. */
      versions: v.pipe(v.array(catalogueVersion), v.minLength(1, 'empty')),
    }),
  ),
});
export type Catalogue = Read<typeof catalogueSchema>;

/** Canonical text of a catalogue. */
export function formatCatalogue(catalogue: Catalogue): string {
  return `${canonicalJson(catalogue)}\n`;
}

/** A release string is a folder name in a store: `v2026.11.20-0`, or any other valid version. */
export function isRelease(text: string): boolean {
  return isVersion(text) && text !== 'VERSION' && !text.endsWith('.tar.gz') && !text.endsWith('.json');
}

/** Reads an `index.json` from outside; `from` names it for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseCatalogue(text: string, from: string): Catalogue {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: not a valid catalogue: ${what}`, {
      hint: 'publish the release again under another name',
      cause,
    });
  const other = (shown: string): CurlewError =>
    new CurlewError('UNSUPPORTED', `${from}: catalogue format ${shown} is not supported`, {
      hint: 'a newer curlew wrote it; use that version or a newer one',
    });
  const catalogue = readJson(catalogueSchema, text, { bad, format: { only: CATALOGUE_FORMAT, other } });
  const files = new Set<string>();
  const names = new Set<string>();
  for (const { name, versions } of catalogue.addons) {
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
  return catalogue;
}

/** The package of an add-on's version, or undefined if the catalogue does not have it. */
export function findPackage(
  catalogue: Catalogue,
  { name, version }: Pick<AddonRef, 'name' | 'version'>,
  arch: Arch,
): { readonly entry: CatalogueVersion; readonly file: string; readonly found: CataloguePackage } | undefined {
  const addon = catalogue.addons.find((one) => one.name === name);
  const entry = addon?.versions.find((one) => one.version === version);
  const found = entry?.packages[arch];
  if (entry === undefined || found === undefined) return undefined;
  return { entry, file: packageFileName({ name, version }, arch), found };
}

/** The key of a package in the store. */
export function packageKey(
  release: string,
  ref: Pick<AddonRef, 'name' | 'version'>,
  arch: Arch,
  { external }: Pick<CataloguePackage, 'external'>,
): string {
  if (external === true) return storeKey.external(packageFileName(ref, 'amd64'));
  return storeKey.package(release, packageFileName(ref, arch));
}
