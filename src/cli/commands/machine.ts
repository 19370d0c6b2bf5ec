/** `curlew machine …`: one machine of a cluster in a file. */
import { ERROR_CODES } from '../../core/errors.ts';
import { failureCode, isSettled } from '../../machine/cluster.ts';
import type { MachineResult } from '../../machine/run/follow-plan.ts';
import { MACHINE_ADD, MACHINE_DRAIN, MACHINE_REMOVE, MACHINE_REPAIR, MACHINE_UPGRADE } from '../../requests/machine.ts';
import { commandFor, UNSETTLED, STEPS_STAY } from '../command.ts';
import { drainLines, isDrained } from '../render/drain.ts';
import { planLines } from './cluster.ts';

const EXITS =
  'Without --yes, shows the steps. After any interruption, run the same command again to continue. Exits with status 0 if nothing is left to do, 2 if something is to do or waits, and 33 if, with --yes, something is refused. If a machine fails, exits with its status, or with 33 if machines fail in different ways.';

interface Shown {
  readonly request: { readonly yes: boolean };
}

/** The parts of each command that plans steps of one machine. */
const shown = {
  changesBy: '--yes' as const,
  render: (result: MachineResult, { request: { yes } }: Shown): readonly string[] => {
    const { machine, steps, done = [], failed = [], change, notes = [] } = result;
    const lines = [
      ...done.map(({ host, phase }) => `done: ${host} ${phase}`),
      ...planLines(result, `${machine}: nothing is left to do`),
      ...failed.map(({ host, phase, reason }) => `failed: ${host} ${phase}: ${reason}`),
      ...(change === undefined ? [] : [change]),
      ...notes,
      ...(yes || (steps.length === 0 && change === undefined) ? [] : ['add --yes to do it']),
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
  details: `Adds the machine at the end of the list in the file, and leaves all other lines as they are. Then joins the machine, as curlew cluster apply would. To add two control planes at once, change the file and use curlew cluster apply.\n\n${EXITS}`,
  examples: ['curlew machine add paris.yaml p3 --address p3 --host-key KEY --bundle b.tar.gz'],
  run: async ({ request }, context) => (await import('../../app/machine-add.ts')).addMachine(request, context),
});

export const drain = commandFor(MACHINE_DRAIN, {
  details:
    'Cordons the machine, and evicts its pods as their PodDisruptionBudgets allow, for at most drain.timeout in the file (default: 5m). The machine stays cordoned until kubectl uncordon. If the drain fails before it has evicted a pod, the machine takes pods again. Without --yes, shows the pods.\n\nPods without a controller, and data in emptyDir volumes, are lost: the command names them, and needs --force. With --ignore-budgets, deletes the pods that a PodDisruptionBudget still protects at the end of that time.\n\nExits with status 0 if nothing is left to do, 2 if something would be done, and otherwise with the status of the failure.',
  examples: ['curlew machine drain paris.yaml p2', 'curlew machine drain paris.yaml p2 --yes'],
  changesBy: '--yes',
  left: STEPS_STAY,
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
  details: `Does what curlew cluster apply would do on this machine, and nothing on other machines. The machine does not wait for its peers. If others must come first, such as the control planes before a worker, shows that it waits for them.\n\n${EXITS}`,
  examples: ['curlew machine upgrade paris.yaml p2 --bundle bundle.tar.gz --yes'],
  left: STEPS_STAY,
  run: async ({ request }, context) => (await import('../../app/machine.ts')).upgradeMachine(request, context),
});

export const repair = commandFor(MACHINE_REPAIR, {
  ...shown,
  details: `Repairs a machine that is not ready, or whose etcd member is not healthy. Drains the node, removes its etcd member, deletes the Node, resets the host, and joins it again. Does not touch a healthy machine. Refuses to repair the only control plane, and any machine if etcd would lose its quorum or too many machines are not healthy.\n\n${EXITS}`,
  examples: ['curlew machine repair paris.yaml p2 --bundle bundle.tar.gz --yes'],
  left: STEPS_STAY,
  run: async ({ request }, context) => (await import('../../app/machine.ts')).repairMachine(request, context),
});

export const remove = commandFor(MACHINE_REMOVE, {
  ...shown,
  details: `Drains the node, removes its etcd member, deletes the Node, resets the host, and removes the lines of the machine from the file. All other lines stay as they are. Does not reset a host that does not answer. Refuses to remove the last control plane, or one whose removal would leave an even number or cost etcd its quorum.\n\n${EXITS}`,
  examples: ['curlew machine remove paris.yaml p2', 'curlew machine remove paris.yaml p2 --yes'],
  left: STEPS_STAY,
  run: async ({ request }, context) => (await import('../../app/machine-remove.ts')).removeMachine(request, context),
});
