/** Decides which add-ons would be built again, by the inputs of earlier builds, without their packages. */
import { mapLimited } from '../platform/limit/each.ts';
import { formatRef } from '../core/ref.ts';
import { named, readSource, requireCommitted, settleLock, whyBuild } from './build-addon.ts';
import type { LockMode } from './committed-lock.ts';
import type { PackageInputs } from './build-inputs.ts';
import type { AddonPlan, BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { requireLocked } from './resolve.ts';
import type { QueryPorts } from './unchanged-package.ts';

export interface CheckedAddon {
  readonly addon: AddonPlan;
  /** Why it would be built again; undefined if it is unchanged. */
  readonly because: string | undefined;
}

export interface CheckOptions {
  /** Number of add-ons checked at once. */
  readonly jobs: number;
  /** How committed locks of unchanged add-ons are used; undefined ignores them. */
  readonly lock: LockMode | undefined;
  /** Writes no committed lock. */
  readonly dryRun?: boolean | undefined;
  readonly signal: AbortSignal;
}

/** Requests only manifests and headers from registries and servers; writes only committed locks. */
export async function checkAddons(
  plan: BuildPlan,
  seen: (addon: AddonPlan) => PackageInputs | undefined,
  ports: QueryPorts & Pick<BuildPorts, 'report'>,
  { jobs, lock: mode, dryRun = false, signal }: CheckOptions,
): Promise<readonly CheckedAddon[]> {
  return mapLimited(
    plan.addons,
    async (addon, within): Promise<CheckedAddon> => {
      const inputs = seen(addon);
      try {
        if (inputs === undefined) {
          if (mode === 'require') await requireCommitted(await readSource(addon, within));
          return { addon, because: 'no record of an earlier build' };
        }
        const source = await readSource(addon, within);
        const committed = mode === 'require' ? await requireCommitted(source) : undefined;
        const because = await whyBuild(inputs, { addon, source, plan, mode: mode ?? 'compare' }, ports, within);
        if (because !== undefined || mode === undefined) return { addon, because };
        if (committed !== undefined) requireLocked(committed, inputs.lock, plan.arch);
        if (mode === 'update' && dryRun) return { addon, because };
        await settleLock(source, inputs.lock, plan, { mode, report: ports.report });
        return { addon, because };
      } catch (error) {
        throw named(error, formatRef(addon.ref));
      }
    },
    { width: jobs, signal },
  );
}
