/** `curlew resume`: the last run again, as it was asked for. */
import { resume } from '../../app/resume.ts';
import { command } from '../command.ts';
import { HOOK_OPTIONS, TARGET_OPTIONS } from '../node-options.ts';
import { FOLDER_OPTIONS } from '../options.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `What the last run was asked for is kept in its folder: kind, source, installer spec and options. It continues at the first hook that is not done, or starts over where that is not safe. --yes, --hook-timeout and --unconfined may be given again. When the last run finished, there is nothing to do.`;

export const resumeCommand = command({
  name: 'resume',
  operands: '',
  details: DETAILS,
  examples: ['curlew resume', 'curlew resume --root /tmp/trial'],
  options: { ...TARGET_OPTIONS, ...HOOK_OPTIONS, root: FOLDER_OPTIONS.root },
  run: async ({ options }, context) => outlivingTerminal(async () => resume(options, context)),
  render: (result) => (result.resumed === undefined ? 'There is no run to resume.' : renderNodeResult(result.result)),
  exitCode: (result) => (result.resumed === undefined ? 0 : nodeExitCode(result.result)),
});
