/** Lets a machine that is not healthy leave its cluster, resets its host, and lets it join again. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { requireMachine, readHosts } from '../machine/run/cluster-file.ts';
import { planRepair } from '../machine/run/one-machine.ts';
import { carryOut, type MachineResult } from '../machine/run/follow-plan.ts';
import { MACHINE_REPAIR } from '../requests/machine.ts';
import { bundleFacts } from './cluster-plan.ts';

/** Nothing for a healthy machine. Refused where others would not survive it, and where too many are unhealthy. */
export const repairMachine = useCase(MACHINE_REPAIR, async (request, context: Context): Promise<MachineResult> => {
  const { file, config, name, bundle: path, ignore = [], maxUnhealthy, yes = false } = request;
  const doing = `repair ${name}`;
  const cluster = await readHosts({ files: [file], config }, doing, context);
  requireMachine(cluster, name, doing);
  const facts = await bundleFacts(path, context);
  const wanted = { cluster, name, bundle: facts, maxUnhealthy };
  const plan = { cluster, doing, bundle: { path, facts }, ignore };
  return carryOut({ ...plan, next: (look, done) => planRepair(wanted, look, done) }, { yes }, context);
});
