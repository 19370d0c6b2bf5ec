/** `curlew upgrade`: upgrade this node to what a spec says. */
import type { RunResult } from '../../runtime/execute.ts';
import type { Command } from '../command.ts';
import { RUN_OPTIONS, runNode, runTable } from '../node-run.ts';

const DETAILS = `For nodes beside the primary, which is upgraded by \`curlew install\` with the new bundle, and before them. The container runtime is installed, the join hooks of all add-ons run, then kubernetes of this node is upgraded.

When a run has failed, the same command goes on.`;

export const upgrade: Command<RunResult> = {
  name: 'upgrade',
  summary: 'Upgrade this node to what a spec says',
  operands: '',
  details: DETAILS,
  examples: ['curlew upgrade --bundle bundle.tar.gz'],
  options: RUN_OPTIONS,
  run: async (args, context) => runNode('upgrade', args, context),
  render: (result) => runTable(result),
};
