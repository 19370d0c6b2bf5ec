/** `curlew uninstall`: some add-ons off this node, and out of the cluster. */
import type { NodeResult } from '../../app/install.ts';
import { planUninstall, uninstall } from '../../app/uninstall.ts';
import { CurlewError } from '../../core/errors.ts';
import { confirm } from '../ask-line.ts';
import { command } from '../command.ts';
import { REMOVAL_OPTIONS } from '../node-options.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `On the node that an add-on was installed from, and on every other control plane as long as the cluster has it, ADDON_pre_remove removes what it has in the cluster. Then, as on every other node, ADDON_uninstall removes what it has on this node, and its package and its records go. Run it on the control plane first, then on the other nodes.

An add-on that others require stays, unless they are named, too. One without these hooks leaves what it did to the machine and to the cluster.

When a run has failed or was killed, the same command, or curlew resume, continues.`;

export const uninstallCommand = command({
  name: 'uninstall',
  operands: 'ADDON…',
  details: DETAILS,
  examples: ['curlew uninstall registry', 'curlew uninstall registry velero --yes --keep-data'],
  options: {
    ...REMOVAL_OPTIONS,
    'prune-images': { type: 'boolean', help: 'remove images that no other add-on of this node has, too' },
  },
  run: async ({ operands: addons, options }, context): Promise<NodeResult> => {
    if (addons.length === 0) {
      throw new CurlewError('USAGE', 'curlew uninstall: name one add-on or more', {
        hint: 'curlew status shows what is installed; curlew reset removes everything',
      });
    }
    const request = { addons, ...options };
    if (options.dryRun) return planUninstall(request, context);
    if (!options.yes) {
      const plan = await planUninstall(request, context);
      const rows = plan.addons.map(({ name, version }) => `${name} ${version}`);
      await confirm(`Uninstall ${(rows.length === 0 ? addons : rows).join(', ')}?`, context);
    }
    return outlivingTerminal(async () => uninstall(request, context));
  },
  render: (result) => renderNodeResult(result),
  exitCode: nodeExitCode,
});
