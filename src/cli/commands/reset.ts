/** `curlew reset`: everything off this node that runs have put there. */
import { placesOf } from '../../app/node/target.ts';
import { nothingToReset, planReset, reset, type NothingToReset, type ResetResult } from '../../app/reset.ts';
import type { DryRun } from '../../runtime/run/dry-run.ts';
import { confirm } from '../ask-line.ts';
import { command } from '../command.ts';
import { REMOVAL_OPTIONS } from '../node-options.ts';
import { failedLines, nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `All add-ons are removed in the reverse of their order, with the settings they were installed with; then what runs put into the install folder is removed. On the last control plane, and on a machine that installed add-ons into a cluster of somebody else, ADDON_pre_remove removes what they have in the cluster. Elsewhere the cluster keeps them, and ADDON_leave says that this node goes. ADDON_uninstall removes what they have on this node. An add-on without these hooks leaves what it did to the machine and to the cluster.

When a hook fails, the same command continues with it; --keep-going leaves it out.`;

export const resetCommand = command({
  name: 'reset',
  operands: '',
  details: DETAILS,
  examples: ['curlew reset', 'curlew reset --yes --json'],
  options: REMOVAL_OPTIONS,
  run: async ({ options }, context): Promise<ResetResult | NothingToReset | DryRun> => {
    const nothing = await nothingToReset(options, context);
    if (nothing !== undefined) return nothing;
    if (options.dryRun) return planReset(options, context);
    const { directory } = placesOf(options, context);
    if (!options.yes) await confirm(`Take everything off this node that lies in ${directory}?`, context);
    return outlivingTerminal(async () => reset(options, context));
  },
  render: (result) => {
    if (!('removed' in result)) return renderNodeResult(result);
    const addons = 'addons' in result ? result.addons : [];
    const rows = addons.map(({ name, version }) => `${name}  ${version}  removed`);
    const { directory, removed } = result;
    const files =
      removed.length === 0
        ? `nothing was installed in ${directory}`
        : `removed from ${directory}: ${removed.join(', ')}`;
    return [...rows, files, ...('failed' in result ? failedLines(result.failed) : [])].join('\n');
  },
  exitCode: (result) => ('addons' in result ? nodeExitCode(result) : 0),
});
