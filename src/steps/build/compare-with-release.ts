/** Compares the packages of a release with the add-on folders. */
import { parseInputs, type PackageInputs } from '../../build/build-inputs.ts';
import { checkAddons, type CheckedAddon, type CheckOptions } from '../../build/check-addons.ts';
import type { AddonPlan, BuildPlan } from '../../build/plan.ts';
import type { BuildPorts } from '../../build/ports.ts';
import { packageFileName } from '../../core/layout.ts';
import type { AddonRef, AddonVersion } from '../../core/ref.ts';
import type { Previous } from '../../ship/release/previous-release.ts';

export interface Change extends AddonVersion {
  readonly change: 'new' | 'changed' | 'unchanged';
  /** Description of the difference. */
  readonly because: string | undefined;
  /** The first release of an unchanged package. */
  readonly since: string | undefined;
}

/** Add-ons of a plan, and what the packages of a release say about them. */
export interface ComparedAddon extends CheckedAddon {
  readonly file: string;
  readonly change: Change;
}

/** A package that is missing from the store counts as changed. */
export async function compareWithRelease(
  plan: BuildPlan,
  packages: Previous['packages'],
  ports: BuildPorts,
  options: CheckOptions,
): Promise<readonly ComparedAddon[]> {
  const fileOf = (ref: AddonRef): string => packageFileName(ref, plan.arch);
  const inputsOf = ({ ref }: AddonPlan): PackageInputs | undefined => {
    const earlier = packages.get(fileOf(ref));
    const known = earlier?.object !== undefined && earlier.listed.tree === ref.tree && earlier.listed.name === ref.name;
    return known ? parseInputs(earlier.recorded?.inputs) : undefined;
  };
  const judged = await checkAddons(plan, inputsOf, ports, options);
  return judged.map(({ addon, because }) => {
    const { ref } = addon;
    const file = fileOf(ref);
    return { addon, because, file, change: changeOf(ref, packages.get(file), because) };
  });
}

/** File names of a release's packages of compared add-ons for other architectures: a build for one does not remove them. */
export function otherArchitectures(
  compared: readonly ComparedAddon[],
  packages: Previous['packages'],
): readonly string[] {
  const keyOf = ({ tree, name, version }: AddonRef): string => `${tree}/${name}/${version}`;
  const planned = new Set(compared.map(({ addon }) => keyOf(addon.ref)));
  const mine = new Set(compared.map(({ file }) => file));
  return [...packages].flatMap(([file, { listed }]) => (planned.has(keyOf(listed)) && !mine.has(file) ? [file] : []));
}

type Earlier = Previous['packages'] extends ReadonlyMap<string, infer One> ? One : never;

function changeOf({ name, version }: AddonRef, earlier: Earlier | undefined, because: string | undefined): Change {
  if (because === undefined) {
    const since = earlier?.recorded?.since ?? earlier?.release;
    return { name, version, change: 'unchanged', because: undefined, since };
  }
  if (earlier === undefined)
    return { name, version, change: 'new', because: 'it was not in any release', since: undefined };
  const reason = earlier.object === undefined ? 'its package is missing from the store' : because;
  return { name, version, change: 'changed', because: reason, since: undefined };
}
