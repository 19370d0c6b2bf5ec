/** Packages that a client names itself, as `addon_fetch_multiple_airgap` of kURL does. Pure. */
import { resolvePackage, type ResolvedPackage } from '../bundle/resolve.ts';
import type { Catalogue } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { compareText, formatRef, type Arch } from '../core/ref.ts';
import type { Installer } from '../spec/installer.ts';
import { resolveVersion } from '../spec/version.ts';

/** A client that wants more takes the bundle. */
const MOST_NAMES = 100;
/** Names for which near ones are looked for: each is compared with every package of the release. */
const MOST_HINTS = 3;

interface NamedOptions {
  /** Says which version is meant by a name alone. */
  readonly installer: Installer;
  readonly catalogue: Catalogue;
  readonly arch: Arch;
}

/**
 * By their keys, each once: whoever names the same packages gets the same bytes. `SPEC_INVALID` names all that are not known,
 * with near ones.
 */
export function namedPackages(
  names: readonly string[],
  { installer, catalogue, arch }: NamedOptions,
): readonly ResolvedPackage[] {
  if (names.length > MOST_NAMES) throw new CurlewError('SPEC_INVALID', `more than ${MOST_NAMES} packages are named`);
  const known = stemsOf(catalogue, arch);
  const found = new Map<string, ResolvedPackage>();
  const unknown: string[] = [];
  for (const name of names) {
    const stem = name.replaceAll('+', '-');
    const one = known.get(stem) ?? known.get(stemOfSpec(name, { installer, catalogue, arch }) ?? '');
    if (one === undefined) {
      unknown.push(name);
      continue;
    }
    const { resolved } = resolvePackage(one, { catalogue, arch });
    found.set(resolved.key, resolved);
  }
  if (unknown.length === 0) return [...found.values()].toSorted((a, b) => compareText(a.key, b.key));
  throw new CurlewError('SPEC_INVALID', `release ${catalogue.release} has no package ${unknown.join(', ')}`, {
    hint: hintFor(unknown, [...known.keys(), ...catalogue.addons.map(({ name }) => name)]),
  });
}

type Stems = ReadonlyMap<string, { readonly name: string; readonly requested: string }>;

/** Of catalogues that are still in use: making a map of a thousand packages for each request would be most of its work. */
const made = new WeakMap<Catalogue, Map<Arch, Stems>>();

/** The packages of an architecture by what their files are called. */
function stemsOf(catalogue: Catalogue, arch: Arch): Stems {
  const ofCatalogue = made.get(catalogue) ?? new Map<Arch, Stems>();
  made.set(catalogue, ofCatalogue);
  const found = ofCatalogue.get(arch);
  if (found !== undefined) return found;
  const stems = new Map(
    catalogue.addons.flatMap(({ name, versions }) =>
      versions
        .filter(({ packages }) => packages[arch] !== undefined)
        .map(({ version }) => [fileStem({ name, version }), { name, requested: version }] as const),
    ),
  );
  ofCatalogue.set(arch, stems);
  return stems;
}

function fileStem(ref: { readonly name: string; readonly version: string }): string {
  return formatRef(ref).replaceAll('+', '-');
}

function hintFor(unknown: readonly string[], known: readonly string[]): string {
  const near = unknown.slice(0, MOST_HINTS).flatMap((name) => nearest(name, known) ?? []);
  return near.length > 0 ? `did you mean ${near.join(', ')}?` : `it has: ${known.slice(0, 20).join(', ')}`;
}

/** A name without a version means what the spec says of it, or else the latest. */
function stemOfSpec(name: string, { installer, catalogue, arch }: NamedOptions): string | undefined {
  const listed = catalogue.addons.find((one) => one.name === name);
  if (listed === undefined) return undefined;
  const requested = installer.addons.find((one) => one.name === name)?.requested ?? 'latest';
  const built = listed.versions.filter(({ packages }) => packages[arch] !== undefined).map(({ version }) => version);
  return built.length === 0 ? undefined : fileStem({ name, version: resolveVersion(name, requested, built).version });
}
