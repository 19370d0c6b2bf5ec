/** `curlew uninstall`: removes add-ons from this node and from the cluster. */
import { UNINSTALL } from '../../requests/node.ts';
import type { NodeResult } from '../../app/install-result.ts';
import { confirm } from '../ask-line.ts';
import { commandFor } from '../command.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `On the node from which an add-on was installed, and on every other control plane while the cluster has it, ADDON_pre_remove removes its resources in the cluster. Then, as on every other node, ADDON_uninstall removes its changes on this node, and curlew removes its package and records. Run the command on the control plane first, then on the other nodes.

An add-on that others require cannot be removed, unless they are also given. Without these hooks, an add-on's changes to the machine and the cluster remain.

After a failed or killed run, run the same command again, or curlew resume, to resume.`;

export const command = commandFor(UNINSTALL, {
  details: DETAILS,
  examples: ['curlew uninstall registry', 'curlew uninstall registry velero --yes --keep-data'],
  run: async ({ request, options: { dryRun } }, context): Promise<NodeResult> => {
    const { planUninstall, uninstall } = await import('../../app/uninstall.ts');
    if (dryRun) return planUninstall(request, context);
    if (!request.yes) {
      const plan = await planUninstall(request, context);
      const rows = plan.addons.map(({ name, version }) => `${name} ${version}`);
      await confirm(`Uninstall ${(rows.length === 0 ? request.addons : rows).join(', ')}?`, context);
    }
    return outlivingTerminal(async () => uninstall(request, context));
  },
  render: (result, args, paint) => renderNodeResult(result, paint, args),
  exitCode: nodeExitCode,
});
