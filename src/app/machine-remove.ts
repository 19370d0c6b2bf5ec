/** Removes a machine from its cluster, resets its host or lets its provider delete it, and removes it from the file. */
import type { Context } from '../core/context.ts';
import { useCase } from '../core/request.ts';
import { isSettled } from '../machine/cluster.ts';
import { leftOverSsh } from '../machine/run/drain-over-ssh.ts';
import { readHosts, requireFound, requireKnown, type WrittenHost } from '../machine/run/cluster-file.ts';
import { changedFile, writeChanged } from '../machine/run/machine-list.ts';
import { planLeaving, type PlannedMachine } from '../machine/run/one-machine.ts';
import type { ClusterLook } from '../machine/run/look.ts';
import { carryOut, type MachineResult, type Plan } from '../machine/run/follow-plan.ts';
import { openSsh, SshError } from '../machine/ssh/ssh.ts';
import { MACHINE_REMOVE } from '../requests/machine.ts';
import { bundleFacts } from './cluster-plan.ts';

/**
 * The file changes last, so that the same command continues after any interruption. Refused for the last control plane, where an even
 * number of them would be left, and where etcd would lose its quorum. `NOT_FOUND` for a name that neither the file nor the cluster has, and `UNSUPPORTED`, before anything is done, if the file cannot be changed.
 */
export const removeMachine = useCase(MACHINE_REMOVE, async (request, context): Promise<MachineResult> => {
  const { file, config, name, bundle: path, yes = false } = request;
  const doing = `remove ${name}`;
  const cluster = await readHosts({ files: [file], config }, doing, context);
  const host = cluster.machines.find((one) => one.name === name);
  if (host !== undefined) await changedFile(cluster, { remove: name });
  // No machine gets settings of the file.
  const unset = { ...cluster, installer: {} };
  const bundle = path === undefined ? undefined : { path, facts: await bundleFacts(path, unset, context) };
  const wanted = { cluster, name, bundle: bundle?.facts };
  let last: ClusterLook | undefined;
  const next: Plan<PlannedMachine>['next'] = (look, done) => {
    // What this command has removed is known to neither of them.
    last = look;
    if (look.speaker !== undefined && done.length === 0) requireKnown(cluster, look, { name, doing });
    return planLeaving(wanted, look);
  };
  const result = await carryOut({ cluster, doing, bundle, next }, { yes }, context);
  const { speaker } = last ?? {};
  // A control plane that cannot be asked for a moment is waited for before.
  if (last !== undefined && result.steps.length + (result.done ?? []).length === 0)
    requireFound(cluster, last, { name, doing });
  if (!yes || !isSettled(result)) {
    const notes = yes || speaker === undefined ? [] : await losses(result, speaker, context);
    const isKept = result.refused.length + result.held.length > 0;
    return { ...result, notes, change: isKept ? undefined : host && `remove ${name} from ${file}` };
  }
  if (host !== undefined) {
    // A person may have changed it meanwhile.
    const now = await readHosts({ files: [file], config }, doing, context);
    await writeChanged(await changedFile(now, { remove: name }));
  }
  const isSilent = host?.provided === undefined && result.hosts.some(({ answers }) => !answers);
  return {
    ...result,
    change: host && `removed ${name} from ${file}`,
    notes: isSilent ? [`${name} does not answer, so it was not reset: leave it off, or reset it by itself`] : [],
  };
});

/** The losses with pods that no controller creates again. The removal itself evicts them without another word. */
async function losses(
  { steps, machine }: MachineResult,
  speaker: WrittenHost,
  { env, signal }: Context,
): Promise<readonly string[]> {
  if (steps.every(({ phase }) => phase !== 'drain')) return [];
  await using ssh = openSsh(env);
  try {
    const { lost } = await leftOverSsh({ ssh, signal }, speaker, machine);
    return lost.map((text) => `will be lost: ${text}`);
  } catch (error) {
    if (!(error instanceof SshError) || signal.aborted) throw error;
    return [`what would be lost with its pods is not known: ${error.reason}`];
  }
}
