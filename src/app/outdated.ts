/** Compares the lock with what floating tags, packages and assets resolve to now. */
import { findOutdated, type OutdatedAddon } from '../build/outdated.ts';
import { planAddons } from '../steps/build/plan-packages.ts';
import { openBuildPorts } from '../steps/build/build-ports.ts';
import { OUTDATED } from '../requests/build.ts';
import { useCase } from '../core/request.ts';

/** Add-ons at once. */
const JOBS = 4;

/** Compares with the committed Manifest.lock, or with the lock in the package in `out` if none is committed. */
export const outdated = useCase(OUTDATED, async (request, context): Promise<readonly OutdatedAddon[]> => {
  const plan = await planAddons(request.addons ?? [], request, context);
  await using ports = await openBuildPorts(plan.addons, request, context);
  return await findOutdated(plan, ports, { jobs: request.jobs ?? JOBS, signal: context.signal });
});
