/** `curlew node remove`: another node leaves the cluster. */
import { NODE_REMOVE } from '../../requests/node.ts';
import { commandFor, UNSETTLED } from '../command.ts';

const DETAILS = `Runs on a control plane, for another node: it gets no new pods, its pods are evicted as their disruption budgets allow, a control plane's member leaves etcd, and its Node is deleted. A node that does not answer is not drained. Each step is looked at before it is done, so the same command continues after any interruption. The last control plane, and one without which etcd would lose its quorum, are refused.

Without --yes it shows the steps, and exits with status 2 if there are any. Then reset the machine itself: until then its files are those of the cluster.`;

export const command = commandFor(NODE_REMOVE, {
  details: DETAILS,
  examples: ['curlew node remove node2', 'curlew node remove node2 --drain-timeout 15m --yes'],
  changesBy: '--yes',
  run: async ({ request }, context) => (await import('../../app/node-remove.ts')).removeNode(request, context),
  render: ({ node, steps, isDone, notes }) => {
    const rows = steps.map(({ phase, reason }) => `${node}: ${isDone ? 'done' : 'to do'}: ${phase} (${reason})`);
    const end = isDone ? `${node} is removed from the cluster; on it: curlew reset --yes` : 'add --yes to remove it';
    return [...rows, ...notes, end];
  },
  exitCode: ({ isDone }) => (isDone ? 0 : UNSETTLED),
});
