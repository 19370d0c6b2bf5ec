/** The interface of commands: a description of arguments, a function that returns data, and a renderer for people. */
import * as v from 'valibot';
import type { Context } from '../core/context.ts';
import { camelCase } from '../core/camel-case.ts';
import { flag, type Field, type Fields } from '../core/field.ts';
import type { Request, ValuesOf } from '../core/request.ts';
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
  : ValuesByName<Specs> & GlobalValues;

/** Values of {@link GLOBAL_OPTIONS}. */
export type GlobalValues = ValuesOf<typeof GLOBAL_OPTIONS>;

/** The arguments after a command's name. */
export interface Arguments<Of extends Request = Request> {
  readonly request: ValuesOf<Of['fields']>;
  readonly options: ValuesOf<Of['options']> & GlobalValues;
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
  /** Exit status of a finished command; default 0. */
  readonly exitCode?: (result: Result) => number;
  readonly operands?: string;
}

/** The command of a request. The cast removes the types, because the table contains commands with different options. */
export function commandFor<Of extends Request, Result>(
  of: Of,
  parts: Omit<Command<Result, Of>, 'of'>,
): Command<Result> {
  return { of, ...parts } as unknown as Command<Result>;
}

interface OldArguments<Specs extends OptionSpecs> {
  readonly operands: readonly string[];
  readonly options: OptionValues<Specs>;
}

interface OldCommand<Result, Specs extends OptionSpecs> {
  readonly name: string;
  readonly operands: string;
  readonly details?: string;
  readonly examples?: readonly string[];
  readonly options: Specs;
  readonly bareWords?: readonly string[];
  readonly run: (args: OldArguments<Specs>, context: CommandContext) => Promise<Result>;
  readonly render: (result: Result, args: OldArguments<Specs>, paint: Paint) => string;
  readonly carriesBytes?: (args: OldArguments<Specs>) => boolean;
  readonly exitCode?: (result: Result) => number;
}

function fieldsOf(specs: OptionSpecs): Fields {
  return Object.fromEntries(
    Object.entries(specs).map(
      ([name, { type, multiple, read = (text: string): unknown => text, value = 'VALUE', ...rest }]) => {
        const takes = type === 'boolean' ? 'nothing' : multiple === true ? 'many' : 'one';
        const field: Field = {
          ...rest,
          schema: v.unknown(),
          takes,
          value: takes === 'nothing' ? '' : value,
          read: (texts, option) => {
            if (takes === 'nothing') return true;
            return takes === 'many' ? texts.map((text) => read(text, option)) : read(texts.at(-1) ?? '', option);
          },
        };
        return [camelCase(name), field];
      },
    ),
  );
}

/** A command that does not have a request yet. */
export function command<Result, const Specs extends OptionSpecs>(typed: OldCommand<Result, Specs>): Command<Result> {
  const { name, options, examples = [], ...rest } = typed;
  const of: Request = { name, summary: '', fields: {}, options: fieldsOf(options) };
  return { ...rest, examples, of } as unknown as Command<Result>;
}

/** A use case whose module is loaded by its first call: the help of a command does not load it. */
export function useCase<Args extends readonly unknown[], Result>(
  load: () => Promise<(...args: Args) => Promise<Result>>,
): (...args: Args) => Promise<Result> {
  return async (...args) => (await load())(...args);
}

/** Options of every command. */
export const GLOBAL_OPTIONS = {
  json: flag('print the result or the error as one JSON document'),
  quiet: flag('print only the result or the error, no progress or notes', { short: 'q' }),
  help: flag('show this help', { short: 'h' }),
};
