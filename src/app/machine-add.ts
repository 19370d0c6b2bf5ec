/** Adds a machine to the file of a cluster, and lets it join. */
import { canonicalJson } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import { useCase } from '../core/request.ts';
import { readChanged, readHosts, type Machine } from '../machine/run/cluster-file.ts';
import { changedFile, writeChanged } from '../machine/run/machine-list.ts';
import { planMachine } from '../machine/run/one-machine.ts';
import { carryOut, type MachineResult } from '../machine/run/follow-plan.ts';
import { MACHINE_ADD } from '../requests/machine.ts';
import { bundleFacts } from './cluster-plan.ts';

/**
 * The file changes first, once other operators are locked out and unless the machine is refused: from then on, curlew cluster apply
 * continues it, too. `USAGE` if the file has another machine of this name, `UNSUPPORTED` if it cannot be changed, and `PLAN_CHANGED` if
 * someone else changes it at the same time.
 */
export const addMachine = useCase(MACHINE_ADD, async (request, context): Promise<MachineResult> => {
  const { file, config, name, bundle: path, ignore = [], yes = false } = request;
  const doing = `add ${name}`;
  const before = await readHosts({ files: [file], config }, doing, context);
  const machine = machineOf(request);
  const old = before.machines.find((one) => one.name === name)?.machine;
  if (old !== undefined && canonicalJson(old) !== canonicalJson(machine)) {
    throw new CurlewError('USAGE', `cannot ${doing}: ${file} has it already, with other fields`, {
      hint: 'use another name, or change the file and use curlew cluster apply',
    });
  }
  const changed = old === undefined ? await changedFile(before, { add: machine }) : undefined;
  const cluster =
    changed === undefined
      ? before
      : await readChanged({ file: before.file, text: changed.after, config }, doing, context);
  const facts = await bundleFacts(path, cluster, context);
  const wanted = { cluster, name, bundle: facts };
  let written = false;
  const result = await carryOut(
    {
      cluster,
      doing,
      bundle: { path, facts },
      ignore,
      next: (look) => planMachine(wanted, look),
      ...(changed !== undefined && {
        begin: async () => {
          await writeChanged(changed);
          written = true;
        },
      }),
    },
    { yes },
    context,
  );
  if (changed === undefined) return result;
  if (written) return { ...result, change: `added ${name} to ${file}` };
  return { ...result, change: result.refused.length > 0 ? undefined : `add ${name} to ${file}` };
});

function machineOf(request: Parameters<typeof addMachine>[0]): Machine {
  const { name, role = 'worker', address, hostKey, user, port, via, label = [] } = request;
  const labels = label.map((word) => {
    const at = word.indexOf('=');
    if (at > 0) return [word.slice(0, at), word.slice(at + 1)] as const;
    throw new CurlewError('USAGE', `--label ${word}: it is not KEY=VALUE`);
  });
  return {
    name,
    role,
    address,
    ssh: {
      ...(user !== undefined && { user }),
      ...(port !== undefined && { port }),
      hostKey,
      ...(via !== undefined && { via }),
    },
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
  };
}
