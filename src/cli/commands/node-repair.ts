/** `curlew node repair`: this machine is a node again. */
import { NODE_REPAIR } from '../../requests/node.ts';
import { visible } from '../../core/diagnostic.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(NODE_REPAIR, {
  details:
    "Runs on the node, also where the API server does not answer. It starts containerd, the kubelet and the components of the control plane, lets the network add-on write its files again, and puts back files of kubeadm in /etc/kubernetes that are missing, as they were after the last run; not the keys of authorities. It ends when the node is ready. From an operator's machine, curlew machine repair does the same over SSH, and resets a machine that this does not help.",
  examples: ['curlew node repair'],
  run: async ({ request }, context) => (await import('../../app/node-repair.ts')).repairNode(request, context),
  render: ({ node }) => `${visible(node)} is ready`,
});
