/** Runs over what a node has already: rollback and reset. */
import { lastAsked } from '../runtime/last-asked.ts';
import { execute, type RunResult } from '../runtime/execute.ts';
import { prepare } from '../runtime/prepare.ts';
import { removeOurFiles, resetRequest } from '../runtime/reset.ts';
import { rollbackRequest, type KeptRequest } from '../runtime/rollback.ts';
import { askedFor, wasAsked } from './asked-command.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { clusterOfKept } from './node-cluster.ts';
import { hookEnv, outliveTerminal, placeOf, TARGET_OPTIONS, targetOf } from './node-target.ts';
import { ownScripts } from './own-scripts.ts';

export interface ResetResult extends RunResult {
  readonly directory: string;
  /** What was removed of the install folder. */
  readonly removed: readonly string[];
}

async function runKept<Result>(
  args: Arguments,
  context: CommandContext,
  { name, specs }: { readonly name: string; readonly specs: OptionSpecs },
  request: (directory: string) => Promise<KeptRequest>,
  after: (result: RunResult, directory: string) => Promise<Result>,
): Promise<Result> {
  const restore = outliveTerminal();
  try {
    const target = targetOf(args, context);
    const kept = await request(target.directory);
    await using prepared = await prepare({
      ...kept,
      place: await placeOf(target, context),
      scripts: ownScripts(),
      env: hookEnv(args, context),
      skipImages: 'they were loaded when it was installed',
      hookLimit: undefined,
      command: askedFor(name, args, { specs, cwd: context.cwd }),
      cluster: clusterOfKept(kept, target.directory, args, context),
    });
    const { report, ask, signal } = context;
    return await after(await execute(prepared, prepared.plan, { report, ask, signal }), target.directory);
  } finally {
    restore();
  }
}

export const ROLLBACK_OPTIONS = TARGET_OPTIONS;

/** Installs what the add-on was when its last run finished. */
export async function runRollback(addon: string, args: Arguments, context: CommandContext): Promise<RunResult> {
  return runKept(
    args,
    context,
    { name: 'rollback', specs: ROLLBACK_OPTIONS },
    async (directory) => {
      const isAgain = async (): Promise<boolean> =>
        wasAsked((await lastAsked(directory))?.asked?.command, 'rollback', addon);
      return rollbackRequest(directory, addon, { isAgain, signal: context.signal });
    },
    async (result) => Promise.resolve(result),
  );
}

export const RESET_OPTIONS = {
  ...TARGET_OPTIONS,
  yes: { type: 'boolean', short: 'y', help: 'do not ask' },
} satisfies OptionSpecs;

/** Runs the uninstall hooks of all add-ons, then removes what runs put into the install folder. */
export async function runReset(args: Arguments, context: CommandContext): Promise<ResetResult> {
  return runKept(
    args,
    context,
    { name: 'reset', specs: RESET_OPTIONS },
    async (directory) => resetRequest(directory, context),
    async (result, directory) => ({ ...result, directory, removed: await removeOurFiles(directory) }),
  );
}
