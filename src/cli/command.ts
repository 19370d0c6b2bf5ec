/** The interface of commands: a description of arguments, a function that returns data, and a renderer for people. */
import type { ParseArgsConfig } from 'node:util';
import type { Context } from '../core/context.ts';
import type { Paint } from './render/paint.ts';

export type CommandContext = Context;

export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  readonly multiple?: boolean;
  readonly short?: string;
  /** Name of the value in help texts, such as `DIR`. */
  readonly value?: string;
  /** The value of an option that is given without one: `--option` means this, and any other value needs `--option=VALUE`. */
  readonly bare?: string;
  readonly help: string;
  /** Headline for this option in help texts. */
  readonly group?: string;
  /** Message if a required option is missing, such as `add --to …`. Undefined for optional ones. */
  readonly required?: string;
  /** Parses the value; throws `USAGE`. */
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

/** Values by name, `--registry-mirror` as `registryMirror`: the fields of a use case's request. */
export type OptionValues<Specs extends OptionSpecs> = string extends keyof Specs
  ? Readonly<Record<string, never>>
  : ValuesByName<Specs & typeof GLOBAL_OPTIONS>;

/** Values of {@link GLOBAL_OPTIONS}. */
export type GlobalValues = ValuesByName<typeof GLOBAL_OPTIONS>;

/** The arguments after a command's name. */
export interface Arguments<Specs extends OptionSpecs = OptionSpecs> {
  readonly operands: readonly string[];
  readonly options: OptionValues<Specs>;
  readonly globals: GlobalValues;
}

export interface Command<Result, Specs extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** Operands for the help, such as `[addon…]`. */
  readonly operands: string;
  /** Longer help, with an empty line between paragraphs; wrapped when printed. */
  readonly details?: string;
  /** Complete command lines, for the help. */
  readonly examples?: readonly string[];
  readonly options: Specs;
  /** Operands that work like options without dashes. */
  readonly bareWords?: readonly string[];
  readonly run: (args: Arguments<Specs>, context: CommandContext) => Promise<Result>;
  /** Text for people, without a final newline; empty prints nothing. `--json` prints the result as JSON instead. */
  readonly render: (result: Result, args: Arguments<Specs>, paint: Paint) => string;
  /**
   * True if the command writes its own bytes to standard output: its messages then go to standard error, and it reports
   * write failures itself.
   */
  readonly carriesBytes?: (args: Arguments<Specs>) => boolean;
  /** Exit status of a finished command; default 0. */
  readonly exitCode?: (result: Result) => number;
}

/** A command with typed options. The cast removes the types, because the table contains commands with different options. */
export function command<Result, const Specs extends OptionSpecs>(typed: Command<Result, Specs>): Command<Result> {
  return typed as unknown as Command<Result>;
}

/** A use case whose module is loaded by its first call: the help of a command does not load it. */
export function useCase<Args extends readonly unknown[], Result>(
  load: () => Promise<(...args: Args) => Promise<Result>>,
): (...args: Args) => Promise<Result> {
  return async (...args) => (await load())(...args);
}

/** Options of every command. */
export const GLOBAL_OPTIONS = {
  json: { type: 'boolean', help: 'print the result or the error as one JSON document' },
  quiet: { type: 'boolean', short: 'q', help: 'print only the result or the error, no progress or notes' },
  help: { type: 'boolean', short: 'h', help: 'show this help' },
} satisfies OptionSpecs;

/** The options in the format of `parseArgs` of `node:util`. */
export function parseArgsOptions(specs: OptionSpecs): NonNullable<ParseArgsConfig['options']> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, { type, multiple, short }]) => [
      name,
      { type, ...(multiple === undefined ? {} : { multiple }), ...(short === undefined ? {} : { short }) },
    ]),
  );
}
