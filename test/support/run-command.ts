/** Any command inside of the process of a test: no time goes into starting one. */
import { COMMANDS } from '../../src/cli/commands.ts';
import { readArguments } from '../../src/cli/read-arguments.ts';
import { renderFailure } from '../../src/cli/render/failure.ts';
import { NO_PAINT } from '../../src/cli/render/paint.ts';
import { createPlainLines } from '../../src/cli/render/plain.ts';
import { CurlewError, ERROR_CODES } from '../../src/core/errors.ts';
import type { ProgressEvent } from '../../src/core/events.ts';
import type { SourceOutcome } from './source-command.ts';

/** What the command would print, and its status. */
export async function runCommand(
  [name = '', ...words]: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<SourceOutcome> {
  const said: string[] = [];
  const line = createPlainLines(Date.now);
  const context = {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    report: (event: ProgressEvent) => said.push(line(event) ?? ''),
    signal: new AbortController().signal,
  };
  try {
    const command = await COMMANDS.get(name)?.load();
    if (command === undefined) throw new Error(`no command ${name}`);
    const args = readArguments(command, words);
    const result = await command.run(args, context);
    const stdout = args.flag('json') ? JSON.stringify(result) : command.render(result, args, NO_PAINT);
    return { exitCode: command.exitCode?.(result) ?? 0, stdout, stderr: said.join('\n') };
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    said.push(renderFailure(error, NO_PAINT));
    return { exitCode: ERROR_CODES[error.code], stdout: '', stderr: said.join('\n') };
  }
}
