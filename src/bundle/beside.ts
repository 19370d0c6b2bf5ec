/** Packages that a bundle holds beside those of its spec, and why. Pure. */
import type { BesidePackage, BesideRole } from '../core/bundle.ts';
import { findPackage } from '../core/catalogue.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import { HELPER_PACKAGE } from '../core/package.ts';
import { compareVersions, formatRef } from '../core/ref.ts';
import { resolvePackage, type ResolvedPackage, type ResolveFrom } from './resolve.ts';
import { upgradeSteps } from './steps.ts';

export type ResolvedBeside = ResolvedPackage & Pick<BesidePackage, 'role'>;

/** A package of the spec. */
type Named = Pick<ResolvedPackage, 'name' | 'version'>;

/** A name with a version: exact, `latest` or `1.2.x`. */
export interface Wanted {
  readonly name: string;
  readonly version: string;
}

export interface BesideOptions {
  readonly also: readonly Wanted[];
  /** What the oldest node has of an add-on of the spec. */
  readonly upgradeFrom: readonly Wanted[];
}

export const NOTHING_BESIDE: BesideOptions = { also: [], upgradeFrom: [] };

/**
 * In the order: steps of upgrades, packages of the machine itself, what was asked for; each package once. What cannot be
 * found is `SPEC_INVALID`. `forKurl`: for kURL's own scripts, which bring an image of helper programs themselves.
 */
export function chooseBeside(
  packages: readonly Named[],
  { also, upgradeFrom }: BesideOptions,
  from: ResolveFrom & { readonly forKurl?: boolean },
): readonly ResolvedBeside[] {
  const known = new Set(packages.map(formatRef));
  const chosen: ResolvedBeside[] = [];
  const add = (role: BesideRole, wanted: Wanted, because?: string): void => {
    const { resolved } = resolvePackage({ name: wanted.name, requested: wanted.version }, from);
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
  for (const found of machinePackages(packages)) {
    if (available(found.name).includes(found.version)) add('machine', found, found.because);
  }
  if (from.forKurl !== true && available(HELPER_PACKAGE).length > 0 && packages.some((one) => hasImages(one, from))) {
    add('machine', { name: HELPER_PACKAGE, version: 'latest' }, 'programs that add-ons run in pods');
  }
  for (const wanted of also) add('asked', wanted, undefined);
  return chosen;
}

/** Where no container runs, nobody runs programs in pods. A package that the catalogue does not know may have images. */
function hasImages(ref: Named, { catalogue, arch }: ResolveFrom): boolean {
  return findPackage(catalogue, ref, arch)?.found.images.length !== 0;
}

function versionsOf(name: string, { catalogue, arch }: ResolveFrom): readonly string[] {
  const listed = catalogue.addons.find((one) => one.name === name);
  return (listed?.versions ?? []).flatMap(({ version, packages }) => (packages[arch] === undefined ? [] : [version]));
}

function notInSpec(name: string, packages: readonly Named[]): CurlewError {
  const names = packages.map((one) => one.name);
  const near = nearest(name, names);
  return new CurlewError('SPEC_INVALID', `--upgrade-from: ${name} is not in the spec`, {
    hint: near === undefined ? `the spec has: ${names.join(', ')}` : `did you mean ${near}?`,
  });
}

/** The first version with a conformance package. */
const CONFORMANCE = '1.17';

/** What bundles of kURL bring by themselves (kurl.md 5.1); here only when the release has it. */
function machinePackages(packages: readonly Named[]): readonly (Wanted & { readonly because: string })[] {
  const has = (name: string): Named | undefined => packages.find((one) => one.name === name);
  const kubernetes = has('kubernetes')?.version;
  const found = [];
  if (kubernetes !== undefined) {
    found.push({ name: 'host', version: 'openssl', because: 'host package of every cluster' });
    found.push({ name: 'host', version: 'fio', because: 'host package of every cluster' });
  }
  if (has('longhorn') !== undefined)
    found.push({ name: 'host', version: 'longhorn', because: 'host package of longhorn' });
  if (has('sonobuoy') !== undefined && kubernetes !== undefined && compareVersions(kubernetes, CONFORMANCE) > 0) {
    found.push({ name: 'kubernetes-conformance', version: kubernetes, because: 'images that sonobuoy runs' });
  }
  return found;
}
