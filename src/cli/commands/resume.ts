/** `curlew resume`: the last run again, as it was asked for. */
import { FOLDER_OPTIONS } from '../options.ts';
import { realpath } from 'node:fs/promises';
import { CurlewError } from '../../core/errors.ts';
import { lastAsked } from '../../runtime/run/last-asked.ts';
import { argumentsOf, parseAskedCommand, type AskedCommand } from '../asked-command.ts';
import type { Arguments, Command, CommandContext } from '../command.ts';
import { runReset, runRollback, runUninstall } from '../kept-run.ts';
import { folderOf } from '../../app/install-folder.ts';
import { HOOK_OPTIONS, placesOf, TARGET_OPTIONS } from '../node-target.ts';
import { runNode, type NodeResult } from '../node-run.ts';
import { nodeExitCode, renderNodeResult } from '../render/run-result.ts';

const DETAILS = `What the last run was asked for is kept in its folder: kind, source, installer spec and options. It continues at the first hook that is not done, or starts over where that is not safe. --yes, --hook-timeout and --unconfined may be given again. When the last run finished, there is nothing to do.`;

type ResumeResult = { readonly resumed: string; readonly result: NodeResult } | { readonly resumed: undefined };

export const resume: Command<ResumeResult> = {
  name: 'resume',
  summary: 'Resume the last run, if it did not finish',
  operands: '',
  details: DETAILS,
  examples: ['curlew resume', 'curlew resume --root /tmp/trial'],
  options: { ...TARGET_OPTIONS, ...HOOK_OPTIONS, root: FOLDER_OPTIONS.root },
  run: async (args, context) => {
    const directory = folderOf(args.options, context);
    const last = await lastAsked(directory);
    if (last === undefined) return { resumed: undefined };
    const asked = parseAskedCommand(last.asked?.command);
    const words = withHookWords(argumentsOf(asked), args);
    const there = { ...context, cwd: asked.cwd };
    await requireSameFolder(directory, placesOf(words, there).directory);
    return { resumed: last.run, result: await again(asked, words, there) };
  },
  render: (result) => (result.resumed === undefined ? 'There is no run to resume.' : renderNodeResult(result.result)),
  exitCode: (result) => (result.resumed === undefined ? 0 : nodeExitCode(result.result)),
};

/** A folder that was copied or moved tells of a run elsewhere: that place, the machine itself perhaps, is left alone. */
async function requireSameFolder(given: string, asked: string): Promise<void> {
  const real = async (path: string): Promise<string> => realpath(path).catch(() => path);
  if ((await real(given)) === (await real(asked))) return;
  throw new CurlewError('FILE_UNUSABLE', `resume: the last run in ${given} was begun in ${asked}`, {
    hint: 'the folder was copied or moved: give the whole command that began it, for the place that is meant',
  });
}

/** What was asked for, but for what is given again for its hooks. */
function withHookWords(asked: Arguments, args: Arguments): Arguments {
  const isOfHooks = (name: string): boolean => Object.hasOwn(HOOK_OPTIONS, name) || name === 'unconfined';
  const from = (name: string): Arguments => (isOfHooks(name) && args.text(name) !== undefined ? args : asked);
  return {
    operands: asked.operands,
    options: asked.options,
    positionals: asked.positionals,
    text: (name) => from(name).text(name),
    texts: (name) => from(name).texts(name),
    flag: (name) => asked.flag(name) || (isOfHooks(name) && args.flag(name)),
  };
}

async function again(asked: AskedCommand, args: Arguments, context: CommandContext): Promise<NodeResult> {
  switch (asked.name) {
    case 'install':
    case 'join':
    case 'upgrade':
      return runNode(asked.name, args, context, asked.installer);
    case 'rollback':
      return runRollback(asked.operands[0] ?? '', args, context);
    case 'uninstall':
      return runUninstall(args, context);
    case 'reset':
      return runReset(args, context);
    default:
      throw new CurlewError(
        'UNSUPPORTED',
        `resume: the last run was begun by curlew ${asked.name}, which is not known`,
        {
          hint: 'use the version of curlew that began it',
        },
      );
  }
}
