/** `curlew uninstall`: some add-ons off this node, and out of the cluster. */
import { CurlewError } from '../../core/errors.ts';
import type { Command } from '../command.ts';
import { confirm } from '../ask-line.ts';
import { runUninstall, showUninstall, UNINSTALL_OPTIONS } from '../kept-run.ts';
import type { NodeResult } from '../node-run.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';

const DETAILS = `On the node that an add-on was installed from, and on every other control plane as long as the cluster has it, ADDON_pre_remove removes what it has in the cluster. Then, as on every other node, ADDON_uninstall removes what it has on this node, and its package and its records go. Run it on the control plane first, then on the other nodes.

An add-on that others require stays, unless they are named, too. One without these hooks leaves what it did to the machine and to the cluster.

When a run has failed or was killed, the same command, or curlew resume, continues.`;

export const uninstall: Command<NodeResult> = {
  name: 'uninstall',
  summary: 'Remove add-ons from this node and from the cluster',
  operands: 'ADDON…',
  details: DETAILS,
  examples: ['curlew uninstall registry', 'curlew uninstall registry velero --yes --keep-data'],
  options: UNINSTALL_OPTIONS,
  run: async (args, context) => {
    const names = args.positionals;
    if (names.length === 0) {
      throw new CurlewError('USAGE', 'curlew uninstall: name one add-on or more', {
        hint: 'curlew status shows what is installed; curlew reset removes everything',
      });
    }
    if (args.flag('dry-run')) return showUninstall(args, context);
    if (!args.flag('yes')) {
      const { addons } = await showUninstall(args, context);
      const rows = addons.map(({ name, version }) => `${name} ${version}`);
      await confirm(`Uninstall ${rows.length === 0 ? names.join(', ') : rows.join(', ')}?`, context);
    }
    return runUninstall(args, context);
  },
  render: (result) => renderNodeResult(result),
  exitCode: nodeExitCode,
};
