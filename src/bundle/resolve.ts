/** Resolves the add-ons of an installer spec to packages of a catalog, in the order of installation. Pure. */
import { findPackage, packageKey, type Catalog } from '../core/catalog.ts';
import type { BundledPackage } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer, InstallerAddon } from '../spec/installer.ts';
import { orderAddons } from '../spec/order.ts';
import { resolveVersion } from '../spec/version.ts';

export interface ResolvedPackage extends BundledPackage {
  /** Reason for this version, for people. */
  readonly because: string;
  /** Digest of its table of contents, if the catalog contains it. */
  readonly toc?: Digest | undefined;
  /** Key in the store. */
  readonly key: string;
}

interface Candidate {
  readonly name: string;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly resolved: ResolvedPackage;
}

/** The resolved add-ons of a spec. */
export interface ResolvedSpec {
  /** The packages that were found, in the order of installation. */
  readonly packages: readonly ResolvedPackage[];
  /** Lists all other add-ons with their place in the spec; undefined if none. */
  readonly error: CurlewError | undefined;
}

/** Resolves every add-on of the spec. Reports all missing packages at once (`SPEC_INVALID`). */
export function resolvePackages(installer: Installer, catalog: Catalog, arch: Arch): readonly ResolvedPackage[] {
  const { packages, error } = resolveSpec(installer, catalog, arch);
  if (error !== undefined) throw error;
  return packages;
}

/** Resolves add-ons, and collects failures in `error`. */
export function resolveSpec(installer: Installer, catalog: Catalog, arch: Arch): ResolvedSpec {
  const failures: { readonly addon: InstallerAddon; readonly error: CurlewError }[] = [];
  const candidates: Candidate[] = [];
  for (const addon of installer.addons) {
    try {
      candidates.push(resolveAddon(addon, { catalog, arch }));
    } catch (error) {
      if (!(error instanceof CurlewError)) throw error;
      failures.push({ addon, error });
    }
  }
  const [first] = failures;
  if (first === undefined)
    return { packages: orderAddons(candidates).map(({ resolved }) => resolved), error: undefined };
  const several = `${failures.length} add-ons of the spec cannot be resolved`;
  const error = new CurlewError(first.error.code, failures.length === 1 ? first.error.message : several, {
    hint: failures.length === 1 ? first.error.hint : undefined,
    diagnostics: failures.map((one) => {
      const { message, hint } = one.error;
      return {
        code: 'installer/unresolved',
        severity: 'error',
        message,
        place: one.addon.requestedBy ?? one.addon.place,
        hint,
      };
    }),
  });
  // Without the missing add-ons, dependencies are incomplete, so the packages are not ordered.
  return { packages: candidates.map(({ resolved }) => resolved), error };
}

/** Where to look up packages. */
export interface ResolveFrom {
  readonly catalog: Catalog;
  readonly arch: Arch;
}

function resolveAddon(addon: InstallerAddon, from: ResolveFrom): Candidate {
  const { name, s3Override } = addon;
  if (s3Override !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: a bundle contains packages of its store only, not of an s3Override`,
      {
        hint: 'publish that package to the store, and remove s3Override from the spec',
      },
    );
  }
  return resolvePackage(addon, from);
}

/** Resolves one package. A missing one is `SPEC_INVALID`, with a similar name as hint. */
export function resolvePackage(
  { name, requested }: Pick<InstallerAddon, 'name' | 'requested'>,
  { catalog, arch }: ResolveFrom,
): Candidate {
  const listed = catalog.addons.find((one) => one.name === name);
  if (listed === undefined) {
    const names = catalog.addons.map((one) => one.name);
    const near = nearest(name, names);
    throw new CurlewError('SPEC_INVALID', `${name}: release ${catalog.release} does not contain this add-on`, {
      hint: near === undefined ? `add-ons in the release: ${names.slice(0, 20).join(', ')}` : `did you mean ${near}?`,
    });
  }
  const built = listed.versions.filter(({ packages }) => packages[arch] !== undefined);
  const unreadable = listed.versions.find((one) => one.version === requested || built.length === 0);
  if (unreadable !== undefined && Object.keys(unreadable.packages).length === 0) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: the external package ${unreadable.version} was not built with curlew`,
      {
        hint: 'ask its publisher for a curlew package, or build it from source, and import it under another version',
      },
    );
  }
  if (built.length === 0) throw new CurlewError('SPEC_INVALID', `${name}: no package for ${arch}`);
  const { version, because } = resolveVersion(
    name,
    requested,
    built.map((one) => one.version),
  );
  const package_ = findPackage(catalog, { name, version }, arch);
  if (package_ === undefined) throw new CurlewError('SPEC_INVALID', `${name}: no package of version ${version}`);
  const { requires, fulfills, tree } = package_.entry;
  const { digest, sha256, toc, size } = package_.found;
  const key = packageKey(catalog.release, { name, version }, arch, package_.found);
  const resolved = { name, version, tree, arch, requested, digest, sha256, toc, size, because, key };
  return { name, requires, fulfills, resolved };
}
