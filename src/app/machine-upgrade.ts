/** Brings one machine of a cluster to the version in its file. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { requireMachine, readHosts } from '../machine/run/cluster-file.ts';
import { planUpgraded } from '../machine/run/one-machine.ts';
import { carryOut, type MachineResult } from '../machine/run/follow-plan.ts';
import { MACHINE_UPGRADE } from '../requests/machine.ts';
import { bundleFacts } from './cluster-plan.ts';

/** What must come before it on other machines is not done, but shown as what it waits for. `NOT_FOUND` for an unknown machine. */
export const upgradeMachine = useCase(MACHINE_UPGRADE, async (request, context: Context): Promise<MachineResult> => {
  const { file, config, name, bundle: path, ignore = [], yes = false } = request;
  const doing = `upgrade ${name}`;
  const cluster = await readHosts({ files: [file], config }, doing, context);
  requireMachine(cluster, name, doing);
  const facts = await bundleFacts(path, context);
  const wanted = { cluster, name, bundle: facts };
  const plan = { cluster, doing, bundle: { path, facts }, ignore };
  return carryOut({ ...plan, next: (look) => planUpgraded(wanted, look) }, { yes }, context);
});
