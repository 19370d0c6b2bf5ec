/** What a command is: data about its words, a function that returns data, a renderer for people. */
import type { ParseArgsConfig } from 'node:util';
import type { Report } from '../core/events.ts';

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly short?: string;
  /** Name of the value in help texts, such as `DIR`. */
  readonly value?: string;
  readonly help: string;
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
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface Command<Result> {
  readonly name: string;
  /** One line, imperative, for the list of commands. */
  readonly summary: string;
  /** The words after the command's name, such as `[addon…]`. */
  readonly operands: string;
  /** Longer help, printed below the options. */
  readonly details?: string;
  readonly options: OptionSpecs;
  readonly run: (args: Arguments, context: CommandContext) => Promise<Result>;
  /** Text for people, without a final newline; empty prints nothing. `--json` prints the result itself instead. */
  readonly render: (result: Result, args: Arguments) => string;
  /** Exit status of a finished command, 0 when absent. */
  readonly exitCode?: (result: Result) => number;
}

/** Options that every command takes. */
export const GLOBAL_OPTIONS = {
  json: { type: 'boolean', help: 'print the result as JSON on standard output' },
  quiet: { type: 'boolean', short: 'q', help: 'no progress; errors only' },
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

/** Help text of one command. */
export function commandHelp(
  command: Pick<Command<never>, 'name' | 'summary' | 'operands' | 'options' | 'details'>,
): string {
  const specs: OptionSpecs = { ...command.options, ...GLOBAL_OPTIONS };
  const rows = Object.entries(specs).map(([name, spec]) => {
    const value = spec.type === 'string' ? ` ${spec.value ?? 'VALUE'}` : '';
    const short = spec.short === undefined ? '' : `-${spec.short}, `;
    return [`  ${short}--${name}${value}`, spec.help] as const;
  });
  const width = Math.min(34, Math.max(...rows.map(([left]) => left.length)) + 2);
  const lines = rows.map(([left, help]) =>
    left.length + 2 > width ? `${left}\n${' '.repeat(width)}${help}` : `${left.padEnd(width)}${help}`,
  );
  const operands = command.operands === '' ? '' : ` ${command.operands}`;
  const details = command.details === undefined ? '' : `\n\n${command.details}`;
  return `Usage: curlew ${command.name}${operands} [options]\n\n${command.summary}.\n\nOptions:\n${lines.join('\n')}${details}`;
}
