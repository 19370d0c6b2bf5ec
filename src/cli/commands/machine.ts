/** `curlew machine …`: one machine of a cluster in a file. */
import { ERROR_CODES } from '../../core/errors.ts';
import { failureCode, isSettled } from '../../machine/cluster.ts';
import type { MachineResult } from '../../machine/run/follow-plan.ts';
import { MACHINE_ADD, MACHINE_DRAIN, MACHINE_REMOVE, MACHINE_REPAIR, MACHINE_UPGRADE } from '../../requests/machine.ts';
import { commandFor, UNSETTLED } from '../command.ts';
import { drainLines, isDrained } from '../render/drain.ts';
import { planLines } from './cluster.ts';

const EXITS =
  'Without --yes it shows the steps. Looks before each step, so the same command continues after any interruption. Exits with status 0 if nothing is left to do, 2 if something is to do or waits, 33 if, with --yes, something is refused, and otherwise with the status of what has failed on a machine, or 33 if machines have failed in different ways.';

interface Shown {
  readonly request: { readonly yes: boolean };
}

/** The parts of each command that plans steps of one machine. */
const shown = {
  changesBy: '--yes' as const,
  render: (result: MachineResult, { request: { yes } }: Shown): readonly string[] => {
    const { machine, done = [], failed = [], change, notes = [] } = result;
    const isDone = isSettled(result);
    const lines = [
      ...done.map(({ host, phase }) => `done: ${host} ${phase}`),
      ...planLines(result, `${machine}: nothing is left to do`),
      ...failed.map(({ host, phase, reason }) => `failed: ${host} ${phase}: ${reason}`),
      ...(change === undefined ? [] : [change]),
      ...notes,
      ...(yes || (isDone && change === undefined) ? [] : ['add --yes to do it']),
    ];
    return lines;
  },
  exitCode: (result: MachineResult): number => {
    const { failed, refused, change = '' } = result;
    if (failed !== undefined && failed.length + refused.length > 0)
      return ERROR_CODES[failureCode(refused.length > 0 ? [] : failed)];
    const isOpen = failed === undefined && change !== '';
    return isSettled(result) && !isOpen ? 0 : UNSETTLED;
  },
};

export const add = commandFor(MACHINE_ADD, {
  ...shown,
  details: `Adds the machine at the end of the list in the file, whose other lines stay as they are, then lets it join as curlew cluster apply would. Two control planes more than before need two entries: change the file, and use curlew cluster apply.\n\n${EXITS}`,
  examples: ['curlew machine add paris.yaml p3 --address p3 --host-key KEY --bundle b.tar.gz'],
  run: async ({ request }, context) => (await import('../../app/machine-add.ts')).addMachine(request, context),
});

export const drain = commandFor(MACHINE_DRAIN, {
  details:
    'The machine gets no new pods, and its pods are evicted as their disruption budgets allow, for as long as drain.timeout in the file says (default: 5m). It stays cordoned until kubectl uncordon; where the drain fails before it has evicted a pod, it takes pods again. Without --yes it shows the pods.\n\nPods without a controller, and data in emptyDir volumes, are lost: they are named, and need --force. With --ignore-budgets, pods that a PodDisruptionBudget still keeps at the end of the time are deleted.\n\nExits with status 0 if nothing is left to do, 2 if something would be done, and otherwise with the status of what has failed.',
  examples: ['curlew machine drain paris.yaml p2', 'curlew machine drain paris.yaml p2 --yes'],
  changesBy: '--yes',
  run: async ({ request }, context) => (await import('../../app/machine.ts')).drainMachine(request, context),
  render: (result, { request: { yes } }) => {
    const { machine, held, failed } = result;
    const lines = [
      ...drainLines(machine, result),
      ...(held === undefined ? [] : [`waits: ${machine}: ${held}`]),
      ...(failed === undefined ? [] : [`failed: ${machine} drain: ${failed.reason}`]),
      ...(yes || isDrained(result) || held !== undefined ? [] : ['add --yes to do it']),
    ];
    return lines;
  },
  exitCode: (result) => {
    if (result.failed !== undefined) return ERROR_CODES[failureCode([result.failed])];
    return isDrained(result) ? 0 : UNSETTLED;
  },
});

export const upgrade = commandFor(MACHINE_UPGRADE, {
  ...shown,
  details: `Does what curlew cluster apply would do on this machine, and nothing on others. It comes before others of its kind; what must come before it, such as the control planes before a worker, is shown as what it waits for.\n\n${EXITS}`,
  examples: ['curlew machine upgrade paris.yaml p2 --bundle bundle.tar.gz --yes'],
  run: async ({ request }, context) => (await import('../../app/machine.ts')).upgradeMachine(request, context),
});

export const repair = commandFor(MACHINE_REPAIR, {
  ...shown,
  details: `For a machine that is not ready, or whose member of etcd is not healthy: its pods move, its member leaves etcd, its Node is deleted, its host is reset, and it joins again. A healthy machine is left alone. Refused for the only control plane, where etcd would lose its quorum, and where too many machines are not healthy.\n\n${EXITS}`,
  examples: ['curlew machine repair paris.yaml p2 --bundle bundle.tar.gz --yes'],
  run: async ({ request }, context) => (await import('../../app/machine.ts')).repairMachine(request, context),
});

export const remove = commandFor(MACHINE_REMOVE, {
  ...shown,
  details: `Its pods move, its member leaves etcd, its Node is deleted, its host is reset, and its lines are removed from the file; all other lines stay as they are. A host that does not answer is not reset. Refused for the last control plane, where an even number of them would be left, and where etcd would lose its quorum.\n\n${EXITS}`,
  examples: ['curlew machine remove paris.yaml p2', 'curlew machine remove paris.yaml p2 --yes'],
  run: async ({ request }, context) => (await import('../../app/machine-remove.ts')).removeMachine(request, context),
});
