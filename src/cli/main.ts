#!/usr/bin/env node
/** Entry of the `curlew` command: signals, arguments, exit codes. Everything else is behind the table of commands. */
import { parseArgs } from 'node:util';
import { asError, CurlewError, errnoOf, ERROR_CODES } from '../core/errors.ts';
import { COMMANDS } from './commands.ts';
import { commandHelp, GLOBAL_OPTIONS, parseArgsOptions, type Arguments, type Command } from './command.ts';
import { renderFailure } from './render/failure.ts';
import { toolVersion } from './version.ts';

const HINT = 'curlew --help lists the commands';

function overview(): string {
  const width = Math.max(...[...COMMANDS.keys()].map((name) => name.length)) + 2;
  const rows = [...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`);
  return `Usage: curlew COMMAND [options]\n\nCommands:\n${rows.join('\n')}\n\ncurlew COMMAND --help tells more. curlew --version prints the version.`;
}

function readArguments(command: Command<unknown>, words: readonly string[]): Arguments {
  try {
    const { values, positionals } = parseArgs({
      args: [...words],
      options: parseArgsOptions({ ...command.options, ...GLOBAL_OPTIONS }),
      allowPositionals: true,
      strict: true,
    });
    const all = values as Record<string, string | boolean | readonly (string | boolean)[] | undefined>;
    // Most likely a shell variable that is not set; as a path it would mean the current folder.
    const empty = Object.entries(all).find(([, value]) => [value].flat().includes(''));
    if (empty !== undefined) {
      throw new CurlewError('USAGE', `curlew ${command.name}: --${empty[0]} has an empty value`, {
        hint: `curlew ${command.name} --help lists the options`,
      });
    }
    return {
      positionals,
      text: (option) => (typeof all[option] === 'string' ? all[option] : undefined),
      texts: (option) => [all[option] ?? []].flat().filter((value) => typeof value === 'string'),
      flag: (option) => all[option] === true,
    };
  } catch (error) {
    if (!errnoOf(error)?.startsWith('ERR_PARSE_ARGS_')) throw error;
    const [message = ''] = asError(error).message.split('. ');
    throw new CurlewError('USAGE', `curlew ${command.name}: ${message}`, {
      hint: `curlew ${command.name} --help lists the options`,
    });
  }
}

/** Writes and waits until the text has left the process, so that a pipe gets all of it before the exit. */
async function print(stream: NodeJS.WriteStream, text: string): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.write(text, () => {
      resolve();
    });
  });
}

async function run(words: readonly string[], signal: AbortSignal): Promise<number> {
  const [name, ...rest] = words;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    await print(name === undefined ? process.stderr : process.stdout, `${overview()}\n`);
    return name === undefined ? ERROR_CODES.USAGE : 0;
  }
  if (name === '--version' || name === 'version') {
    await print(process.stdout, `${toolVersion()}\n`);
    return 0;
  }
  const found = COMMANDS.get(name);
  if (found === undefined) throw new CurlewError('USAGE', `curlew: unknown command "${name}"`, { hint: HINT });
  const command = await found.load();
  if (rest.includes('--help') || rest.includes('-h')) {
    await print(process.stdout, `${commandHelp(command)}\n`);
    return 0;
  }
  const args = readArguments(command, rest);
  const { createProgress } = await import('./render/progress.ts');
  const progress = await createProgress({ stream: process.stderr, quiet: args.flag('quiet') });
  try {
    const result = await command.run(args, { signal, report: progress.report, env: process.env, cwd: process.cwd() });
    await progress.stop();
    const text = args.flag('json') ? JSON.stringify(result, undefined, 2) : command.render(result, args);
    if (text !== '') await print(process.stdout, `${text}\n`);
    return command.exitCode?.(result) ?? 0;
  } finally {
    await progress.stop();
  }
}

/** One owner of cancellation: the first signal stops everything in order, a second one leaves at once. */
function listenForSignals(): AbortSignal {
  const controller = new AbortController();
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(ERROR_CODES.CANCELLED);
    controller.abort(new CurlewError('CANCELLED', 'cancelled'));
  };
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  return controller.signal;
}

async function main(): Promise<void> {
  process.stdout.on('error', (error) => {
    // The reader of a pipe has left (`curlew … | head`): nothing more to say.
    if (errnoOf(error) === 'EPIPE') process.exit(0);
    throw error;
  });
  // What is said on the way is worth no failure: its reader, or the terminal, may have gone.
  process.stderr.on('error', () => undefined);
  const signal = listenForSignals();
  const words = process.argv.slice(2);
  try {
    process.exitCode = await run(words, signal);
  } catch (thrown) {
    const error = signal.aborted ? new CurlewError('CANCELLED', 'cancelled', { cause: thrown }) : asError(thrown);
    await print(process.stderr, `${renderFailure(error, { json: words.includes('--json') })}\n`);
    process.exitCode = error instanceof CurlewError ? ERROR_CODES[error.code] : 1;
  }
}

await main();
