/** The interface of commands: the request that they read, a function that returns data, and a renderer for people. */
import type { Context } from '../core/context.ts';
import { visible } from '../core/diagnostic.ts';
import { canceledOr, CurlewError, NOTHING_WRITTEN } from '../core/errors.ts';
import { flag, type Field } from '../core/field.ts';
import type { Request, ValuesOf } from '../core/request.ts';
import type { EVERYWHERE } from './names.ts';
import type { Paint } from './render/paint.ts';
import type { Progress } from './render/terminal.ts';

export interface CommandContext extends Context {
  /** Clears the progress display while `work` uses the terminal; absent without a display. */
  readonly around?: Progress['around'];
}

/** What a canceled removal has left. */
export const REMOVED_STAYS = 'what is removed stays removed: the same command removes the rest';

/** What a canceled command that writes several files has left. */
export const FILES_STAY = 'files that are written are whole: the same command writes the others';

/** What a canceled change of machines has left. */
export const STEPS_STAY = 'steps that are done stay: the same command continues with the others';

/** Exit status of a preview by which something would change, and of what differs or waits, as of diff tools. */
export const UNSETTLED = 2;

export const GLOBAL_OPTIONS = {
  json: flag('print the result or the error as one JSON document'),
  quiet: flag('print only the result or the error, no progress or notes', { short: 'q' }),
  help: flag('show this help', { short: 'h' }),
} satisfies Readonly<Record<(typeof EVERYWHERE)[number], Field>>;

/** The arguments after a command's name. */
export interface Arguments<Of extends Request = Request> {
  readonly request: ValuesOf<Of['fields']>;
  readonly options: ValuesOf<Of['options']> & ValuesOf<typeof GLOBAL_OPTIONS>;
}

export interface Command<Result = unknown, Of extends Request = Request> {
  readonly of: Of;
  /** Longer help, with an empty line between paragraphs; wrapped when printed. */
  readonly details?: string;
  /** Complete command lines, for the help. */
  readonly examples: readonly string[];
  /** Operands that work like options without dashes. */
  readonly bareWords?: readonly string[];
  readonly run: (args: Arguments<Of>, context: CommandContext) => Promise<Result>;
  /** Text for people, without a final newline; empty prints nothing. `--json` prints the result as JSON instead. */
  readonly render: (result: Result, args: Arguments<Of>, paint: Paint) => string;
  /**
   * True if the command writes its own bytes to standard output: its messages then go to standard error, and it reports
   * write failures itself.
   */
  readonly carriesBytes?: (args: Arguments<Of>) => boolean;
  /** True if the command works without a working folder, such as in one that was removed. */
  readonly isAnywhere?: true;
  /** True if the text of the result lists what each step has done, such as each package of a build, or what it has not. */
  readonly listsSteps?: true;
  /** Exit status of a finished command; default 0. */
  readonly exitCode?: (result: Result) => number;
}

interface Parts<Result, Of extends Request> extends Omit<Command<Result, Of>, 'of' | 'render'> {
  /** Lines, in which control characters are escaped, or a text that is printed as it is. */
  readonly render: (...shown: Parameters<Command<Result, Of>['render']>) => string | readonly string[];
  /** The option without which the command only shows what it would do: it excludes `--dry-run`. */
  readonly changesBy?: '--yes' | '--confirm';
  /** What the command has left when it was canceled, and what the same command does then, unless its use case says it. */
  readonly left?: string;
}

/** The command of a request. The cast removes the types, because the table contains commands with different options. */
export function commandFor<Of extends Request, Result>(
  of: Of,
  { changesBy, left, run, render, ...parts }: Parts<Result, Of>,
): Command<Result> {
  return {
    of,
    ...parts,
    run: async (args: Arguments<Of>, context) => {
      const given = { ...args.request, ...args.options };
      if (changesBy !== undefined) requirePreview(of.name, changesBy, given);
      const isShown = given['dryRun'] === true || (changesBy !== undefined && !isChange(given));
      const all = isShown ? NOTHING_WRITTEN : left;
      return run(args, context).catch((error: unknown) => {
        throw all === undefined ? error : canceledOr(error, context.signal, all);
      });
    },
    render: (result, args: Arguments<Of>, paint) => {
      const shown = render(result, args, paint);
      return typeof shown === 'string' ? shown : shown.map(visible).join('\n');
    },
  };
}

function isChange(given: Readonly<Record<string, unknown>>): boolean {
  return given['yes'] === true || given['confirm'] !== undefined;
}

/** The name of a command in the line that says that it has ended, so that a dry run does not look like the run itself. */
export function nameWhenDone(command: string, given: Readonly<Record<string, unknown>>): string {
  return given['dryRun'] === true ? `${command} --dry-run` : command;
}

/** `USAGE` for a preview that is also to be carried out. */
function requirePreview(command: string, change: string, given: Readonly<Record<string, unknown>>): void {
  if (!isChange(given) || given['dryRun'] !== true) return;
  throw new CurlewError('USAGE', `curlew ${command}: ${change} and --dry-run cannot be used together`, {
    hint: `--dry-run shows what would change, ${change} changes it`,
  });
}
