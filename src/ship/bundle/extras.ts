/** Packages of a bundle in addition to those of its spec, with reasons. Pure. */
import type { BesidePackage, BesideRole } from '../../core/bundle.ts';
import { findPackage } from '../../core/catalog.ts';
import { CurlewError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';
import { HELPER_PACKAGE } from '../../core/package.ts';
import { compareVersions, formatRef } from '../../core/ref.ts';
import { resolvePackage, type ResolvedPackage, type ResolveFrom } from './resolve.ts';
import { upgradeSteps } from './steps.ts';

export type ResolvedExtra = ResolvedPackage & Pick<BesidePackage, 'role'>;

/** A package of the spec. */
type SpecPackage = Pick<ResolvedPackage, 'name' | 'version'>;

/** A name with a version: exact, `latest` or `1.2.x`. */
export interface ExtraPackage {
  readonly name: string;
  readonly version: string;
}

export interface ExtraOptions {
  readonly also: readonly ExtraPackage[];
  /** Version of an add-on of the spec on the oldest node. */
  readonly upgradeFrom: readonly ExtraPackage[];
}

export const NO_EXTRAS: ExtraOptions = { also: [], upgradeFrom: [] };

/**
 * Returns upgrade steps, packages for the machine and requested packages, in this order, each package once. `SPEC_INVALID` if
 * one cannot be found. `forKurl`: for kURL's own scripts, which have their own image of helper programs.
 */
export function chooseExtras(
  packages: readonly SpecPackage[],
  { also, upgradeFrom }: ExtraOptions,
  from: ResolveFrom & { readonly forKurl?: boolean },
): readonly ResolvedExtra[] {
  const known = new Set(packages.map(formatRef));
  const chosen: ResolvedExtra[] = [];
  const add = (role: BesideRole, requested: ExtraPackage, because?: string): void => {
    const { resolved } = resolvePackage({ name: requested.name, requested: requested.version }, from);
    const ref = formatRef(resolved);
    if (known.has(ref)) return;
    known.add(ref);
    chosen.push({ ...resolved, because: because ?? resolved.because, role });
  };
  const available = (name: string): readonly string[] => versionsOf(name, from);
  for (const { name, version } of upgradeFrom) {
    const to = packages.find((one) => one.name === name)?.version;
    if (to === undefined) throw notInSpec(name, packages);
    for (const step of upgradeSteps({ name, from: version, to }, available)) add('step', step, step.because);
  }
  for (const machinePackage of machinePackages(packages)) {
    if (available(machinePackage.name).includes(machinePackage.version))
      add('machine', machinePackage, machinePackage.because);
  }
  if (from.forKurl !== true && available(HELPER_PACKAGE).length > 0 && packages.some((one) => hasImages(one, from))) {
    add('machine', { name: HELPER_PACKAGE, version: 'latest' }, 'helper programs that add-ons run in pods');
  }
  for (const requested of also) add('asked', requested, undefined);
  return chosen;
}

/** False if the package has no images: then no pod runs helper programs. True for a package that is not in the catalog. */
function hasImages(ref: SpecPackage, { catalog, arch }: ResolveFrom): boolean {
  return findPackage(catalog, ref, arch)?.listed.images.length !== 0;
}

function versionsOf(name: string, { catalog, arch }: ResolveFrom): readonly string[] {
  const listed = catalog.addons.find((one) => one.name === name);
  return (listed?.versions ?? []).flatMap(({ version, packages }) => (packages[arch] === undefined ? [] : [version]));
}

function notInSpec(name: string, packages: readonly SpecPackage[]): CurlewError {
  const names = packages.map((one) => one.name);
  const near = nearest(name, names);
  return new CurlewError('SPEC_INVALID', `--upgrade-from: the spec does not contain ${name}`, {
    hint: near === undefined ? `add-ons in the spec: ${names.join(', ')}` : `did you mean ${near}?`,
  });
}

/** The first version with a conformance package. */
const CONFORMANCE = '1.17';

/** Packages that kURL always adds to bundles (kurl.md 5.1); the caller adds those that the release has. */
function machinePackages(packages: readonly SpecPackage[]): readonly (ExtraPackage & { readonly because: string })[] {
  const has = (name: string): SpecPackage | undefined => packages.find((one) => one.name === name);
  const kubernetes = has('kubernetes')?.version;
  const required = [];
  if (kubernetes !== undefined) {
    required.push({ name: 'host', version: 'openssl', because: 'host package of every cluster' });
    required.push({ name: 'host', version: 'fio', because: 'host package of every cluster' });
  }
  if (has('longhorn') !== undefined)
    required.push({ name: 'host', version: 'longhorn', because: 'host package of longhorn' });
  if (has('sonobuoy') !== undefined && kubernetes !== undefined && compareVersions(kubernetes, CONFORMANCE) > 0) {
    required.push({ name: 'kubernetes-conformance', version: kubernetes, because: 'images that sonobuoy runs' });
  }
  return required;
}
