/** `curlew rollback`: restores an add-on to the state before its last change. */
import { CurlewError } from '../../core/errors.ts';
import { command, useCase } from '../command.ts';
import { HOOK_OPTIONS, IMAGE_OPTIONS, TARGET_OPTIONS } from '../node-options.ts';
import { renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const rollback = useCase(async () => (await import('../../app/rollback.ts')).rollback);

const DETAILS = `Installs the add-on's previous package and settings again, after a failed or finished change. Its hooks run as in any installation. The previous package is kept until the next change begins; install --drop-previous does not keep it. Data that a newer version has changed is not restored: see the add-on's documentation about downgrades.`;

export const rollbackCommand = command({
  name: 'rollback',
  operands: 'ADDON',
  details: DETAILS,
  examples: ['curlew rollback registry'],
  options: { ...TARGET_OPTIONS, ...IMAGE_OPTIONS, ...HOOK_OPTIONS },
  run: async ({ operands: [addon], options }, context) => {
    if (addon === undefined) {
      throw new CurlewError('USAGE', 'curlew rollback: specify one add-on', {
        hint: 'curlew status shows installed add-ons and unfinished changes',
      });
    }
    return outlivingTerminal(async () => rollback({ addon, ...options }, context));
  },
  render: (result) => renderNodeResult(result),
});
