/** `curlew resume`: resumes the last run with its original request. */
import { RESUME } from '../../requests/node.ts';
import { commandFor } from '../command.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';
import { outlivingTerminal } from '../signals.ts';

const DETAILS = `The folder of the last run contains its request: kind, source, installer spec and options. The run resumes at the first unfinished hook, or starts over if resuming is not safe. --yes, --hook-timeout, --unconfined and --kubeconfig can be given again. If the last run finished, there is nothing to do.`;

export const command = commandFor(RESUME, {
  details: DETAILS,
  examples: ['curlew resume --dry-run', 'curlew resume', 'curlew resume --root /tmp/trial --kubeconfig ~/.kube/config'],
  run: async ({ request }, context) =>
    outlivingTerminal(async () => (await import('../../app/resume.ts')).resume(request, context)),
  render: (result, { request }, paint) => {
    if (result.resumed === undefined) return 'There is no run to resume.';
    const { kubeconfig, context } = result;
    return renderNodeResult(result.result, paint, { request: { ...request, kubeconfig, context } });
  },
  exitCode: (result) => (result.resumed === undefined ? 0 : nodeExitCode(result.result)),
});
