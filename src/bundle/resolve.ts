/** Which packages of a catalogue an installer spec means, and in which order they are installed. Pure. */
import { findPackage, packageKey, type Catalogue } from '../core/catalogue.ts';
import type { BundledPackage } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Arch } from '../core/ref.ts';
import type { Installer, InstallerAddon } from '../spec/installer.ts';
import { orderAddons } from '../spec/order.ts';
import { resolveVersion } from '../spec/version.ts';

export interface ResolvedPackage extends BundledPackage {
  /** Why this version, for people. */
  readonly because: string;
  /** Digest of its table of contents, where the catalogue tells it. */
  readonly toc?: Digest | undefined;
  /** In the store. */
  readonly key: string;
}

interface Candidate {
  readonly name: string;
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly resolved: ResolvedPackage;
}

/** What the add-ons of a spec mean. */
export interface ResolvedSpec {
  /** Of the add-ons that could be found, in the order of installation. */
  readonly packages: readonly ResolvedPackage[];
  /** Names all others, one finding each, with its place in the spec. */
  readonly error: CurlewError | undefined;
}

/** Resolves every add-on of the spec. All that cannot be found is reported at once (`SPEC_INVALID`). */
export function resolvePackages(installer: Installer, catalogue: Catalogue, arch: Arch): readonly ResolvedPackage[] {
  const { packages, error } = resolveSpec(installer, catalogue, arch);
  if (error !== undefined) throw error;
  return packages;
}

/** Resolves every add-on that can be. */
export function resolveSpec(installer: Installer, catalogue: Catalogue, arch: Arch): ResolvedSpec {
  const failures: { readonly addon: InstallerAddon; readonly error: CurlewError }[] = [];
  const candidates: Candidate[] = [];
  for (const addon of installer.addons) {
    try {
      candidates.push(resolveAddon(addon, { catalogue, arch }));
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
  // Others may need what is missing: they have no order.
  return { packages: candidates.map(({ resolved }) => resolved), error };
}

/** Where packages are looked for. */
export interface ResolveFrom {
  readonly catalogue: Catalogue;
  readonly arch: Arch;
}

function resolveAddon(addon: InstallerAddon, from: ResolveFrom): Candidate {
  const { name, s3Override } = addon;
  if (s3Override !== undefined) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: a bundle takes packages from its store only, not from an s3Override`,
      {
        hint: 'publish that package into the store, and take s3Override out of the spec',
      },
    );
  }
  return resolvePackage(addon, from);
}

/** Not there: `SPEC_INVALID`, with a near name as hint. */
export function resolvePackage(
  { name, requested }: Pick<InstallerAddon, 'name' | 'requested'>,
  { catalogue, arch }: ResolveFrom,
): Candidate {
  const listed = catalogue.addons.find((one) => one.name === name);
  if (listed === undefined) {
    const names = catalogue.addons.map((one) => one.name);
    const near = nearest(name, names);
    throw new CurlewError('SPEC_INVALID', `${name}: release ${catalogue.release} has no such add-on`, {
      hint: near === undefined ? `it has: ${names.slice(0, 20).join(', ')}` : `did you mean ${near}?`,
    });
  }
  const built = listed.versions.filter(({ packages }) => packages[arch] !== undefined);
  const unread = listed.versions.find((one) => one.version === requested || built.length === 0);
  if (unread !== undefined && Object.keys(unread.packages).length === 0) {
    throw new CurlewError(
      'UNSUPPORTED',
      `${name}: the external package ${unread.version} is not one that curlew build made`,
      {
        hint: 'ask its publisher for one, or build it from its sources, and import that under another version',
      },
    );
  }
  if (built.length === 0) throw new CurlewError('SPEC_INVALID', `${name}: there is no package of it for ${arch}`);
  const { version, because } = resolveVersion(
    name,
    requested,
    built.map((one) => one.version),
  );
  const package_ = findPackage(catalogue, { name, version }, arch);
  if (package_ === undefined) throw new CurlewError('SPEC_INVALID', `${name}: there is no package ${version}`);
  const { requires, fulfills, tree } = package_.entry;
  const { digest, sha256, toc, size } = package_.found;
  const key = packageKey(catalogue.release, { name, version }, arch, package_.found);
  const resolved = { name, version, tree, arch, requested, digest, sha256, toc, size, because, key };
  return { name, requires, fulfills, resolved };
}
