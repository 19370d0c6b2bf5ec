/** Runs over what a node has already: rollback, uninstall and reset. */
import { lastAsked } from '../runtime/run/last-asked.ts';
import { dryRun, type DryRun } from '../runtime/run/dry-run.ts';
import { execute } from '../runtime/run/execute.ts';
import { readable } from '../runtime/run/history.ts';
import { plainPlace } from '../runtime/node/node-place.ts';
import { prepare, viewRun } from '../runtime/run/prepare.ts';
import { resetRequest, uninstallRequest, type RemovalOptions } from '../runtime/run/removal.ts';
import { removeOurFiles } from '../runtime/node/remove-files.ts';
import { rollbackRequest } from '../runtime/run/rollback.ts';
import { askedFor, wasAsked } from './asked-command.ts';
import type { Arguments, CommandContext, OptionSpecs } from './command.ts';
import { clusterOfKept } from './node-cluster.ts';
import {
  hookEnv,
  hookLimitOf,
  HOOK_OPTIONS,
  outliveTerminal,
  placeOf,
  placesOf,
  TARGET_OPTIONS,
  targetOf,
  usage,
  whySkipImages,
} from './node-target.ts';
import { ownScripts } from '../app/own-scripts.ts';
import { toolVersion } from '../app/version.ts';
import type { RunResult } from '../runtime/run/run-result.ts';
import type { RunRequest } from '../runtime/run/request.ts';

export interface ResetResult extends RunResult {
  readonly directory: string;
  /** What was removed of the install folder. */
  readonly removed: readonly string[];
}

type KeptRequest = Pick<
  RunRequest,
  'kind' | 'packages' | 'removal' | 'variables' | 'reapply' | 'allowDowngrade' | 'keepsPrevious'
>;

interface KeptCommand {
  readonly name: string;
  readonly specs: OptionSpecs;
  readonly request: (directory: string) => Promise<KeptRequest>;
}

function wholeRequest(
  { name, specs }: KeptCommand,
  kept: KeptRequest,
  args: Arguments,
  context: CommandContext,
): Omit<RunRequest, 'place'> {
  return {
    ...kept,
    scripts: ownScripts(),
    env: hookEnv(args, context),
    // kubelet may have removed those of a former version.
    skipImages: whySkipImages(args),
    hookLimit: hookLimitOf(args),
    command: askedFor(name, args, { specs, cwd: context.cwd }),
    cluster: clusterOfKept(kept, args, context),
  };
}

async function runKept<Result>(
  command: KeptCommand,
  args: Arguments,
  context: CommandContext,
  after: (result: RunResult, directory: string) => Promise<Result>,
): Promise<Result> {
  const restore = outliveTerminal();
  try {
    const target = targetOf(args, context);
    const { directory } = target;
    const whole = wholeRequest(command, await command.request(directory), args, context);
    await using prepared = await prepare({ ...whole, place: await placeOf(target, context) }, context);
    const { report, ask, signal } = context;
    return await after(await execute(prepared, prepared.plan, { report, ask, signal }), directory);
  } finally {
    restore();
  }
}

/** What it would do; nothing is changed. */
async function showKept(command: KeptCommand, args: Arguments, context: CommandContext): Promise<DryRun> {
  const { directory } = placesOf(args, context);
  const { report, signal } = context;
  const view = await readable(directory, async () => {
    const whole = wholeRequest(command, await command.request(directory), args, context);
    return viewRun({ ...whole, place: plainPlace(directory) }, context);
  });
  for (const text of view.view.notes) report({ type: 'note', level: 'warning', text });
  return dryRun(view, { words: {}, tool: toolVersion(), out: undefined, report, signal });
}

export const ROLLBACK_OPTIONS = { ...TARGET_OPTIONS, ...HOOK_OPTIONS } satisfies OptionSpecs;

/** Installs what the add-on was when its last run finished. */
export async function runRollback(addon: string, args: Arguments, context: CommandContext): Promise<RunResult> {
  const isAgain = async (directory: string): Promise<boolean> =>
    wasAsked((await lastAsked(directory))?.asked?.command, 'rollback', addon);
  const request = async (directory: string): Promise<KeptRequest> =>
    rollbackRequest(directory, addon, { isAgain: async () => isAgain(directory), signal: context.signal });
  const command = { name: 'rollback', specs: ROLLBACK_OPTIONS, request };
  return runKept(command, args, context, async (result) => Promise.resolve(result));
}

/** Options of every command that removes add-ons. */
const REMOVAL_OPTIONS = {
  ...TARGET_OPTIONS,
  ...HOOK_OPTIONS,
  yes: { type: 'boolean', short: 'y', help: 'do not ask, and answer yes to what hooks want confirmed' },
  'keep-data': { type: 'boolean', help: 'ask hooks to leave data alone (CURLEW_KEEP_DATA=1)' },
  'keep-going': { type: 'boolean', help: 'continue when a hook fails or a package is missing; the result names them' },
  'dry-run': { type: 'boolean', help: 'show what would be removed, and change nothing' },
} satisfies OptionSpecs;

function removalOptions(args: Arguments): RemovalOptions {
  return {
    keepData: args.flag('keep-data'),
    keepGoing: args.flag('keep-going'),
    pruneImages: args.flag('prune-images'),
  };
}

export const UNINSTALL_OPTIONS = {
  ...REMOVAL_OPTIONS,
  'prune-images': { type: 'boolean', help: 'remove images that no other add-on of this node has, too' },
} satisfies OptionSpecs;

function uninstallCommand(args: Arguments, context: CommandContext): KeptCommand {
  if (args.flag('prune-images') && args.text('root') !== undefined)
    throw usage('--prune-images cannot be used with --root: the container runtime of this machine is left alone');
  const names = [...new Set(args.positionals)];
  const request = async (directory: string): Promise<KeptRequest> =>
    uninstallRequest(directory, names, removalOptions(args), context);
  return { name: 'uninstall', specs: UNINSTALL_OPTIONS, request };
}

/** Removes the add-ons that the words name from this node, and from the cluster where they were installed from it. */
export async function runUninstall(args: Arguments, context: CommandContext): Promise<RunResult> {
  return runKept(uninstallCommand(args, context), args, context, async (result) => Promise.resolve(result));
}

export async function showUninstall(args: Arguments, context: CommandContext): Promise<DryRun> {
  return showKept(uninstallCommand(args, context), args, context);
}

export const RESET_OPTIONS = REMOVAL_OPTIONS;

function resetCommand(args: Arguments, context: CommandContext): KeptCommand {
  const request = async (directory: string): Promise<KeptRequest> =>
    resetRequest(directory, removalOptions(args), context);
  return { name: 'reset', specs: RESET_OPTIONS, request };
}

/** Runs the hooks that remove all add-ons, then removes what runs put into the install folder. */
export async function runReset(args: Arguments, context: CommandContext): Promise<ResetResult> {
  return runKept(resetCommand(args, context), args, context, async (result, directory) => ({
    ...result,
    directory,
    removed: await removeOurFiles(directory),
  }));
}

export async function showReset(args: Arguments, context: CommandContext): Promise<DryRun> {
  return showKept(resetCommand(args, context), args, context);
}
