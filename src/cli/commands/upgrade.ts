/** `curlew upgrade`: upgrade this node to what a spec says. */
import type { Command } from '../command.ts';
import { RUN_OPTIONS, runNode, type NodeResult } from '../node-run.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';

const DETAILS = `For nodes beside the primary, which is upgraded by \`curlew install\` with the new bundle, and before them. The container runtime is installed, the join hooks of all add-ons run, then kubernetes of this node is upgraded.

When a run has failed, the same command goes on.`;

export const upgrade: Command<NodeResult> = {
  name: 'upgrade',
  summary: 'Upgrade this node to what a spec says',
  operands: '',
  details: DETAILS,
  examples: ['curlew upgrade --bundle bundle.tar.gz'],
  options: RUN_OPTIONS,
  run: async (args, context) => runNode('upgrade', args, context),
  render: (result) => renderNodeResult(result),
  exitCode: nodeExitCode,
};
