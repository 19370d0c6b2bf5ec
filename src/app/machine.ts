/** Drains, upgrades and repairs one machine of a cluster, over SSH. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { readHosts, requireMachine } from '../machine/run/cluster-file.ts';
import { drainOverSsh, type DrainedMachine } from '../machine/run/drain-over-ssh.ts';
import { carryOut, type MachineResult, type Plan } from '../machine/run/follow-plan.ts';
import { planRepair, planUpgraded, type PlannedMachine } from '../machine/run/one-machine.ts';
import { MACHINE_DRAIN, MACHINE_REPAIR, MACHINE_UPGRADE, type MachineRequest } from '../requests/machine.ts';
import { bundleFacts } from './cluster-plan.ts';

/** A person ends the cordon, not curlew. */
export const drainMachine = useCase(MACHINE_DRAIN, async (request, context): Promise<DrainedMachine> => {
  const { file, config, name, yes = false, force = false, ignoreBudgets = false } = request;
  const cluster = await readHosts({ files: [file], config, withoutSettings: true }, `drain ${name}`, context);
  return drainOverSsh(cluster, name, { yes, force, ignoreBudgets }, context);
});

/** Steps that must come before it on other machines are not done, but shown as what it waits for. `NOT_FOUND` for an unknown machine. */
export const upgradeMachine = useCase(MACHINE_UPGRADE, async (request, context) =>
  planned('upgrade', request, context, (wanted) => (look) => planUpgraded(wanted, look)),
);

/** Nothing for a healthy machine. Refused where others would not survive it, and where too many are unhealthy. */
export const repairMachine = useCase(MACHINE_REPAIR, async (request, context) => {
  const { maxUnhealthy } = request;
  return planned('repair', request, context, (wanted) => (look, done) => {
    return planRepair({ ...wanted, maxUnhealthy }, look, done);
  });
});

type Wanted = Parameters<typeof planUpgraded>[0];

async function planned(
  verb: string,
  { file, config, name, bundle: path, ignore = [], yes = false }: MachineRequest,
  context: Context,
  next: (wanted: Wanted) => Plan<PlannedMachine>['next'],
): Promise<MachineResult> {
  const doing = `${verb} ${name}`;
  const cluster = await readHosts({ files: [file], config }, doing, context);
  requireMachine(cluster, name, doing);
  const facts = await bundleFacts(path, cluster, context);
  const plan = { cluster, doing, bundle: { path, facts }, ignore };
  return carryOut({ ...plan, next: next({ cluster, name, bundle: facts }) }, { yes }, context);
}
