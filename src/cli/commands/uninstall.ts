/** `curlew uninstall`: removes add-ons from this node and from the cluster. */
import type { NodeResult } from '../../app/install.ts';
import { CurlewError } from '../../core/errors.ts';
import { confirm } from '../ask-line.ts';
import { command, useCase } from '../command.ts';
import { REMOVAL_OPTIONS } from '../node-options.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const planUninstall = useCase(async () => (await import('../../app/uninstall.ts')).planUninstall);
const uninstall = useCase(async () => (await import('../../app/uninstall.ts')).uninstall);

const DETAILS = `On the node from which an add-on was installed, and on every other control plane while the cluster has it, ADDON_pre_remove removes its resources in the cluster. Then, as on every other node, ADDON_uninstall removes its changes on this node, and curlew removes its package and records. Run the command on the control plane first, then on the other nodes.

An add-on that others require cannot be removed, unless they are also given. Without these hooks, an add-on's changes to the machine and the cluster remain.

After a failed or killed run, run the same command again, or curlew resume, to resume.`;

export const uninstallCommand = command({
  name: 'uninstall',
  operands: 'ADDON…',
  details: DETAILS,
  examples: ['curlew uninstall registry', 'curlew uninstall registry velero --yes --keep-data'],
  options: {
    ...REMOVAL_OPTIONS,
    'prune-images': { type: 'boolean', help: 'also remove images that no other add-on of this node uses' },
  },
  run: async ({ operands: addons, options }, context): Promise<NodeResult> => {
    if (addons.length === 0) {
      throw new CurlewError('USAGE', 'curlew uninstall: specify at least one add-on', {
        hint: 'curlew status shows installed add-ons; curlew reset removes everything',
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
