/** Executes a build plan: several add-ons at once, each either unchanged or built again. */
import { CurlewError } from '../core/errors.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { makeFolder } from '../platform/files/make-folder.ts';
import { removeBodies } from './assets.ts';
import { buildAddon, type BuiltPackage } from './build-addon.ts';
import { pruneCache } from './cache.ts';
import type { LockMode } from './committed-lock.ts';
import type { BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { claim } from '../platform/files/claim.ts';

export interface BuildOptions {
  /** Number of add-ons built at once. */
  readonly jobs: number;
  readonly lock: LockMode;
  readonly signal: AbortSignal;
}

/** Builds every add-on of the plan; the first failure stops the others and is thrown. */
export async function buildAddons(
  plan: BuildPlan,
  ports: BuildPorts,
  { jobs, lock, signal }: BuildOptions,
): Promise<readonly BuiltPackage[]> {
  await makeFolder(ports.out, `create the folder for packages ${ports.out}`);
  await makeFolder(ports.cache, `create the folder for the cache ${ports.cache}`).catch((error: unknown) => {
    if (!(error instanceof CurlewError)) throw error;
    throw new CurlewError(error.code, error.message, { hint: 'specify another folder with --cache DIR', cause: error });
  });
  await sweepOut(ports.out, Date.now());
  const built = await mapLimited(
    plan.addons,
    async (addon, within) => buildAddon(addon, plan, ports, { lock, ...within }),
    { width: jobs, signal },
  );
  // Downloads stay after a failure, so that the next run need not fetch them again.
  await removeBodies(ports);
  if (built.some(({ outcome }) => outcome === 'built')) await pruneCache(ports.cache, Date.now());
  return built;
}

/** A later build resumes a partial file, so it is kept as long as files in the cache. */
const KEPT_MS = 30 * 86_400_000;

/** The package's name in the names of its partial file and its claim. */
const BEGUN = /^\.(.+\.tar\.gz)\.(?:partial|claim)$/;

/**
 * Removes files that no build has touched for 30 days; until then a build may resume partial files. Files that another
 * process has claimed stay. `now` in milliseconds. Never fails.
 */
export async function sweepOut(out: string, now: number): Promise<void> {
  const names = await readdir(out).catch(() => []);
  for (const package_ of new Set(names.flatMap((name) => BEGUN.exec(name)?.[1] ?? []))) {
    await sweepPackage(join(out, package_), join(out, `.${package_}`), now - KEPT_MS).catch(() => undefined);
  }
}

async function sweepPackage(target: string, hidden: string, before: number): Promise<void> {
  if (!(await areUnchangedSince([`${hidden}.partial`, `${hidden}.claim`], before))) return;
  await using _held = await claim(target);
  // A build may have ended between the check and the claim.
  if (await areUnchangedSince([`${hidden}.partial`], before)) await rm(`${hidden}.partial`, { force: true });
}

/** True if none of these files was created or written since then; ignores missing files. */
async function areUnchangedSince(paths: readonly string[], before: number): Promise<boolean> {
  for (const path of paths) {
    const stats = await lstat(path).catch(() => undefined);
    if (stats !== undefined && (!stats.isFile() || stats.ctimeMs >= before)) return false;
  }
  return true;
}
