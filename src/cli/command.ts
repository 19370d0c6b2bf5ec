/** What a command is: data about its words, a function that returns data, a renderer for people. */
import type { ParseArgsConfig } from 'node:util';
import type { Report } from '../core/events.ts';
import type { Ask } from '../runtime/hooks/questions.ts';
import type { Paint } from './render/paint.ts';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly short?: string;
  /** Name of the value in help texts, such as `DIR`. */
  readonly value?: string;
  readonly help: string;
  /** Headline in help texts under which options of one kind stand. */
  readonly group?: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** Words as they were given. The accessors check nothing but presence and type. */
export interface Arguments {
  readonly positionals: readonly string[];
  text: (option: string) => string | undefined;
  texts: (option: string) => readonly string[];
  flag: (option: string) => boolean;
}

/** Everything of the process that a command may use; nothing below `src/cli` reads the process itself. */
export interface CommandContext {
  readonly signal: AbortSignal;
  readonly report: Report;
  /** Puts questions of hooks to whoever sits at the terminal; absent when nobody does. */
  readonly ask?: Ask | undefined;
  /** Prints a line of the result while the command goes on; lines that nobody reads in time are lost. */
  readonly print?: ((line: string) => void) | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface Command<Result> {
  readonly name: string;
  /** One line, imperative, for the list of commands. */
  readonly summary: string;
  /** The words after the command's name, such as `[addon…]`. */
  readonly operands: string;
  /** Longer help, paragraphs apart by an empty line; it is broken into lines when it is printed. */
  readonly details?: string;
  /** Whole command lines, for the help. */
  readonly examples?: readonly string[];
  readonly options: OptionSpecs;
  /** Operands without dashes that people may take for options. */
  readonly bareWords?: readonly string[];
  readonly run: (args: Arguments, context: CommandContext) => Promise<Result>;
  /** Text for people, without a final newline; empty prints nothing. `--json` prints the result itself instead. */
  readonly render: (result: Result, args: Arguments, paint: Paint) => string;
  /**
   * True when these words make standard output carry bytes of the command's own: what it says of them goes to standard
   * error then, and it is the one to tell of failures to write.
   */
  readonly carriesBytes?: (args: Arguments) => boolean;
  /** Exit status of a finished command, 0 when absent. */
  readonly exitCode?: (result: Result) => number;
}

/** Options that every command takes. */
export const GLOBAL_OPTIONS = {
  json: { type: 'boolean', help: 'print the result, or the error, as one JSON document' },
  quiet: { type: 'boolean', short: 'q', help: 'no progress and no notes, only the result or the error' },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
} satisfies OptionSpecs;

/** The form that `node:util` parseArgs wants. */
export function parseArgsOptions(specs: OptionSpecs): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, { type, multiple, short }]) => [
      name,
      { type, ...(multiple === undefined ? {} : { multiple }), ...(short === undefined ? {} : { short }) },
    ]),
  );
}
