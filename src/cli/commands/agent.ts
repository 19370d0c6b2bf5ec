/** `curlew agent …`: the agent of a cluster. */
import { AGENT_RUN } from '../../requests/agent.ts';
import { commandFor } from '../command.ts';

export const run = commandFor(AGENT_RUN, {
  details:
    'Delivers what the hub has for this cluster, and reports the result. Manifests and charts go to the API server of the cluster. Packages go onto this machine, as with curlew install --from. Runs until you stop it. It makes only outgoing connections. While the hub is down, it continues with the last thing it obeyed. It obeys one hub, and accepts only content with the digest that the hub names and a signature by a trusted key. It goes back only to what was healthy here before.',
  examples: [
    'curlew agent run --from https://packages.example.com',
    'curlew agent run --root site --kubeconfig site.conf',
  ],
  run: async ({ request }, context) => (await import('../../app/agent-run.ts')).runAgent(request, context),
  render: () => '',
});
