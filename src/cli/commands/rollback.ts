/** `curlew rollback`: an add-on back to what it was before its last change. */
import { CurlewError } from '../../core/errors.ts';
import type { Command } from '../command.ts';
import { ROLLBACK_OPTIONS, runRollback } from '../kept-run.ts';
import { renderNodeResult } from '../render/run-result.ts';
import type { RunResult } from '../../runtime/run/run-result.ts';

const DETAILS = `The package and the settings that the add-on had before it was changed last are installed again, whether that change failed or finished: their hooks run as in any installation. What was before is kept until the next change begins; install --drop-previous does not keep it. Data that a newer version has changed stays changed: see what the add-on says of going back.`;

export const rollback: Command<RunResult> = {
  name: 'rollback',
  summary: 'Install what an add-on was before its last change',
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
