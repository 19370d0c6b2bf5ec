/** Which add-ons another build would make anew, told by what earlier builds saw, without their packages. */
import { mapLimited } from '../platform/limit/each.ts';
import { formatRef } from '../core/ref.ts';
import { named, readSource, requireCommitted, settleLock, whyBuild } from './build-addon.ts';
import type { LockMode } from './committed-lock.ts';
import type { PackageInputs } from './inputs.ts';
import type { AddonPlan, BuildPlan } from './plan.ts';
import type { BuildPorts } from './ports.ts';
import { requireLocked } from './resolve.ts';
import type { AskedPorts } from './unchanged.ts';

export interface JudgedAddon {
  readonly addon: AddonPlan;
  /** Why it would be made anew; undefined when it is unchanged. */
  readonly because: string | undefined;
}

export interface JudgeOptions {
  /** Add-ons at once. */
  readonly jobs: number;
  /** What is done with committed locks of unchanged add-ons; undefined: they are not looked at. */
  readonly lock: LockMode | undefined;
  readonly signal: AbortSignal;
}

/** Asks registries and servers for manifests and headers only; nothing is fetched or written but committed locks. */
export async function judgeAddons(
  plan: BuildPlan,
  seen: (addon: AddonPlan) => PackageInputs | undefined,
  ports: AskedPorts & Pick<BuildPorts, 'report'>,
  { jobs, lock: mode, signal }: JudgeOptions,
): Promise<readonly JudgedAddon[]> {
  return mapLimited(
    plan.addons,
    async (addon, within): Promise<JudgedAddon> => {
      const inputs = seen(addon);
      if (inputs === undefined) return { addon, because: 'nothing is known of an earlier build' };
      try {
        const source = await readSource(addon, within);
        const because = await whyBuild(inputs, { addon, source, plan, mode: mode ?? 'compare' }, ports, within);
        if (because !== undefined || mode === undefined) return { addon, because };
        if (mode === 'require') requireLocked(await requireCommitted(source), inputs.lock, plan.arch);
        await settleLock(source, inputs.lock, plan, { mode, report: ports.report });
        return { addon, because };
      } catch (error) {
        throw named(error, formatRef(addon.ref));
      }
    },
    { width: jobs, signal },
  );
}
