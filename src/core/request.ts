/**
 * One declaration per request: a table of fields is its type, the options of its command with their help, and the check of what
 * callers of the library pass. Pure.
 */
import * as v from 'valibot';
import type { Context } from './context.ts';
import { CurlewError, machineError } from './errors.ts';
import type { Field, Fields, Required } from './field.ts';
import { isObject } from './json.ts';
import { nearest } from './nearest.ts';
import { convert } from './schema.ts';

/** A command, and the request of its use cases. */
export interface Request<Own extends Fields = Fields, Options extends Fields = Fields> {
  /** The name of the command; it may have two words. */
  readonly name: string;
  readonly fields: Own;
  /** Options that only the command has: how it shows the result, or which use case runs. */
  readonly options: Options;
}

type NoFields = Readonly<Record<string, never>>;
type ValueOf<One> = One extends Field<infer Value> ? Value : never;
type Flat<Type> = { readonly [Key in keyof Type]: Type[Key] };

/** The type of a request with these fields. */
export type RequestOf<Own extends Fields> = Flat<
  { readonly [Name in keyof Own as Own[Name] extends Required ? Name : never]: ValueOf<Own[Name]> } & {
    readonly [Name in keyof Own as Own[Name] extends Required ? never : Name]?: ValueOf<Own[Name]> | undefined;
  }
>;

/** The same from a command line: absent flags are false, and absent lists are empty. */
export type ValuesOf<Own extends Fields> = {
  readonly [Name in keyof Own]: Own[Name] extends Required | { readonly takes: 'nothing' | 'many' }
    ? ValueOf<Own[Name]>
    : ValueOf<Own[Name]> | undefined;
};

/** Declares a command with the fields of its request, and its own options. */
export function request<Own extends Fields, Options extends Fields = NoFields>(
  name: string,
  fields: Own,
  options?: Options,
): Request<Own, Options> {
  return { name, fields, options: options ?? ({} as Options) };
}

/** The option of a field: `olderThan` is `older-than`. */
export function optionName(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** The field of an option: {@link optionName} the other way around. */
export function fieldName(option: string): string {
  return option.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The options and operands of a command; `name` is the option, without dashes. */
export function parametersOf({ fields, options }: Pick<Request, 'fields' | 'options'>): {
  readonly operands: readonly (readonly [name: string, field: Field])[];
  readonly options: readonly (readonly [name: string, field: Field])[];
} {
  const all = Object.entries<Field>({ ...fields, ...options }).map(
    ([name, field]) => [optionName(name), field] as const,
  );
  return {
    operands: all.filter(([, { operand }]) => operand === true),
    options: all.filter(([, { operand }]) => operand !== true),
  };
}

interface Problem {
  readonly what: string;
  readonly hint: string;
}

/** The mistake of a request, and its cure; undefined for a valid one. A field that is undefined is absent. */
export function requestProblem(fields: Fields, value: unknown): Problem | undefined {
  if (!isObject(value)) return { what: 'the request is not an object', hint: `its fields are ${names(fields)}` };
  const unknown = Object.keys(value).find((name) => value[name] !== undefined && !Object.hasOwn(fields, name));
  if (unknown !== undefined) {
    const near = nearest(unknown, Object.keys(fields));
    const hint = near === undefined ? `its fields are ${names(fields)}` : `did you mean ${near}?`;
    return { what: `the request has an unknown field ${JSON.stringify(unknown.slice(0, MAX_LENGTH))}`, hint };
  }
  for (const [name, field] of Object.entries(fields)) {
    const what = problemOfField(name, field, Object.hasOwn(value, name) ? value[name] : undefined);
    if (what !== undefined) return { what, hint: `${name}: ${field.help}` };
  }
  return undefined;
}

const MAX_LENGTH = 60;

function names(fields: Fields): string {
  return Object.keys(fields).join(', ');
}

function problemOfField(name: string, { schema, required }: Field, value: unknown): string | undefined {
  const isEmpty = value === '' || (Array.isArray(value) && value.length === 0);
  if (value === undefined || (required !== undefined && isEmpty)) {
    return required === undefined ? undefined : `the request has no ${name}`;
  }
  const checked = convert(v.object({ [name]: schema }), { [name]: value });
  return 'problems' in checked ? checked.problems[0].message : undefined;
}

/** The name of a use case in messages, and its request. */
interface Taking<Own extends Fields = Fields> {
  readonly name: string;
  readonly fields: Own;
}

/** Throws `USAGE` for a field that is unknown, missing or of another type. */
export function requireValid({ name, fields }: Taking, value: unknown): void {
  const problem = requestProblem(fields, value);
  if (problem !== undefined)
    throw new CurlewError('USAGE', `cannot run ${name}: ${problem.what}`, { hint: problem.hint });
}

/**
 * A use case that refuses wrong requests ({@link requireValid}), and whose errors say what is wrong with the machine
 * ({@link machineError}). What it takes besides the request is a context, unless its parameters say otherwise.
 */
export function useCase<Own extends Fields, Result, Rest extends readonly unknown[] = readonly [Context]>(
  of: Taking<Own>,
  run: (request: RequestOf<Own>, ...rest: Rest) => Promise<Result>,
): (request: RequestOf<Own>, ...rest: Rest) => Promise<Result> {
  return async (value, ...rest) => {
    requireValid(of, value);
    return run(value, ...rest).catch((error: unknown) => {
      throw machineError(error);
    });
  };
}
