/**
 * The catalog of a release, merged with the external add-ons in `external/addon-registry.json`, as
 * kURL's API merges them (kurl.md 3.6).
 */
import { satisfies } from 'semver';
import type { Cancellable } from '../../core/cancellable.ts';
import { parseCatalog, type Catalog, type CatalogVersion } from '../../core/catalog.ts';
import { storeKey } from '../../core/layout.ts';
import { compareText, compareVersions } from '../../core/ref.ts';
import { tryRegistry, readCatalog } from '../store/read-catalog.ts';
import type { Store } from '../store/store.ts';
import { parseRegistry, REGISTRY_LIMIT, type AddonRegistry, type RegistryRow } from './external.ts';

/** The catalog of a release, by default the current one, with external add-ons; `NOT_FOUND` if it does not exist. */
export async function offeredCatalog(
  store: Store,
  { release, signal }: { readonly release: string | undefined } & Cancellable,
): Promise<Catalog> {
  return withStoredExternal(store, await readCatalog(store, { release, signal }), { signal });
}

/** Adds the external add-ons of the store to a catalog. */
export async function withStoredExternal(store: Store, catalog: Catalog, options: Cancellable): Promise<Catalog> {
  const registry = await tryRegistry(async (key) => {
    const stored = await store.read(key, { limit: REGISTRY_LIMIT, ...options });
    return stored && parseRegistry(Buffer.from(stored.data).toString(), `${store.address}/${key}`);
  });
  return registry === undefined ? catalog : withExternal(catalog, registry, store.address);
}

/**
 * External versions come before the release's own versions, so that `latest` is the newest external one. A version of the
 * release takes precedence over the same external version. Skips prereleases and versions for other releases. Pure; a damaged
 * row is `PACKAGE_INVALID`.
 */
function withExternal(catalog: Catalog, registry: AddonRegistry, from: string): Catalog {
  const { format, release, addons } = catalog;
  const external = [...registry].flatMap(([name, rows]) => {
    const own = addons.find((addon) => addon.name === name)?.versions ?? [];
    const versions = rows
      .filter((row) => !row.isPrerelease && isFor(row, release))
      .filter(({ version }) => own.every((one) => one.version !== version))
      .toSorted((a, b) => compareVersions(b.version, a.version))
      .map(versionOf);
    return versions.length === 0 ? [] : [{ name, versions, own }];
  });
  if (external.length === 0) return catalog;
  // parseCatalog checks every field of the packages that curlew built.
  const readable = external.flatMap(({ name, versions }) => {
    const known = versions.filter(({ packages }) => Object.keys(packages).length > 0);
    return known.length === 0 ? [] : [{ name, versions: known }];
  });
  parseCatalog(JSON.stringify({ format, release, addons: readable }), `${from}/${storeKey.addonRegistry}`);
  const others = addons.filter(({ name }) => external.every((one) => one.name !== name));
  const merged = external.map(({ name, versions, own }) => ({ name, versions: [...versions, ...own] }));
  return { ...catalog, addons: [...others, ...merged].toSorted((a, b) => compareText(a.name, b.name)) };
}

/** kURL's release strings, such as `v2026.11.20-0`, are semantic versions in loose mode only. */
function isFor({ kurlVersionCompatibilityRange: range }: RegistryRow, release: string): boolean {
  return range.trim() === '*' || satisfies(release, range, { includePrerelease: true, loose: true });
}

function versionOf({ version, curlew }: RegistryRow): CatalogVersion {
  if (curlew === undefined) return { version, tree: 'addons', requires: [], fulfills: [], packages: {} };
  const { arch, tree, requires, fulfills, recommends, entry } = curlew;
  const about = { version, tree, requires, fulfills, ...(recommends === undefined ? {} : { recommends }) };
  return { ...about, packages: { [arch]: { ...entry, external: true } } };
}
