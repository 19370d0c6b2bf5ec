/** Compares the lock with what floating tags, packages and assets resolve to now. */
import { findOutdated, type OutdatedAddon } from '../build/outdated.ts';
import type { Context } from '../core/context.ts';
import { planAddons, type BuildRequest } from './building/plan-packages.ts';
import { openBuildPorts } from './ports/build-ports.ts';

/** Add-ons at once. */
const JOBS = 4;

export interface OutdatedRequest extends Omit<BuildRequest, 'imageFormat' | 'locked' | 'updateLock'> {
  /** Names, `name/version` or paths; all when there are none. */
  readonly addons?: readonly string[] | undefined;
}

/** Compares with the committed Manifest.lock, or with the lock in the package in `out` if none is committed. */
export async function outdated(request: OutdatedRequest, context: Context): Promise<readonly OutdatedAddon[]> {
  const plan = await planAddons(request.addons ?? [], request, context);
  await using ports = await openBuildPorts(plan.addons, request, context);
  return await findOutdated(plan, ports, { jobs: request.jobs ?? JOBS, signal: context.signal });
}
