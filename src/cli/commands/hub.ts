/** `curlew hub …` and `curlew controller`: the cluster that keeps the objects of a fleet. */
import { CONTROLLER, HUB_MANIFESTS } from '../../requests/hub.ts';
import type { MadeToken } from '../../app/hub-token.ts';
import { HUB_TOKEN } from '../../requests/registration.ts';
import { commandFor } from '../command.ts';

export const manifests = commandFor(HUB_MANIFESTS, {
  details:
    'Prints the definitions of the kinds Cluster, FleetAddon and ClusterAddon, a namespace, and an account with the rights of the controller, and the one right of tokens for agents. With --push, also what the controller may in the namespace of a cluster that it delivers to. With --image, also a Deployment of two replicas, of which one leads. The documents are JSON, which is YAML. Contacts no cluster.',
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
    'Watches the Clusters, FleetAddons and ClusterAddons of a hub, and writes what each cluster is to have, as the rollout of each add-on allows. Runs until it is stopped, anywhere that reaches the API server of the hub. Of several controllers one leads; another one takes over when it ends. It delivers to clusters whose kubeconfig is in a Secret of the hub. It keeps all it knows in the hub.',
  examples: ['curlew controller --kubeconfig hub.conf', 'curlew controller --ready 8080'],
  run: async ({ request }, context) => (await import('../../app/controller.ts')).runController(request, context),
  render: () => '',
});

export const token = commandFor(HUB_TOKEN, {
  details:
    'Writes a file by which the agent of one new cluster can ask a hub for a certificate, and nothing else. First makes sure that the hub is prepared, signs client certificates (with one for a user without rights, whose key is not kept), and accepts bootstrap tokens. Requires the rights of an administrator of the hub.',
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
