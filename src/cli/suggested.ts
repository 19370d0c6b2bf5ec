/** Adds the operator's location options to suggested commands, so that they refer to the same node or store. */
import { camelCase } from '../core/camel-case.ts';
import { CurlewError } from '../core/errors.ts';
import { isTexts } from '../core/json.ts';
import { readFlags } from '../spec/flags.ts';
import { shellQuote } from '../runtime/hooks/settings.ts';
import type { CommandContext } from './command.ts';

/** Options that specify a location, with the commands that accept them. */
export const PLACES: readonly { readonly options: readonly string[]; readonly commands: readonly string[] }[] = [
  {
    options: ['install-dir', 'root'],
    commands: 'install join upgrade resume rollback uninstall reset status why logs load-images preflight'.split(' '),
  },
  { options: ['unconfined'], commands: ['install', 'join', 'upgrade', 'resume', 'rollback', 'uninstall', 'reset'] },
  {
    options: ['s3-endpoint', 's3-region', 's3-profile', 's3-path-style', 'ca-file', 'config'],
    commands: [
      'bundle',
      'changed',
      'promote',
      'prune',
      'publish',
      'reindex',
      'sign',
      'versions',
      'channel check',
      'channel explain',
    ],
  },
  { options: ['dir'], commands: ['generate'] },
];

/** The operator's arguments; `--install-dir` is `installDir`. */
interface Given {
  readonly request?: Readonly<Record<string, unknown>>;
  readonly options: Readonly<Record<string, unknown>>;
  readonly operands?: readonly string[];
}

const COMMAND = /\bcurlew ([a-z]+(?:-[a-z]+)*)(?! --help|[-\w])(?: ([a-z]+)(?! --help|[-\w]))?/g;

/**
 * Adds the given locations to suggested commands in a text. `called` is the path with which the operator calls this program
 * if curlew is not in PATH, such as the tasks.sh of a bundle, next to install.sh and the other scripts.
 */
export function suggesting(given: Given, called?: string): (text: string) => string {
  return (text) =>
    text.replaceAll(COMMAND, (whole: string, word: string, second?: string) => {
      const isPair = PLACES.some(({ commands }) => commands.includes(`${word} ${second ?? ''}`));
      const command = isPair ? `${word} ${second}` : word;
      const args = PLACES.filter(({ commands }) => commands.includes(command)).flatMap(({ options }) =>
        options.flatMap((option) => argumentsOf(option, given)),
      );
      const rest = isPair || second === undefined ? [] : [second];
      return [calling(command, called) ?? `curlew ${command}`, ...args, ...rest].join(' ');
    });
}

const OWN_SCRIPTS = ['install', 'join', 'upgrade'];

function calling(command: string, called: string | undefined): string | undefined {
  if (called === undefined || called === '') return undefined;
  const own = OWN_SCRIPTS.includes(command) && called.endsWith('/tasks.sh');
  return own ? quoted(called.replace(/tasks\.sh$/, `${command}.sh`)) : `${quoted(called)} ${command}`;
}

function quoted(text: string): string {
  return /^[\w./:@,+-]+$/.test(text) ? text : shellQuote(text);
}

function argumentsOf(option: string, { operands = [], options, request = {} }: Given): readonly string[] {
  const found = request[camelCase(option)] ?? options[camelCase(option)];
  if (found === true) return [`--${option}`];
  const value =
    typeof found === 'string' ? found : option === 'install-dir' ? folderFlag(request['flags'] ?? operands) : undefined;
  return value === undefined ? [] : [`--${option}`, quoted(value)];
}

/** The install folder in kURL's flag, if given. */
function folderFlag(flags: unknown): string | undefined {
  const flag = (isTexts(flags) ? flags : []).find((operand) => operand.startsWith('kurl-install-directory='));
  return flag === undefined ? undefined : readFlags([flag]).installDirectory;
}

/** Runs the command `name`, completes suggested commands in hints and notes, and adds a hint to `USAGE` errors without one. */
export async function withSuggestions<Result>(
  name: string,
  given: Given,
  context: CommandContext,
  run: (context: CommandContext) => Promise<Result>,
): Promise<Result> {
  const complete = suggesting(given, context.env['CURLEW_CALLED']);
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
