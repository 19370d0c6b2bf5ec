/** Resolves packages that a client requests by name, like kURL's `addon_fetch_multiple_airgap`. Pure. */
import { kubernetesOf, resolvePackage, type ResolvedPackage } from '../bundle/resolve.ts';
import type { Catalog } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { compareText, formatRef, type Arch } from '../../core/ref.ts';
import type { BundleJob } from './plan-protocol.ts';

/** Clients that need more packages request the bundle. */
const MAX_NAMES = 100;
/** Number of unknown names with suggestions: each is compared with every package of the release. */
const MAX_SUGGESTIONS = 3;

/** The installer defines the version for a name without one. */
type NamedOptions = Pick<BundleJob, 'installer' | 'catalog' | 'arch'>;

/**
 * Returns each package once, sorted by key, so that requests for the same packages get the same bytes. `SPEC_INVALID` lists all
 * unknown names, with similar ones.
 */
export function namedPackages(
  names: readonly string[],
  { installer, catalog, arch }: NamedOptions,
): readonly ResolvedPackage[] {
  if (names.length > MAX_NAMES) throw new CurlewError('SPEC_INVALID', `more than ${MAX_NAMES} packages requested`);
  const known = stemsOf(catalog, arch);
  const byKey = new Map<string, ResolvedPackage>();
  const unknown: string[] = [];
  for (const name of names) {
    const stem = name.replaceAll('+', '-');
    const one = known.get(stem) ?? known.get(stemOfSpec(name, { installer, catalog, arch }) ?? '');
    if (one === undefined) {
      unknown.push(name);
      continue;
    }
    const { resolved } = resolvePackage(one, { catalog, arch });
    byKey.set(resolved.key, resolved);
  }
  if (unknown.length === 0) return [...byKey.values()].toSorted((a, b) => compareText(a.key, b.key));
  throw new CurlewError('SPEC_INVALID', `release ${catalog.release} does not contain ${unknown.join(', ')}`, {
    hint: hintFor(unknown, [...known.keys(), ...catalog.addons.map(({ name }) => name)]),
  });
}

type Stems = ReadonlyMap<string, { readonly name: string; readonly requested: string }>;

/** A cache per catalog, because creating a map of a thousand packages would dominate the time of a request. */
const cache = new WeakMap<Catalog, Map<Arch, Stems>>();

/** The packages of an architecture by file name without suffix. */
function stemsOf(catalog: Catalog, arch: Arch): Stems {
  const ofCatalog = cache.get(catalog) ?? new Map<Arch, Stems>();
  cache.set(catalog, ofCatalog);
  const cached = ofCatalog.get(arch);
  if (cached !== undefined) return cached;
  const stems = new Map(
    catalog.addons.flatMap(({ name, versions }) =>
      versions
        .filter(({ packages }) => packages[arch] !== undefined)
        .map(({ version }) => [fileStem({ name, version }), { name, requested: version }] as const),
    ),
  );
  ofCatalog.set(arch, stems);
  return stems;
}

function fileStem(ref: { readonly name: string; readonly version: string }): string {
  return formatRef(ref).replaceAll('+', '-');
}

function hintFor(unknown: readonly string[], known: readonly string[]): string {
  const near = unknown.slice(0, MAX_SUGGESTIONS).flatMap((name) => nearest(name, known) ?? []);
  return near.length > 0 ? `did you mean ${near.join(', ')}?` : `available: ${known.slice(0, 20).join(', ')}`;
}

/** A name without a version means the version in the spec, otherwise the latest. */
function stemOfSpec(name: string, { installer, catalog, arch }: NamedOptions): string | undefined {
  const listed = catalog.addons.find((one) => one.name === name);
  if (listed === undefined) return undefined;
  const requested = installer.addons.find((one) => one.name === name)?.requested ?? 'latest';
  if (listed.versions.every(({ packages }) => packages[arch] === undefined)) return undefined;
  const kubernetes = kubernetesOf(installer, { catalog, arch });
  return fileStem(resolvePackage({ name, requested }, { catalog, arch, kubernetes }).resolved);
}
