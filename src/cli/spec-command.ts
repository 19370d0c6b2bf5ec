/** The common part of `install`, `join` and `upgrade`. */
import type { NodeResult } from '../app/install.ts';
import { CurlewError } from '../core/errors.ts';
import type { SpecKind } from '../runtime/plan/run-plan.ts';
import { FLAGS } from '../spec/flags.ts';
import { command, useCase, type Command, type OptionValues } from './command.ts';
import { RUN_OPTIONS, type PLAN_OPTIONS } from './node-options.ts';
import { nodeExitCode, renderNodeResult } from './render/run-result.ts';
import { outlivingTerminal } from './signals.ts';

const install = useCase(async () => (await import('../app/install.ts')).install);
const planInstall = useCase(async () => (await import('../app/install.ts')).planInstall);

/** `USAGE` for conflicting options. */
function checkPlanOptions({ dryRun, out, force, plan }: OptionValues<typeof PLAN_OPTIONS>): void {
  const wrong = (what: string): CurlewError => new CurlewError('USAGE', what);
  if (out !== undefined && !dryRun) throw wrong('--out requires --dry-run');
  if (force && out === undefined) throw wrong('--force requires --out');
  if (out !== undefined && plan !== undefined)
    throw wrong('--plan and --out cannot be used together: --out is for new plans');
}

/** Creates a command that runs an installer spec. */
export function specCommand(kind: SpecKind, help: Pick<Command, 'details' | 'examples'>): Command<NodeResult> {
  return command({
    name: kind,
    operands: '[FLAG…]',
    ...help,
    options: RUN_OPTIONS,
    bareWords: Object.keys(FLAGS),
    run: async ({ operands, options }, context): Promise<NodeResult> => {
      checkPlanOptions(options);
      const request = { kind, flags: operands, ...options };
      if (options.dryRun) return planInstall(request, context);
      return outlivingTerminal(async () => install(request, context));
    },
    render: (result) => renderNodeResult(result),
    exitCode: nodeExitCode,
  });
}
