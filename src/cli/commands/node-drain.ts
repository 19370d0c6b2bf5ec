/** `curlew node drain`: the pods of a node move to others. */
import { NODE_DRAIN } from '../../requests/node.ts';
import { commandFor, UNSETTLED } from '../command.ts';
import { drainLines, isDrained } from '../render/drain.ts';

export const command = commandFor(NODE_DRAIN, {
  details:
    'Runs on a control plane: the node gets no new pods, and its pods are evicted as their disruption budgets allow, but not those of DaemonSets and of the kubelet. A node that does not answer is not waited for. The node stays cordoned until kubectl uncordon; where the drain fails before it has evicted a pod, it takes pods again.\n\nPods without a controller, and data in emptyDir volumes, are lost: they are named, and need --force. With --ignore-budgets, pods that a PodDisruptionBudget still keeps at the end of the time are deleted.\n\nWithout --yes it shows the pods, and exits with status 2 if there is something to do.',
  examples: ['curlew node drain node2', 'curlew node drain node2 --drain-timeout 15m --yes'],
  changesBy: '--yes',
  run: async ({ request }, context) => (await import('../../app/node-drain.ts')).drain(request, context),
  render: (result) => [...drainLines(result.node, result), ...(isDrained(result) ? [] : ['add --yes to drain it'])],
  exitCode: (result) => (isDrained(result) ? 0 : UNSETTLED),
});
