/** `curlew cluster adopt`: the file of a cluster that runs already. */
import { counted } from '../../core/counted.ts';
import { CLUSTER_ADOPT } from '../../requests/cluster.ts';
import { commandFor } from '../command.ts';

export const command = commandFor(CLUSTER_ADOPT, {
  details:
    'Reads the nodes and the kubeadm configuration of a cluster from its API server, and writes the file for curlew cluster plan. The cluster can be one that kubeadm, kURL or curlew created. The file has no secrets and no host keys: add the key of each machine. The output shows how to get it; compare it on the console of the machine. Changes nothing in the cluster.',
  examples: [
    'curlew cluster adopt --kubeconfig paris.conf',
    'curlew cluster adopt --kubeconfig paris.conf -o paris.yaml',
  ],
  run: async ({ request }, context) => (await import('../../app/cluster-adopt.ts')).adoptCluster(request, context),
  render: ({ name, version, machines, text }, { request: { out } }) => {
    if (out === undefined) return text.trimEnd();
    return [
      `${out} has ${name}, ${version}, with ${counted(machines.length, 'machine')}. Add their host keys, compared with their consoles:`,
      ...machines.map((one) => `${one.name}: ${one.hostKeyBy}`),
      `then: curlew cluster plan ${out}`,
    ];
  },
});
