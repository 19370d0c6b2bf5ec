/** Carries out a build plan: several add-ons at once, each either unchanged or made anew. */
import { mapLimited } from '../platform/limit/each.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import { clearShelf } from './assets.ts';
import { buildAddon, type BuiltPackage } from './build-addon.ts';
import { pruneCache } from './cache.ts';
import type { LockMode } from './committed-lock.ts';
import { sweepOut } from './out-folder.ts';
import type { BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';

export interface BuildOptions {
  /** Add-ons at once. */
  readonly jobs: number;
  readonly lock: LockMode;
  readonly signal: AbortSignal;
}

/** Builds every add-on of the plan; the first failure stops the rest and is the one thrown. */
export async function buildAddons(
  plan: BuildPlan,
  ports: BuildPorts,
  { jobs, lock, signal }: BuildOptions,
): Promise<readonly BuiltPackage[]> {
  await makeFolder(ports.out, `make the folder for packages ${ports.out}`);
  await makeFolder(ports.cache, `make the folder for the cache ${ports.cache}`);
  await sweepOut(ports.out, Date.now());
  const built = await mapLimited(
    plan.addons,
    async (addon, within) => buildAddon(addon, plan, ports, { lock, ...within }),
    {
      width: jobs,
      signal,
    },
  );
  // After a failure the bodies stay: the next run need not fetch them again.
  await clearShelf(ports.shelf);
  if (built.some(({ outcome }) => outcome === 'built')) await pruneCache(ports.cache, Date.now());
  return built;
}
