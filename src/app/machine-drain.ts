/** Moves the pods of a machine of a cluster to others, over SSH. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { readHosts } from '../machine/run/cluster-file.ts';
import { drainOverSsh, type DrainedMachine } from '../machine/run/drain-over-ssh.ts';
import { MACHINE_DRAIN } from '../requests/machine.ts';

/** A person ends the cordon, not curlew. */
export const drainMachine = useCase(MACHINE_DRAIN, async (request, context: Context): Promise<DrainedMachine> => {
  const { file, config, name, yes = false, force = false, ignoreBudgets = false } = request;
  const cluster = await readHosts({ files: [file], config, withoutSettings: true }, `drain ${name}`, context);
  return drainOverSsh(cluster, name, { yes, force, ignoreBudgets }, context);
});
