/** Any command inside of the process of a test: no time goes into starting one. */
import type { CommandContext } from '../../src/cli/command.ts';
import { commandOf } from '../../src/cli/commands.ts';
import { splitName } from '../../src/cli/split-name.ts';
import { ownProcess } from '../../src/cli/own-program.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { renderFailure } from '../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { createPlainLines } from '../../src/cli/render/plain.ts';
import { withSuggestions } from '../../src/cli/suggested-commands.ts';
import { CurlewError, ERROR_CODES } from '../../src/core/errors.ts';
import { never } from './context.ts';
import { cleanEnvironment, type Outcome } from './curlew.ts';
import type { Tree } from './tree.ts';

/** What the command would print, and its status. `env` is added to the environment that `curlew` has in tests. */
export async function runCommand(
  words: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  { ask, signal = never }: Partial<Pick<CommandContext, 'ask' | 'signal'>> = {},
): Promise<Outcome> {
  const said: string[] = [];
  let lines = createPlainLines(Date.now, '');
  const report: CommandContext['report'] = (event) => {
    const text = lines.take(event);
    if (text !== undefined) said.push(text);
  };
  const context = { cwd, env: cleanEnvironment({ cwd, env }), report, ask, signal, ...ownProcess() };
  try {
    const { name, args: rest } = splitName(words);
    const command = await commandOf(name);
    const args = readArguments(command, rest);
    lines = createPlainLines(Date.now, '', { isListed: command.listsSteps === true && !args.options.json });
    for (const text of args.notes) report({ type: 'note', level: 'warning', text });
    const result = await withSuggestions({ name, given: args }, context, async (completing) =>
      command.run(args, completing),
    );
    const stdout = args.options.json ? JSON.stringify(result) : command.render(result, args, NO_PAINT);
    return { exitCode: command.exitCode?.(result) ?? 0, stdout, stderr: said.join('\n') };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    said.push(renderFailure(error, NO_PAINT));
    return { exitCode: ERROR_CODES[error.code], stdout: '', stderr: said.join('\n') };
  }
}

/** The same for commands that run hooks in a box: tracers write into it. */
export async function runTraced(
  words: readonly string[],
  box: Tree,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  return runCommand(words, box.path, { TRACE: box.at('trace'), ...env });
}
