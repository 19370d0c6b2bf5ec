/** `curlew rollback`: an add-on back to what it was before its last change. */
import { rollback } from '../../app/rollback.ts';
import { CurlewError } from '../../core/errors.ts';
import { command } from '../command.ts';
import { HOOK_OPTIONS, TARGET_OPTIONS } from '../node-options.ts';
import { renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `The package and the settings that the add-on had before it was changed last are installed again, whether that change failed or finished: their hooks run as in any installation. What was before is kept until the next change begins; install --drop-previous does not keep it. Data that a newer version has changed stays changed: see what the add-on says of going back.`;

export const rollbackCommand = command({
  name: 'rollback',
  operands: 'ADDON',
  details: DETAILS,
  examples: ['curlew rollback registry'],
  options: { ...TARGET_OPTIONS, ...HOOK_OPTIONS },
  run: async ({ operands: [addon], options }, context) => {
    if (addon === undefined) {
      throw new CurlewError('USAGE', 'curlew rollback: one add-on is to be named', {
        hint: 'curlew status shows what is installed, and what did not finish',
      });
    }
    return outlivingTerminal(async () => rollback({ addon, ...options }, context));
  },
  render: (result) => renderNodeResult(result),
});
