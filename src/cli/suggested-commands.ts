/** Adds the operator's location options to suggested commands, so that they refer to the same node or store. */
import { CurlewError } from '../core/errors.ts';
import { isTexts } from '../core/json.ts';
import { optionName, type Request } from '../core/request.ts';
import { readFlags } from '../spec/flags.ts';
import { shellQuote } from '../core/shell-word.ts';
import type { Arguments, CommandContext } from './command.ts';
import { SUMMARIES } from './names.ts';
import { screen, wrap } from './render/columns.ts';

/** The arguments that an operator gave. */
type Given = Pick<Arguments, 'request'>;

/** The fields that suggested commands may take. */
type Suggestable = Pick<Request, 'name' | 'fields'>;

/** For texts in which commands need no more options. */
export const NAMES: readonly Suggestable[] = Object.keys(SUMMARIES).map((name) => ({ name, fields: {} }));

const COMMAND = /(?<![\w/.-])curlew ([a-z]+(?:-[a-z]+)*)(?! --help|[-\w])(?: ([a-z]+)(?! --help|[-\w]))?/g;

/** What a text names at an index and this program does not have, such as `curlew publish` on a node; else undefined. */
export type MissingAt = (text: string, at: number) => string | undefined;

const NOTHING: MissingAt = () => undefined;

/**
 * Adds the given locations to suggested commands in a text. `called` is the path with which the operator calls this program
 * if curlew is not in PATH, such as the tasks.sh of a bundle, next to install.sh and the other scripts. What is missing
 * here keeps its name.
 */
export function suggesting(
  requests: readonly Suggestable[],
  given: Given,
  called?: string,
  missingAt = NOTHING,
): (text: string) => string {
  return (text) =>
    text.replaceAll(COMMAND, (whole: string, word: string, second: string | undefined, at: number) => {
      const isPair = requests.some(({ name }) => name === `${word} ${second ?? ''}`);
      const command = isPair ? `${word} ${second}` : word;
      // Not a command: `curlew has installed nothing`.
      if (!requests.some(({ name }) => name === command)) return whole;
      const fields = Object.entries(requests.find(({ name }) => name === command)?.fields ?? {});
      const args = fields.flatMap(([name, { located }]) => (located === true ? argumentsOf(name, given) : []));
      const rest = isPair || second === undefined ? [] : [second];
      const own = missingAt(text, at) === undefined ? calling(command, called) : undefined;
      return [own ?? `curlew ${command}`, ...args, ...rest].join(' ');
    });
}

/** How help texts and hints name commands: in a usage, in an example, as a proposal, and with `--help` or `help`. */
const NAMED =
  /(?<=^[Uu]sage: |^ {2}|`|did you mean |did you mean curlew [a-z -]+ or )curlew ([a-z-]+)|curlew (?:(help)\b|COMMAND)|curlew ([a-z-]+)(?= (?:[a-z-]+ )?--help)/gm;

/** Help texts and hints with the path `called`, as in {@link suggesting}. */
export function calledAs(text: string, called: string, missingAt = NOTHING): string {
  return text.replaceAll(NAMED, (whole: string, first?: string, help?: string, other?: string, at = 0) => {
    if (missingAt(text, at) !== undefined) return whole;
    return calling(first ?? help ?? other ?? 'COMMAND', called) ?? whole;
  });
}

/** The same for a help text, which is wrapped already: a paragraph that becomes too wide is wrapped again. */
export function helpCalledAs(text: string, called: string, missingAt = NOTHING): string {
  const before = text.split('\n\n');
  return calledAs(text, called, missingAt)
    .split('\n\n')
    .map((part, at) => {
      const isWide = part !== before[at] && part.split('\n').some((line) => line.length > screen.columns);
      return isWide && !/^(?:Usage:| )/m.test(part) ? wrap(part, screen.columns).join('\n') : part;
    })
    .join('\n\n');
}

const OWN_SCRIPTS = ['install', 'join', 'upgrade'];

function calling(command: string, called: string | undefined): string | undefined {
  if (called === undefined || called === '') return undefined;
  const own = OWN_SCRIPTS.includes(command) && called.endsWith('/tasks.sh');
  return own ? quoted(called.replace(/tasks\.sh$/, `${command}.sh`)) : `${quoted(called)} ${command}`;
}

/** One word of a command line, for a shell. */
export function quoted(text: string): string {
  return /^[\w./:@,+-]+$/.test(text) ? text : shellQuote(text);
}

function argumentsOf(name: string, { request }: Given): readonly string[] {
  const option = `--${optionName(name)}`;
  const setting = request[name];
  if (setting === true) return [option];
  const value =
    typeof setting === 'string' ? setting : name === 'installDir' ? folderFlag(request['flags']) : undefined;
  return value === undefined ? [] : [option, quoted(value)];
}

/** The install folder in kURL's flag, if given. */
function folderFlag(flags: unknown): string | undefined {
  const flag = (isTexts(flags) ? flags : []).find((one) => one.startsWith('kurl-install-directory='));
  return flag === undefined ? undefined : readFlags([flag]).installDirectory;
}

interface Suggested {
  readonly name: string;
  readonly given: Given;
  /** Absent for all. */
  readonly requests?: readonly Suggestable[];
  readonly missingAt?: MissingAt;
}

/** Runs the command `name`, completes suggested commands in hints and notes, and adds a hint to `USAGE` errors without one. */
export async function withSuggestions<Result>(
  { name, given, requests, missingAt }: Suggested,
  context: CommandContext,
  run: (context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const mayLocate = [...Object.keys(given.request), 'installDir'].some((field) => argumentsOf(field, given).length > 0);
  const all = requests ?? (mayLocate ? (await import('./requests.ts')).REQUESTS : NAMES);
  const complete = suggesting(all, given, context.env['CURLEW_CALLED'], missingAt);
  try {
    return await run({
      ...context,
      report: (event) => context.report(event.type === 'note' ? { ...event, text: complete(event.text) } : event),
    });
  } catch (error) {
    if (!(error instanceof CurlewError)) throw error;
    const { code, message, cause, diagnostics } = error;
    const hint = error.hint ?? (code === 'USAGE' ? `curlew ${name} --help lists its options` : undefined);
    if (hint === undefined) throw error;
    throw new CurlewError(code, message, { hint: complete(hint), cause, diagnostics });
  }
}
