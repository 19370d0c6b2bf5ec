/** What a command is: data about its words, a function that returns data, a renderer for people. */
import type { ParseArgsConfig } from 'node:util';
import type { Context } from '../app/context.ts';
import type { Paint } from './render/paint.ts';

export type CommandContext = Context;

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly short?: string;
  /** Name of the value in help texts, such as `DIR`. */
  readonly value?: string;
  readonly help: string;
  /** Headline in help texts under which options of one kind stand. */
  readonly group?: string;
  /** What to do when it is missing, for an option that the command cannot do without, such as `say with --to …`. */
  readonly required?: string;
  /** From text to value; throws `USAGE`. */
  readonly read?: (text: string, option: string) => unknown;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type Camel<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;

type One<Spec> = Spec extends { readonly read: (text: string, option: string) => infer Value } ? Value : string;

type Value<Spec> = Spec extends { readonly type: 'boolean' }
  ? boolean
  : Spec extends { readonly multiple: true }
    ? readonly One<Spec>[]
    : Spec extends { readonly required: string }
      ? One<Spec>
      : One<Spec> | undefined;

type ValuesByName<Specs> = { readonly [Name in keyof Specs & string as Camel<Name>]: Value<Specs[Name]> };

/** Values by name, `--registry-mirror` as `registryMirror`: fields of a request as the use cases take it. */
export type OptionValues<Specs extends OptionSpecs> = string extends keyof Specs
  ? Readonly<Record<string, never>>
  : ValuesByName<Specs & typeof GLOBAL_OPTIONS>;

/** The words behind a command's name. */
export interface Arguments<Specs extends OptionSpecs = OptionSpecs> {
  readonly operands: readonly string[];
  readonly options: OptionValues<Specs>;
  readonly positionals: readonly string[];
  text: (option: string) => string | undefined;
  texts: (option: string) => readonly string[];
  flag: (option: string) => boolean;
}

export interface Command<Result, Specs extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** The words after the command's name, such as `[addon…]`. */
  readonly operands: string;
  /** Longer help, paragraphs apart by an empty line; it is broken into lines when it is printed. */
  readonly details?: string;
  /** Whole command lines, for the help. */
  readonly examples?: readonly string[];
  readonly options: Specs;
  /** Operands without dashes that people may take for options. */
  readonly bareWords?: readonly string[];
  readonly run: (args: Arguments<Specs>, context: CommandContext) => Promise<Result>;
  /** Text for people, without a final newline; empty prints nothing. `--json` prints the result itself instead. */
  readonly render: (result: Result, args: Arguments<Specs>, paint: Paint) => string;
  /**
   * True when these words make standard output carry bytes of the command's own: what it says of them goes to standard
   * error then, and it is the one to tell of failures to write.
   */
  readonly carriesBytes?: (args: Arguments<Specs>) => boolean;
  /** Exit status of a finished command, 0 when absent. */
  readonly exitCode?: (result: Result) => number;
}

/** A command whose options have the types of their table. The one cast forgets them: the table of commands has all kinds. */
export function command<Result, const Specs extends OptionSpecs>(typed: Command<Result, Specs>): Command<Result> {
  return typed as unknown as Command<Result>;
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
