/** `curlew rollback`: restores an add-on to the state before its last change. */
import { ROLLBACK } from '../../requests/node.ts';
import type { NodeResult } from '../../app/install-result.ts';
import { commandFor } from '../command.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `Installs the add-on's previous package and settings again, after a failed or finished change. Its hooks run as in any installation. The previous package is kept until the next change begins; install --drop-previous does not keep it. Objects of the cluster that only the newer version has stay there: those in the YAML of its package are named, to be deleted with kubectl. Data that a newer version has changed is not restored: see the add-on's documentation about downgrades.`;

export const command = commandFor(ROLLBACK, {
  details: DETAILS,
  examples: ['curlew rollback registry --dry-run', 'curlew rollback registry'],
  run: async ({ request, options: { dryRun } }, context): Promise<NodeResult> => {
    const { planRollback, rollback } = await import('../../app/rollback.ts');
    if (dryRun) return planRollback(request, context);
    return outlivingTerminal(async () => rollback(request, context));
  },
  render: (result, args, paint) => renderNodeResult(result, paint, args),
  exitCode: nodeExitCode,
});
