/** `curlew resume`: resumes the last run with its original request. */
import { command, useCase } from '../command.ts';
import { HOOK_OPTIONS, TARGET_OPTIONS } from '../node-options.ts';
import { FOLDER_OPTIONS } from '../options.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const resume = useCase(async () => (await import('../../app/resume.ts')).resume);

const DETAILS = `The folder of the last run contains its request: kind, source, installer spec and options. The run resumes at the first unfinished hook, or starts over if resuming is not safe. --yes, --hook-timeout and --unconfined can be given again. If the last run finished, there is nothing to do.`;

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
