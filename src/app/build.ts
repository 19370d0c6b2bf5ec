/** Builds packages from add-on folders. */
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { AddonVersion } from '../core/ref.ts';
import { buildAddons } from '../build/build.ts';
import type { BuiltPackage } from '../build/build-addon.ts';
import { parseBuildPlan, type BuildPlan } from '../build/plan.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError, canceledOr, fileError } from '../core/errors.ts';
import { lockMode, planPackages, requireBuildable } from '../steps/build/plan-packages.ts';
import { openBuildPorts } from '../steps/build/build-ports.ts';
import { BUILD } from '../requests/build.ts';
import { useCase } from '../core/request.ts';

/** Add-ons at once. */
const JOBS = 4;

export interface Built extends Pick<BuiltPackage, 'path' | 'size' | 'outcome' | 'because' | 'fetched'>, AddonVersion {
  readonly digest: Digest;
}

/** Plan of {@link build}; it can be saved as JSON and executed with `fromPlan`. */
export const planBuild = useCase(BUILD, async (request, context): Promise<BuildPlan> => {
  const { fromPlan: file, addons = [] } = request;
  if (file === undefined) return planPackages(addons, request, context);
  if (addons.length > 0) {
    throw new CurlewError('USAGE', 'curlew build: --from-plan already lists the add-ons to build');
  }
  const plan = await readPlan(resolve(context.cwd, file), file);
  await requireBuildable(plan, context);
  return plan;
});

async function readPlan(path: string, file: string): Promise<BuildPlan> {
  try {
    return parseBuildPlan(await readFile(path, 'utf8'), file);
  } catch (error) {
    throw fileError(`read the plan ${file}`, error);
  }
}

/** Packages that are up to date are not built again. */
export const build = useCase(BUILD, async (request, context): Promise<{ readonly packages: readonly Built[] }> => {
  const plan = await planBuild(request, context);
  const lock = lockMode(request);
  await using ports = await openBuildPorts(plan.addons, request, context);
  const { signal } = context;
  const options = { jobs: request.jobs ?? JOBS, lock, signal };
  const built = await buildAddons(plan, ports, options).catch((error: unknown) => {
    throw canceledOr(error, signal, 'packages that are complete stay: the same command builds only the others');
  });
  const packages = built.map(({ path, addon, size, outcome, because, fetched }): Built => {
    const { name, version, digest } = addon;
    return { name, version, path, size, outcome, because, fetched, digest };
  });
  return { packages };
});
