/** The difference between two bundle plans. Pure. */
import { compareText, formatRef } from '../../core/ref.ts';
import type { Digest } from '../../core/digest.ts';
import type { BundledPackage } from '../../core/bundle.ts';
import type { BundlePlan } from './bundle-plan.ts';

export interface PackageDifference {
  readonly name: string;
  /** Undefined if only the newer plan has the package. */
  readonly before: string | undefined;
  /** Undefined if only the older plan has the package. */
  readonly after: string | undefined;
  /** Bytes of the package file. */
  readonly size: { readonly before: number; readonly after: number };
}

export interface PlanDifference {
  /** Both plans produce the same bytes. */
  readonly isSame: boolean;
  /** Bytes of the whole bundle. */
  readonly size: { readonly before: number; readonly after: number };
  readonly release: { readonly before: string; readonly after: string };
  /** Systems whose host packages are included, undefined for all; absent if equal. */
  readonly systems?: { readonly before: readonly string[] | undefined; readonly after: readonly string[] | undefined };
  /** By name; equal versions mean that only the package's content differs. */
  readonly packages: readonly PackageDifference[];
  /** Files outside of packages with different bytes, or in one plan only. */
  readonly files: readonly string[];
  /** Unpacked bytes of payloads that only the newer plan has, each counted once. */
  readonly added: number;
  /** The same for the older plan. */
  readonly removed: number;
}

export function comparePlans(before: BundlePlan, after: BundlePlan): PlanDifference {
  const [was, is] = [contents(before), contents(after)];
  const [systems, keeps] = [before.bundle.os?.kept, after.bundle.os?.kept];
  return {
    isSame: before.splice.index.tocDigest === after.splice.index.tocDigest && before.splice.size === after.splice.size,
    size: { before: before.splice.size, after: after.splice.size },
    release: { before: before.bundle.release, after: after.bundle.release },
    ...(systems?.join() === keeps?.join() ? {} : { systems: { before: systems, after: keeps } }),
    packages: packageDifferences([...before.packages, ...before.extras], [...after.packages, ...after.extras]),
    files: fileDifferences(before, after),
    added: bytesOnlyIn(is, was),
    removed: bytesOnlyIn(was, is),
  };
}

function packageDifferences(
  before: readonly BundledPackage[],
  after: readonly BundledPackage[],
): readonly PackageDifference[] {
  const names = [...new Set([...before, ...after].map(({ name }) => name))].toSorted(compareText);
  return names.flatMap((name) => {
    const gone = before.filter((one) => one.name === name && !after.some((other) => isSame(one, other)));
    const come = after.filter((one) => one.name === name && !before.some((other) => isSame(one, other)));
    // An add-on with one version in each plan has changed its version.
    if (gone.length <= 1 && come.length <= 1)
      return gone.length + come.length === 0 ? [] : [pair(name, gone[0], come[0])];
    const changed = gone.flatMap((one) => {
      const other = come.find(({ version }) => version === one.version);
      return other === undefined ? [] : [pair(name, one, other)];
    });
    const alone = (one: BundledPackage): boolean => !changed.some((pairOf) => pairOf.before === one.version);
    return [
      ...changed,
      ...gone.filter(alone).map((one) => pair(name, one, undefined)),
      ...come.filter(alone).map((one) => pair(name, undefined, one)),
    ];
  });
}

function isSame(a: BundledPackage, b: BundledPackage): boolean {
  return formatRef(a) === formatRef(b) && a.tree === b.tree && a.arch === b.arch && a.digest === b.digest;
}

function pair(name: string, before: BundledPackage | undefined, after: BundledPackage | undefined): PackageDifference {
  const size = { before: before?.size ?? 0, after: after?.size ?? 0 };
  return { name, before: before?.version, after: after?.version, size };
}

function fileDifferences(before: BundlePlan, after: BundlePlan): readonly string[] {
  const rows = ({ splice }: BundlePlan): Map<string, Digest> => {
    const own = splice.index.entries.filter(({ path }) => !path.startsWith('addons/') && !path.startsWith('packages/'));
    return new Map(own.map(({ path, digest }) => [path, digest] as const));
  };
  const [was, is] = [rows(before), rows(after)];
  return [...new Set([...was.keys(), ...is.keys()])]
    .filter((path) => was.get(path) !== is.get(path))
    .toSorted(compareText);
}

function contents({ splice }: BundlePlan): ReadonlyMap<Digest, number> {
  return new Map(splice.index.entries.map(({ digest, size }) => [digest, size] as const));
}

function bytesOnlyIn(these: ReadonlyMap<Digest, number>, those: ReadonlyMap<Digest, number>): number {
  let sum = 0;
  for (const [digest, size] of these) if (!those.has(digest)) sum += size;
  return sum;
}
