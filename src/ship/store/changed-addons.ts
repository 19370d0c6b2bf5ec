/** The differences between two releases of a store. Pure. */
import type { Catalog, CatalogPackage } from '../../core/catalog.ts';
import { compareText, type Arch } from '../../core/ref.ts';
import { formatBytes } from '../../core/units.ts';

export interface AddonChange {
  readonly name: string;
  /** The difference, for people. */
  readonly lines: readonly string[];
  /** The sizes of the newest version before and after, for people, or the only one. */
  readonly size: string;
}

type Packages = ReadonlyMap<string, CatalogPackage>;

function packagesOf({ addons }: Catalog, arch: Arch): ReadonlyMap<string, Packages> {
  return new Map(
    addons.map(({ name, versions }) => {
      const built = versions.flatMap(({ version, packages }) => {
        const listed = packages[arch];
        return listed === undefined ? [] : [[version, listed] as const];
      });
      return [name, new Map(built)];
    }),
  );
}

/** The add-ons with other packages for an architecture, by name. */
export function changedAddons(before: Catalog, after: Catalog, arch: Arch): readonly AddonChange[] {
  const [was, is] = [packagesOf(before, arch), packagesOf(after, arch)];
  const names = [...new Set([...was.keys(), ...is.keys()])].toSorted(compareText);
  return names.flatMap((name) => {
    const [older, newer] = [was.get(name) ?? new Map(), is.get(name) ?? new Map()];
    const lines = changeLines(older, newer);
    const sizes = [older, newer].flatMap((packages) => newestOf(packages)?.size ?? []);
    return lines.length === 0 ? [] : [{ name, lines, size: sizes.map(formatBytes).join(' → ') }];
  });
}

function newestOf(packages: Packages): CatalogPackage | undefined {
  return packages.values().next().value;
}

function changeLines(older: Packages, newer: Packages): readonly string[] {
  const added = [...newer.keys()].filter((version) => !older.has(version));
  const removed = [...older.keys()].filter((version) => !newer.has(version));
  const [was] = older.keys();
  const [is] = newer.keys();
  const [first, last] = [newestOf(older), newestOf(newer)];
  const isMoved = was !== undefined && is !== undefined && was !== is && first !== undefined && last !== undefined;
  return [
    ...(isMoved ? [`the newest is ${is}, was ${was}`, ...imageLines(first, last, is)] : []),
    ...added.map((version) => `${version} is new`),
    ...removed.map((version) => `${version} is gone`),
    ...[...newer].flatMap(([version, one]) => {
      const other = older.get(version);
      if (other === undefined || other.digest === one.digest) return [];
      return [`${version} has other content`, ...imageLines(other, one, version)];
    }),
  ];
}

/** Compares two versions. An image that the newer one does not name may be one of another version in the same release. */
function imageLines(older: CatalogPackage, newer: CatalogPackage, version: string): readonly string[] {
  const [was, is] = [older, newer].map(({ images }) => new Map(images.map((one) => [one.reference, one.digest])));
  return [
    ...[...(is ?? [])].flatMap(([reference, digest]) => {
      const before = was?.get(reference);
      if (before === undefined) return [`image ${reference} is new in ${version}`];
      return before === digest ? [] : [`image ${reference} has another digest in ${version}`];
    }),
    ...[...(was?.keys() ?? [])]
      .filter((one) => is?.has(one) !== true)
      .map((one) => `image ${one} is not in ${version}`),
  ];
}
