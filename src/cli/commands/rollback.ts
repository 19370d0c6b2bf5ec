/** `curlew rollback`: an add-on back to what it was before its upgrade failed. */
import { CurlewError } from '../../core/errors.ts';
import type { RunResult } from '../../runtime/execute.ts';
import type { Command } from '../command.ts';
import { ROLLBACK_OPTIONS, runRollback } from '../kept-run.ts';
import { renderNodeResult } from '../render/run-result.ts';

const DETAILS = `When an upgrade has failed, the package and the settings of before are installed again: their hooks run as in any installation. What was before is kept until a run with the add-on finishes.`;

export const rollback: Command<RunResult> = {
  name: 'rollback',
  summary: 'Install what an add-on was before its upgrade failed',
  operands: 'ADDON',
  details: DETAILS,
  examples: ['curlew rollback registry'],
  options: ROLLBACK_OPTIONS,
  run: async (args, context) => {
    const [addon] = args.positionals;
    if (addon === undefined) {
      throw new CurlewError('USAGE', 'curlew rollback: one add-on is to be named', {
        hint: 'curlew status shows what is installed, and what did not finish',
      });
    }
    return runRollback(addon, args, context);
  },
  render: (result) => renderNodeResult(result),
};
