/** The common part of `install`, `join` and `upgrade`. */
import type { NodeResult } from '../app/install-result.ts';
import type { INSTALL, InstallRequest } from '../requests/node.ts';
import { CurlewError } from '../core/errors.ts';
import { FLAGS } from '../spec/flags.ts';
import { commandFor, type Arguments, type Command } from './command.ts';
import { nodeExitCode, renderNodeResult } from './render/run-result.ts';
import { outlivingTerminal } from './signals.ts';

/** `USAGE` for conflicting options. */
function checkPlanOptions({ request: { out, plan } }: Arguments<typeof INSTALL>): void {
  if (out !== undefined && plan !== undefined)
    throw new CurlewError('USAGE', '--plan and --out cannot be used together: --out is for new plans');
}

/** Creates a command that runs an installer spec. */
export function specCommand(
  of: typeof INSTALL,
  kind: InstallRequest['kind'],
  help: Pick<Command, 'details' | 'examples'>,
): Command<NodeResult> {
  return commandFor(of, {
    ...help,
    bareWords: Object.keys(FLAGS),
    run: async (args, context): Promise<NodeResult> => {
      checkPlanOptions(args);
      const { install, planInstall } = await import('../app/install.ts');
      const { out, force, ...request } = args.request;
      if (args.options.dryRun) return planInstall({ kind, out, force, ...request }, context);
      return outlivingTerminal(async () => install({ kind, ...request }, context));
    },
    render: (result, args, paint) => renderNodeResult(result, paint, args),
    exitCode: nodeExitCode,
  });
}
