/** `curlew hub …` and `curlew controller`: the cluster that keeps the objects of a fleet. */
import { CONTROLLER, HUB_MANIFESTS } from '../../requests/hub.ts';
import type { MadeToken } from '../../app/hub-token.ts';
import { keepHeapSmall } from '../../platform/limit/small-heap.ts';
import { HUB_TOKEN } from '../../requests/registration.ts';
import { commandFor } from '../command.ts';

export const manifests = commandFor(HUB_MANIFESTS, {
  details:
    'Prints the definitions of the kinds Cluster, FleetAddon, ClusterAddon and Channel, a namespace, a service account with the rights of the controller, and the one right that the tokens of agents need. With --push, also prints the rights of the controller in the namespace of a cluster that it delivers to. With --image, also prints a Deployment with two replicas, of which one leads. The documents are JSON, which is valid YAML. Contacts no cluster.',
  examples: [
    'curlew hub manifests | kubectl apply -f -',
    'curlew hub manifests --push oslo --push paris',
    'curlew hub manifests --image registry.example.com/curlew:1.2.0',
  ],
  run: async ({ request }) => (await import('../../app/hub-manifests.ts')).printHubManifests(request),
  // JSON is YAML.
  render: (objects) => objects.map((one) => `---\n${JSON.stringify(one, undefined, 2)}`).join('\n'),
});

export const controller = commandFor(CONTROLLER, {
  details:
    'Watches the Clusters, FleetAddons and ClusterAddons of a hub, and writes what each cluster must have, as the rollout of each add-on allows. Delivers to clusters whose kubeconfig is in a Secret of the hub. Runs until you stop it, on any machine that can reach the API server of the hub. If you run several controllers, one leads; when it ends, another one takes over. The controller keeps all its state in the hub.',
  examples: ['curlew controller --kubeconfig hub.conf', 'curlew controller --ready 8080'],
  run: async ({ request }, context) => {
    keepHeapSmall();
    return (await import('../../app/controller.ts')).runController(request, context);
  },
  render: () => '',
});

export const token = commandFor(HUB_TOKEN, {
  details:
    'Writes a file with a token that lets the agent of one new cluster request a certificate from a hub, and do nothing else. First checks that the output of curlew hub manifests was applied, and that the hub signs client certificates and accepts bootstrap tokens. The check requests a certificate for a user without rights, and does not keep its key. Requires the rights of a hub administrator.',
  examples: [
    'curlew hub token paris --kubeconfig hub.conf',
    'curlew hub token paris -o paris.token --server https://hub.example.com:6443',
  ],
  run: async ({ request }, context) => (await import('../../app/hub-token.ts')).makeHubToken(request, context),
  render: tokenText,
});

/** The next step, on the site; what is secret is in the file. */
export function tokenText({ cluster, file }: MadeToken): readonly string[] {
  return [
    `created ${file}`,
    'next: copy it to the site, and run there',
    `  curlew agent register --token-file ${file} --key PUBLIC-KEY`,
    'then run here',
    `  curlew fleet accept ${cluster}`,
  ];
}
