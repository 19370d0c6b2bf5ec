/**
 * `index.json` of a release: every add-on with its versions in order (the first is what `latest` means) and where its
 * packages are. Pure; publishing writes it, bundles and nodes read it.
 */
import { canonicalJson, isDigest, type Digest } from './digest.ts';
import { CurlewError } from './errors.ts';
import { isObject, isTexts, parseObject } from './json.ts';
import { packageFileName, storeKey } from './layout.ts';
import { addonRef, ARCHES, isVersion, type AddonRef, type AddonTree, type Arch } from './ref.ts';

export const CATALOGUE_FORMAT = 1;
/** Most bytes of an `index.json` that are read. */
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
  /** Of its table of contents, which names every other byte; absent in catalogues that do not know it. */
  readonly toc?: Digest;
  /** Bytes of the file. */
  readonly size: number;
  /** Bytes when unpacked. */
  readonly unpacked: number;
  readonly images: readonly CatalogueImage[];
  /** Below `external/`, for all releases. */
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

/** A release string is a folder name in a store: `v2026.11.20-0`, or anything else of that shape. */
export function isRelease(text: string): boolean {
  return isVersion(text) && text !== 'VERSION' && !text.endsWith('.tar.gz') && !text.endsWith('.json');
}

/** Reads an `index.json` from outside; `from` names it for messages. Anything wrong is `PACKAGE_INVALID`. */
export function parseCatalogue(text: string, from: string): Catalogue {
  const bad = (what: string, cause?: unknown): CurlewError =>
    new CurlewError('PACKAGE_INVALID', `${from}: not a catalogue: ${what}`, {
      hint: 'publish the release again under another name',
      cause,
    });
  const value = parseObject(text, bad);
  const { format, release, addons } = value;
  if (format !== CATALOGUE_FORMAT) {
    throw new CurlewError('UNSUPPORTED', `${from}: catalogue format ${JSON.stringify(format)} is not known`, {
      hint: 'a newer curlew made it; use that version or a newer one',
    });
  }
  if (typeof release !== 'string' || !isRelease(release)) throw bad('its release is not valid');
  if (!Array.isArray(addons)) throw bad('it has no add-ons');
  const files = new Set<string>();
  const names = new Set<string>();
  for (const addon of addons as readonly unknown[]) {
    const name = isObject(addon) && typeof addon['name'] === 'string' ? addon['name'] : '';
    const problem = addonProblem(addon, name, files);
    if (problem !== undefined) throw bad(`${JSON.stringify(name.slice(0, 100))}: ${problem}`);
    if (names.has(name)) throw bad(`${name} stands twice`);
    names.add(name);
  }
  // Every field was checked above; the shape is the interface's.
  return value as unknown as Catalogue;
}

function addonProblem(addon: unknown, name: string, files: Set<string>): string | undefined {
  if (!isObject(addon)) return 'it is no object';
  const { versions } = addon;
  if (!Array.isArray(versions) || versions.length === 0) return 'it has no versions';
  for (const entry of versions as readonly unknown[]) {
    if (!isObject(entry)) return 'a version is no object';
    const { version, tree, requires, fulfills, recommends = [], packages } = entry;
    if (typeof version !== 'string') return 'a version has no name';
    if (tree !== 'addons' && tree !== 'packages') return `${version}: tree`;
    try {
      addonRef(name, version, tree);
    } catch (error) {
      if (error instanceof CurlewError) return error.message;
      throw error;
    }
    if (!isTexts(requires) || !isTexts(fulfills)) return `${version}: requires or fulfills`;
    if (!isTexts(recommends)) return `${version}: recommends`;
    if (!isObject(packages) || Object.keys(packages).length === 0) return `${version}: it has no packages`;
    for (const [arch, found] of Object.entries(packages)) {
      const known = ARCHES.find((one) => one === arch);
      if (known === undefined || !isPackage(found)) return `${version}: package ${arch.slice(0, 40)}`;
      const file = packageFileName({ name, version }, known);
      if (files.has(file)) return `two packages of the name ${file}`;
      files.add(file);
    }
  }
  return undefined;
}

function isPackage(value: unknown): value is CataloguePackage {
  if (!isObject(value)) return false;
  const { digest, sha256, toc, size, unpacked, images } = value;
  return (
    isDigestText(digest) &&
    isDigestText(sha256) &&
    (toc === undefined || isDigestText(toc)) &&
    isSize(size) &&
    isSize(unpacked) &&
    Array.isArray(images) &&
    images.every(
      (image: unknown) => isObject(image) && typeof image['reference'] === 'string' && isDigestText(image['digest']),
    )
  );
}

/** The package of an add-on's version, or undefined when the catalogue does not have it. */
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

/** Its key in the store. */
export function packageKey(
  release: string,
  ref: Pick<AddonRef, 'name' | 'version'>,
  arch: Arch,
  { external }: Pick<CataloguePackage, 'external'>,
): string {
  if (external === true) return storeKey.external(packageFileName(ref, 'amd64'));
  return storeKey.package(release, packageFileName(ref, arch));
}

function isDigestText(value: unknown): value is Digest {
  return typeof value === 'string' && isDigest(value);
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
