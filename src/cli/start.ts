/** The `curlew` command: signals, arguments, exit codes. Everything else is behind the table of commands. */
import type { Ask } from '../core/context.ts';
import { asError, canceledOr, CurlewError, errnoOf, ERROR_CODES, fileError, NOTHING_WRITTEN } from '../core/errors.ts';
import { printableJson } from '../core/json.ts';
import { workingFolder } from '../platform/files/working-folder.ts';
import { commandOf, familyOf, missingHere, splitFirst, withOffer, withPlace, type Split } from './commands.ts';
import { familyHelp, overview } from './overview.ts';
import { ownProcess } from './own-program.ts';
import { fitted, screen, widthFor } from './render/columns.ts';
import { failureJson, renderFailure } from './render/failure.ts';
import { isTerminal, paintFor } from './render/paint.ts';
import type { Progress } from './render/terminal.ts';
import { formatSeconds } from './render/units.ts';
import { listenForSignals } from './signals.ts';

/** Writes a text and waits until it is flushed, so that a pipe receives all of it before the exit. */
async function print(stream: NodeJS.WriteStream, text: string): Promise<void> {
  await new Promise<void>((resolve) => {
    stream.write(text, () => {
      resolve();
    });
  });
}

/** Prints a text for people: on a terminal, no word is broken at its edge. */
async function show(stream: NodeJS.WriteStream, text: string): Promise<void> {
  const width = widthFor(stream);
  await print(stream, `${width === undefined ? text : fitted(text, width)}\n`);
}

/** Maximum bytes buffered for a slow reader of standard output. */
const MAX_BUFFERED = 1 << 20;

function printLine(line: string): void {
  if (process.stdout.writableLength < MAX_BUFFERED) process.stdout.write(`${line}\n`);
}

/** Options that are commands. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['--version', 'version'],
  ['-V', 'version'],
  ['-v', 'version'],
  ['--help', 'help'],
  ['-h', 'help'],
]);

/** Only options before a name need the requests, which tell their values from it: `--version` may be that of `new`. */
async function split(argv: readonly string[]): Promise<Split> {
  const [first = '', ...rest] = argv;
  const isName = !first.startsWith('-') || (rest.length === 0 && ALIASES.has(first));
  return isName ? splitFirst(argv) : (await import('./split-name.ts')).splitName(argv);
}

async function run(argv: readonly string[], signal: AbortSignal): Promise<number> {
  const width = widthFor(process.stdout);
  if (width !== undefined) Object.assign(screen, { columns: width, isTerminal: true });
  if (argv.length === 0) {
    await show(process.stderr, await helpAsCalled(overview()));
    return ERROR_CODES.USAGE;
  }
  if (argv[0] === '__complete') {
    const { complete, completionLines } = await import('./complete.ts');
    const completion = await complete(argv.slice(1), workingFolder());
    await print(process.stdout, `${completionLines(completion)}\n`);
    // To exit is to wait for what is being read, and a disk may not respond. Shells ignore the status.
    if (completion.isLate === true) process.kill(process.pid, 'SIGKILL');
    process.exit(0);
  }
  const { name: first, args: rest } = await split(argv);
  const name = ALIASES.get(first) ?? first;
  if (name === 'kurl') {
    const { runKurlTool } = await import('./kurl/tools.ts');
    const input = async (): Promise<string> => (await import('node:stream/consumers')).text(process.stdin);
    const { pause } = await import('../platform/limit/repeat.ts');
    const context = { input, say: printLine, env: ENVIRONMENT, signal, pause };
    await print(process.stdout, await runKurlTool(rest, context));
    return 0;
  }
  const asksForHelp = rest.includes('--help') || rest.includes('-h');
  if (name === 'help' || asksForHelp) {
    const topic = asksForHelp ? [name] : rest.filter((word) => !word.startsWith('-'));
    const text = topic.length === 0 ? overview() : await (await import('./help.ts')).helpAbout(topic);
    await show(process.stdout, await helpAsCalled(text));
    return 0;
  }
  if (familyOf(name).length > 0) {
    if (rest.length > 0) {
      const hint = `curlew ${name} COMMAND ${rest[0] ?? ''}; curlew ${name} --help lists the commands`;
      throw new CurlewError('USAGE', `curlew ${name}: no command`, { hint });
    }
    await show(process.stderr, familyHelp(name));
    return ERROR_CODES.USAGE;
  }
  const command = await commandOf(name);
  const { readArguments } = await import('./read-arguments.ts');
  const args = readArguments(command, rest);
  const { createProgress } = await import('./render/progress.ts');
  const { withSuggestions } = await import('./suggested-commands.ts');
  const animated = isTerminal(process.stderr, process.env);
  const progress = await createProgress({
    stream: process.stderr,
    animated,
    quiet: args.options.quiet,
    title: command.of.name,
    isListed: command.listsSteps === true && !args.options.json,
  });
  const carriesBytes = command.carriesBytes?.(args) === true;
  if (carriesBytes) process.stdout.off('error', stopWithoutOutput).on('error', () => undefined);
  try {
    const { report, around } = progress;
    for (const text of args.notes) report({ type: 'note', level: 'warning', text });
    const ask = askerOf(around);
    const context = {
      signal,
      report,
      ask,
      around,
      print: printLine,
      env: ENVIRONMENT,
      cwd: command.isAnywhere === true ? '/' : workingFolder(),
      ...ownProcess(),
    };
    const result = await withSuggestions(
      { name: command.of.name, given: args, missingAt: missingHere() },
      context,
      async (completing) => {
        requireGoing(signal);
        return command.run(args, completing);
      },
    );
    await progress.stop();
    const stream = carriesBytes ? process.stderr : process.stdout;
    const status = command.exitCode?.(result) ?? 0;
    if (args.options.json) await print(stream, `${printableJson(result, 2)}\n`);
    else {
      const text = await resultAsCalled(command.render(result, args, paintFor(stream, process.env)));
      if (text !== '') await show(stream, text);
      const given = { ...args.request, ...args.options };
      if (animated && !args.options.quiet && status === 0) await showTime(command.of.name, given);
    }
    return status;
  } finally {
    await progress.stop();
  }
}

/** Shorter commands need no line about their time. */
const NOTED_S = 2;

/** The last line of a long command on a terminal: a mark, its name, its time. */
async function showTime(command: string, given: Readonly<Record<string, unknown>>): Promise<void> {
  const seconds = performance.now() / 1000;
  if (seconds < NOTED_S) return;
  const { nameWhenDone } = await import('./command.ts');
  const paint = paintFor(process.stderr, process.env);
  await show(process.stderr, `${paint.mark('done')}${nameWhenDone(command, given)} in ${formatSeconds(seconds)}`);
}

/** Undefined without a terminal. */
function askerOf(around: Progress['around']): Ask | undefined {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  return async (question, options) => {
    const { askOperator } = await import('./ask-operator.ts');
    return around(async () => askOperator(question, options));
  };
}

/** Handles errors of standard output: a closed pipe is not a failure, anything else is. */
function stopWithoutOutput(error: Error): never {
  if (errnoOf(error) === 'EPIPE') process.exit(0);
  process.exit(fail(fileError('write to standard output', error)));
}

/** Prints a failure; returns the exit status. */
function fail(error: Error): number {
  const text = renderFailure(error, paintFor(process.stderr, process.env));
  const width = widthFor(process.stderr);
  process.stderr.write(`${width === undefined ? text : fitted(text, width)}\n`);
  return error instanceof CurlewError ? ERROR_CODES[error.code] : 1;
}

/** Ends a command that was canceled before it began. */
function requireGoing(signal: AbortSignal): void {
  if (signal.aborted) throw canceledOr(signal.reason, signal, NOTHING_WRITTEN);
}

/** Converts any error after an abort to `CANCELLED`; keeps one with more details. */
function canceled(thrown: unknown): CurlewError {
  if (thrown instanceof CurlewError && thrown.code === 'CANCELLED') return thrown;
  return new CurlewError('CANCELLED', 'canceled', { cause: thrown });
}

/** A help text that names commands as the operator calls them, which is seldom another way than by curlew. */
async function helpAsCalled(text: string): Promise<string> {
  const called = ENVIRONMENT['CURLEW_CALLED'];
  return called === undefined
    ? text
    : (await import('./suggested-commands.ts')).helpCalledAs(text, called, missingHere());
}

/** What a command prints for people, which names commands in the same way: a node that the bundle has made has no curlew in PATH. */
async function resultAsCalled(text: string): Promise<string> {
  const called = ENVIRONMENT['CURLEW_CALLED'];
  if (called === undefined) return text;
  const { NAMES, suggesting } = await import('./suggested-commands.ts');
  return suggesting(NAMES, { request: {} }, called, missingHere())(text);
}

/** The caller's environment; curlew passes nothing else to programs. */
const ENVIRONMENT: Readonly<NodeJS.ProcessEnv> = { ...process.env };

/** The error with a hint that names commands as the operator calls them, and says where to run what is missing on a node. */
async function withCalledHint(error: Error): Promise<Error> {
  if (!(error instanceof CurlewError) || error.hint === undefined) return error;
  const called = ENVIRONMENT['CURLEW_CALLED'];
  const hint = withPlace(error.hint);
  if (called === undefined) return error.with({ hint });
  const { calledAs } = await import('./suggested-commands.ts');
  return error.with({ hint: calledAs(hint, called, missingHere()) });
}

/** Runs the command of `process.argv` and sets the exit status. `early` has aborted if a signal came while this was read. */
export async function start(early: AbortSignal): Promise<void> {
  // If the event loop ends before the command has a result, the command has failed.
  process.exitCode = 1;
  process.stdout.on('error', stopWithoutOutput);
  // Errors of standard error are ignored: its reader, or the terminal, may be gone.
  process.stderr.on('error', () => undefined);
  const signal = await listenForSignals(early);
  const args = process.argv.slice(2);
  try {
    requireGoing(signal);
    process.exitCode = await run(args, signal);
  } catch (thrown) {
    const refused = signal.aborted ? canceled(thrown) : withOffer(asError(thrown), (await split(args)).name);
    const error = await withCalledHint(refused);
    process.exitCode = fail(error);
    // With --json, standard output always contains one document.
    if (args.includes('--json')) await print(process.stdout, `${printableJson(failureJson(error), 2)}\n`);
    // Buffered output may never be read, and is useless after a failure.
    if (process.stdout.writableLength > 0) process.stderr.write('', () => process.exit());
  }
}
