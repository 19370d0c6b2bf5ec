/** `curlew agent …`: the agent of a cluster. */
import { AGENT_RUN } from '../../requests/agent.ts';
import { commandFor } from '../command.ts';

export const run = commandFor(AGENT_RUN, {
  details:
    'Brings what the hub has for this cluster onto it, and reports how that went: manifests and charts to its API server, packages onto this machine, as curlew install --from does. Runs until it is stopped. It connects only outwards, and continues with what it has obeyed last while the hub is away. It obeys one hub, accepts only content with the digest that the hub names and a signature of a key that was pinned at the registration, and returns only to what was healthy here before.',
  examples: [
    'curlew agent run --from https://packages.example.com',
    'curlew agent run --root site --kubeconfig site.conf',
  ],
  run: async ({ request }, context) => (await import('../../app/agent-run.ts')).runAgent(request, context),
  render: () => '',
});
