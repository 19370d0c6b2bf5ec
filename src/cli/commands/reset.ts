/** `curlew reset`: removes everything that runs have installed on this node. */
import { RESET } from '../../requests/node.ts';
import type { NothingToReset, ResetResult } from '../../app/reset.ts';
import type { DryRun } from '../../runtime/run/dry-run.ts';
import { confirm } from '../ask-line.ts';
import { commandFor } from '../command.ts';
import { failedLines, leftLines, markOf, messageLines, nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `Removes all add-ons in reverse order, with the settings of their installation, then the files that runs created in the install folder. On the last control plane, and on a machine that installed add-ons in a cluster that it is not part of, ADDON_pre_remove removes their resources in the cluster. On other nodes the cluster keeps them, and ADDON_leave prepares the removal of this node. ADDON_uninstall removes their changes on this node. Without these hooks, an add-on's changes to the machine and the cluster remain.

After a failed hook, run the same command again to resume with that hook; --keep-going skips it.`;

export const command = commandFor(RESET, {
  details: DETAILS,
  examples: ['curlew reset', 'curlew reset --yes --json'],
  run: async ({ request, options: { dryRun } }, context): Promise<ResetResult | NothingToReset | DryRun> => {
    const { nothingToReset, planReset, reset } = await import('../../app/reset.ts');
    const nothing = await nothingToReset(request, context);
    if (nothing !== undefined) return nothing;
    if (dryRun) return planReset(request, context);
    const { placesOf } = await import('../../steps/node/target.ts');
    const { directory } = placesOf(request, context);
    if (!request.yes) await confirm(`Remove everything on this node that was installed in ${directory}?`, context);
    return outlivingTerminal(async () => reset(request, context));
  },
  render: (result, args, paint) => {
    if (!('removed' in result)) return renderNodeResult(result, paint, args);
    const addons = 'addons' in result ? result.addons : [];
    const rows = addons.map((addon) => `${paint.mark(markOf(addon))}${addon.name}  ${addon.version}  removed`);
    const { directory, removed } = result;
    const files =
      removed.length === 0
        ? `nothing was installed in ${directory}`
        : `removed from ${directory}: ${removed.join(', ')}`;
    const more = 'failed' in result ? [...leftLines(addons), ...failedLines(result.failed)] : leftLines(addons);
    return [...rows, files, ...more, ...('messages' in result ? messageLines(result.messages) : [])].join('\n');
  },
  exitCode: (result) => ('addons' in result ? nodeExitCode(result) : 0),
});
