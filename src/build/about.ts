/** What `addon.json` says of an add-on beside its files: from the source for a new package, and back from an old one. */
import { canonicalJson } from '../core/digest.ts';
import { MANIFEST_LOCK } from '../core/layout.ts';
import type { AddonJson, PackageFile } from '../core/package.ts';
import type { AddonSource } from '../manifest/read-addon.ts';
import type { OsPackagesStep, Step } from '../manifest/step.ts';

/** OS folders that the steps make, sorted. */
export function osFolders(steps: readonly Step[]): readonly string[] {
  const folders = steps.flatMap((step): readonly string[] => {
    if (step.kind === 'os-packages') return [step.os];
    return step.kind === 'container-build' ? [step.destination] : [];
  });
  return [...new Set(folders)].toSorted();
}

/** OS folder to the sorted names that the operator must install. */
export function depsOf(steps: readonly Step[]): Readonly<Record<string, readonly string[]>> {
  const deps = steps.filter((step): step is OsPackagesStep => step.kind === 'os-packages' && step.output === 'deps');
  return Object.fromEntries(deps.map(({ os, packages }) => [os, [...new Set(packages)].toSorted()]));
}

/** The files of the folder that go into the package as they are: a committed lock is replaced by the build's own. */
export function ownFiles({ files }: AddonSource): readonly PackageFile[] {
  return files.filter(({ path }) => path !== MANIFEST_LOCK);
}

/** The part of `addon.json` that the source decides, as one text. */
export function aboutWanted(source: AddonSource, steps: readonly Step[]): string {
  const { hooks, requires, fulfills, settings } = source;
  return canonicalJson({ hooks, requires, fulfills, settings, os: osFolders(steps), deps: depsOf(steps) });
}

/** The same part of an `addon.json` that was read. */
export function aboutOf({ hooks, requires, fulfills, settings, os, deps }: AddonJson): string {
  return canonicalJson({ hooks, requires, fulfills, settings, os, deps });
}
