/**
 * `index.json` of a release: every add-on with its versions in order (the first is what `latest` means) and where its
 * packages are. Pure; publishing writes it, bundles and nodes read it.
 */
import { canonicalJson, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { isObject, isSize, isTexts, parseObject } from './json.ts';
import { packageFileName, storeKey } from './layout.ts';
import { addonRef, ARCHES, isVersion, type AddonRef, type AddonTree, type Arch } from './ref.ts';

export const CATALOGUE_FORMAT = 1;
/** Size limit of an `index.json`, in bytes. */
export const CATALOGUE_LIMIT: number = 64 << 20;

interface CatalogueImage {
  readonly reference: string;
  readonly digest: Digest;
}

/** One package; its key is the release and {@link packageFileName}. */
export interface CataloguePackage {
  /** The package's identity. */
  readonly digest: Digest;
  /** Of the file. */
  readonly sha256: Digest;
  /** Of its table of contents, which covers every other byte; absent in older catalogues. */
  readonly toc?: Digest;
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes when unpacked. */
  readonly unpacked: number;
  readonly images: readonly CatalogueImage[];
  /** Stored under `external/`, shared by all releases. */
  readonly external?: true;
}

export interface CatalogueVersion {
  readonly version: string;
  readonly tree: AddonTree;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  /** Absent when there are none. */
  readonly recommends?: readonly string[];
  readonly packages: Readonly<Partial<Record<Arch, CataloguePackage>>>;
}

interface CatalogueAddon {
  readonly name: string;
  /** Never empty; the first is the latest. */
  readonly versions: readonly CatalogueVersion[];
}

export interface Catalogue {
  readonly format: typeof CATALOGUE_FORMAT;
  readonly release: string;
  /** By name. */
  readonly addons: readonly CatalogueAddon[];
}

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
  const value = parseObject(text, bad);
  const { format, release, addons } = value;
  if (format !== CATALOGUE_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: catalogue format ${JSON.stringify(format)} is not supported`, {
      hint: 'a newer curlew wrote it; use that version or a newer one',
    });
  }
  if (typeof release !== 'string' || !isRelease(release)) throw bad('the release is not valid');
  if (!Array.isArray(addons)) throw bad('no add-ons');
  const files = new Set<string>();
  const names = new Set<string>();
  for (const addon of addons as readonly unknown[]) {
    const name = isObject(addon) && typeof addon['name'] === 'string' ? addon['name'] : '';
    const problem = addonProblem(addon, name, files);
    if (problem !== undefined) throw bad(`${JSON.stringify(name.slice(0, 100))}: ${problem}`);
    if (names.has(name)) throw bad(`${name} is listed twice`);
    names.add(name);
  }
  // Every field is checked above.
  return value as unknown as Catalogue;
}

function addonProblem(addon: unknown, name: string, files: Set<string>): string | undefined {
  if (!isObject(addon)) return 'not an object';
  const { versions } = addon;
  if (!Array.isArray(versions) || versions.length === 0) return 'no versions';
  for (const entry of versions as readonly unknown[]) {
    if (!isObject(entry)) return 'a version is not an object';
    const { version, tree, requires, fulfills, recommends = [], packages } = entry;
    if (typeof version !== 'string') return 'a version has no name';
    if (tree !== 'addons' && tree !== 'packages') return `${version}: tree is not valid`;
    try {
      addonRef(name, version, tree);
    } catch (error) {
      if (error instanceof CurlewError) return error.message;
      throw error;
    }
    if (!isTexts(requires) || !isTexts(fulfills)) return `${version}: requires or fulfills is not valid`;
    if (!isTexts(recommends)) return `${version}: recommends is not valid`;
    if (!isObject(packages) || Object.keys(packages).length === 0) return `${version}: no packages`;
    for (const [arch, found] of Object.entries(packages)) {
      const known = ARCHES.find((one) => one === arch);
      if (known === undefined || !isPackage(found)) return `${version}: package ${arch.slice(0, 40)} is not valid`;
      const file = packageFileName({ name, version }, known);
      if (files.has(file)) return `two packages named ${file}`;
      files.add(file);
    }
  }
  return undefined;
}

function isPackage(value: unknown): value is CataloguePackage {
  if (!isObject(value)) return false;
  const { digest, sha256, toc, size, unpacked, images } = value;
  return (
    isDigest(digest) &&
    isDigest(sha256) &&
    (toc === undefined || isDigest(toc)) &&
    isSize(size) &&
    isSize(unpacked) &&
    Array.isArray(images) &&
    images.every(
      (image: unknown) => isObject(image) && typeof image['reference'] === 'string' && isDigest(image['digest']),
    )
  );
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
