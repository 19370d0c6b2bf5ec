/**
 * What a store offers of a release: its catalogue, and the external add-ons that `external/addon-registry.json` names for it, as
 * kURL's API merges them (kurl.md 3.6).
 */
import { satisfies } from 'semver';
import { parseCatalogue, type Catalogue, type CatalogueVersion } from '../../core/catalogue.ts';
import { storeKey } from '../../core/layout.ts';
import { compareText, compareVersions } from '../../core/ref.ts';
import { ofRegistry, readCatalogue } from '../catalogue.ts';
import type { Store } from '../store.ts';
import { parseRegistry, type AddonRegistry, type RegistryRow } from './external.ts';

interface Cancellable {
  readonly signal: AbortSignal;
}

const REGISTRY_LIMIT = 16 << 20;

/** The catalogue of a release with its external add-ons, by default of the current one; `NOT_FOUND` when there is none. */
export async function offeredCatalogue(
  store: Store,
  { release, signal }: { readonly release: string | undefined } & Cancellable,
): Promise<Catalogue> {
  return withStoredExternal(store, await readCatalogue(store, { release, signal }), { signal });
}

/** The catalogue with the external add-ons of its store. */
export async function withStoredExternal(store: Store, catalogue: Catalogue, options: Cancellable): Promise<Catalogue> {
  const registry = await findRegistry(store, options);
  return registry === undefined ? catalogue : withExternal(catalogue, registry, store.address);
}

async function findRegistry(store: Store, { signal }: Cancellable): Promise<AddonRegistry | undefined> {
  return ofRegistry(async (key) => {
    const found = await store.read(key, { limit: REGISTRY_LIMIT, signal });
    return found && parseRegistry(Buffer.from(found.data).toString(), `${store.address}/${key}`);
  });
}

/**
 * External versions stand before those of the release, so that `latest` is the newest of them; what the release has itself stays as
 * it is. Prereleases, and versions for other releases, do not count. Pure; `PACKAGE_INVALID` where a row is damaged.
 */
function withExternal(catalogue: Catalogue, registry: AddonRegistry, from: string): Catalogue {
  const { format, release, addons } = catalogue;
  const found = [...registry].flatMap(([name, rows]) => {
    const own = addons.find((addon) => addon.name === name)?.versions ?? [];
    const versions = rows
      .filter((row) => !row.isPrerelease && isFor(row, release))
      .filter(({ version }) => own.every((one) => one.version !== version))
      .toSorted((a, b) => compareVersions(b.version, a.version))
      .map(versionOf);
    return versions.length === 0 ? [] : [{ name, versions, own }];
  });
  if (found.length === 0) return catalogue;
  // Of those that can be read, every field is judged as in a catalogue.
  const readable = found.flatMap(({ name, versions }) => {
    const known = versions.filter(({ packages }) => Object.keys(packages).length > 0);
    return known.length === 0 ? [] : [{ name, versions: known }];
  });
  parseCatalogue(JSON.stringify({ format, release, addons: readable }), `${from}/${storeKey.addonRegistry}`);
  const others = addons.filter(({ name }) => found.every((one) => one.name !== name));
  const merged = found.map(({ name, versions, own }) => ({ name, versions: [...versions, ...own] }));
  return { ...catalogue, addons: [...others, ...merged].toSorted((a, b) => compareText(a.name, b.name)) };
}

/** Releases in kURL's manner, `v2026.11.20-0`, are versions to whoever is not strict. */
function isFor({ kurlVersionCompatibilityRange: range }: RegistryRow, release: string): boolean {
  return range.trim() === '*' || satisfies(release, range, { includePrerelease: true, loose: true });
}

function versionOf({ version, curlew }: RegistryRow): CatalogueVersion {
  if (curlew === undefined) return { version, tree: 'addons', requires: [], fulfills: [], packages: {} };
  const { arch, tree, requires, fulfills, recommends, entry } = curlew;
  const about = { version, tree, requires, fulfills, ...(recommends === undefined ? {} : { recommends }) };
  return { ...about, packages: { [arch]: { ...entry, external: true } } };
}
