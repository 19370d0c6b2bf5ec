/** JSON documents from outside: one schema of a document provides its type and its checks. Pure. */
import * as v from 'valibot';
import { isDigest, type Digest } from './digest.ts';
import { isObject, isSize, parseText, strictJson } from './json.ts';
import { fileNameProblem, pathProblem } from './layout.ts';
import { nearest } from './nearest.ts';
import { ARCHES, isAddonName, isVersion } from './ref.ts';

type Frozen<Value> = Value extends object ? { readonly [Key in keyof Value]: Frozen<Value[Key]> } : Value;

/** The type of a document with this schema; readonly, like all documents. */
export type Read<Schema extends v.GenericSchema> = Frozen<v.InferOutput<Schema>>;

/** Creates the error for a document that its schema refuses; `what` is the problem, after the path of the field. */
export type Bad = (what: string, cause?: unknown) => Error;

export const textList = v.array(v.string());
/** An object with unchecked fields. (`v.object` and `v.record` accept a list.) */
export const object = v.custom<Record<string, unknown>>(isObject, 'not an object');
export const digest = v.custom<Digest>(isDigest, 'not a sha256 digest');
/** A size in bytes, or any other count. */
export const size = v.custom<number>(isSize, 'not a size');
export const integer = v.custom<number>(Number.isSafeInteger, 'not an integer');
export const finite = v.custom<number>(Number.isFinite, 'not a number');
export const arch = v.picklist(ARCHES);
export const tree = v.picklist(['addons', 'packages']);
export const addonName = v.pipe(v.string(), v.check(isAddonName, 'not the name of an add-on'));
export const version = v.pipe(v.string(), v.check(isVersion, 'not a version'));
export const imageFormat = v.picklist(['oci', 'docker-archive']);
/** A file mode in a package. */
export const fileMode = v.picklist([0o644, 0o755]);
/** One component of a path. */
export const fileName = v.custom<string>((value) => isSafe(value, fileNameProblem), 'not a safe file name');
/** A path below a folder. */
export const relativePath = v.custom<string>((value) => isSafe(value, pathProblem), 'not a safe relative path');

function isSafe(value: unknown, problemOf: (text: string) => string | undefined): boolean {
  return typeof value === 'string' && problemOf(value) === undefined;
}

/** An object with any keys. (`v.record` does not check values with names such as `constructor`.) */
export function byKey<Schema extends v.GenericSchema>(item: Schema) {
  const values = Object.assign(each<Record<string, v.InferOutput<Schema>>>(item), { values: item });
  return v.pipe(v.custom<Record<string, v.InferOutput<Schema>>>(isObject, 'not an object'), values);
}

const KNOWN = 'known: ';

/** An object with these fields only. {@link convert} reports others, with the known one that is meant. */
export function closed<Entries extends v.ObjectEntries>(entries: Entries, what = 'key', isA = object) {
  type Schema = v.ObjectSchema<Entries, undefined>;
  const rest = v.never(`unknown ${what}\n${KNOWN}${Object.keys(entries).join(', ')}`);
  const schema: v.GenericSchema<v.InferInput<Schema>, v.InferOutput<Schema>> = v.objectWithRest(entries, rest);
  return v.pipe(isA, schema);
}

export const aMap = v.custom<Record<string, unknown>>(isObject, 'a map');
export const aText = v.string('a text');

/** A map that people write, with these fields only. */
export function fields<Entries extends v.ObjectEntries>(entries: Entries) {
  return closed(entries, 'field', aMap);
}

/** A list of many objects. (`v.array` keeps a copy of all of them until the end.) */
export function longList<Schema extends v.GenericSchema>(item: Schema) {
  return v.pipe(v.custom<v.InferOutput<Schema>[]>(Array.isArray, 'not a list'), each(item));
}

function each<Value extends object>(item: v.GenericSchema): v.RawCheckAction<Value> {
  return v.rawCheck(({ dataset, config, addIssue }) => {
    if (!dataset.typed) return;
    const input = dataset.value as Record<string | number, unknown>;
    for (const key of Array.isArray(input) ? input.keys() : Object.keys(input)) {
      const value = input[key];
      const issue = firstIssue(item, value);
      if (issue === undefined) continue;
      const step: v.UnknownPathItem = { type: 'unknown', origin: 'value', input, key, value };
      addIssue({ message: issue.message, path: [step, ...(issue.path ?? [])] });
      if (config.abortEarly === true) return;
    }
  });
}

/**
 * The value itself if it fits the schema: unknown fields remain, so that canonical JSON and digests of it do not change. The
 * error contains the path of the first field that does not fit, and nothing of its value.
 */
export function checked<Schema extends v.GenericSchema>(schema: Schema, value: unknown, bad: Bad): Read<Schema> {
  if (schema.type === 'object' && !isObject(value)) throw bad('not an object');
  const issue = firstIssue(schema, value);
  if (issue === undefined) return value as Read<Schema>;
  throw bad(problemAt(issue).message);
}

/** The value as its schema converts it, with defaults. The error is that of {@link checked}. */
export function parsed<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  bad: Bad,
): v.InferOutput<Schema> {
  checked(schema, value, bad);
  return v.parse(schema, value);
}

/** A value that a schema refuses. The message in a schema may have a second line: the hint. */
export interface Problem {
  readonly path: readonly (string | number)[];
  /** Begins with the path. */
  readonly message: string;
  readonly hint: string | undefined;
  /** The known key or word that is meant. */
  readonly near: string | undefined;
  readonly issue: v.BaseIssue<unknown>;
}

/** The value as its schema converts it, or each of its problems: for files that people write. */
export function convert<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
): { readonly value: Read<Schema> } | { readonly problems: readonly [Problem, ...Problem[]] } {
  const { success, output, issues } = v.safeParse(schema, value, { message: problemOf });
  if (success) return { value: output as Read<Schema> };
  const [first, ...others] = issues;
  return { problems: [problemAt(first), ...others.map(problemAt)] };
}

/** A copy of the value in which `mend` has removed or replaced whatever has a problem: `input` of the last step of its path. */
export function mended<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
  mend: (problem: Problem) => void,
): Read<Schema> {
  const copy = structuredClone(value);
  for (let read = convert(schema, copy); 'problems' in read; read = convert(schema, copy)) read.problems.forEach(mend);
  return copy as Read<Schema>;
}

function problemAt(issue: v.BaseIssue<unknown>): Problem {
  const path = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? key : String(key)));
  const [message = '', hint] = issue.message.split('\n', 2);
  const words = issue.type === 'picklist' ? issue.expected?.match(/[^"|() ]+/g) : undefined;
  const keys = hint?.startsWith(KNOWN) === true ? hint.slice(KNOWN.length).split(', ') : undefined;
  const near = nearest(String(keys === undefined ? issue.input : path.at(-1)), keys ?? words ?? []);
  return {
    path,
    message: path.length === 0 ? message : `${pathOf(path)}: ${message}`,
    hint: near === undefined ? hint : `did you mean "${near}"?`,
    near,
    issue,
  };
}

/** True if the value fits the schema. */
export function fits<Schema extends v.GenericSchema>(schema: Schema, value: unknown): value is Read<Schema> {
  return firstIssue(schema, value) === undefined;
}

export interface Reading {
  readonly bad: Bad;
  /** Parses the text; the default refuses objects that have a key twice. */
  readonly parse?: (text: string) => unknown;
  /** The only supported `format`, which is checked first, and the error for another one, which `shown` quotes. */
  readonly format?: { readonly only: number; readonly other: (shown: string) => Error };
}

/** Reads a document: {@link checked} for its JSON text. */
export function readJson<Schema extends v.GenericSchema>(
  schema: Schema,
  text: string,
  { bad, parse = strictJson, format }: Reading,
): Read<Schema> {
  const value = parseText(text, parse, bad);
  if (format !== undefined && isObject(value) && value['format'] !== format.only) {
    throw format.other(JSON.stringify(value['format'])?.slice(0, 40) ?? 'undefined');
  }
  return checked(schema, value, bad);
}

function firstIssue(schema: v.GenericSchema, value: unknown): v.BaseIssue<unknown> | undefined {
  return v.safeParse(schema, value, { abortEarly: true, message: problemOf }).issues?.[0];
}

const KINDS: Readonly<Record<string, string>> = { Object: 'an object', Array: 'a list', boolean: 'true or false' };

function problemOf({ expected, received }: v.BaseIssue<unknown>): string {
  if (received === 'undefined') return 'missing';
  if (expected === 'never') return 'unexpected';
  const wanted = (expected ?? 'valid').replaceAll(/[()]/g, '').replaceAll(' | ', ' or ');
  return `not ${KINDS[wanted] ?? (/^\w+$/.test(wanted) ? `a ${wanted}` : wanted)}`;
}

const MAX_KEY = 60;

function pathOf(steps: Problem['path']): string {
  return steps.reduce<string>((path, name) => {
    if (typeof name === 'number') return `${path}[${name}]`;
    if (!/^[\w-]{1,60}$/.test(name)) return `${path}[${JSON.stringify(name.slice(0, MAX_KEY))}]`;
    return path === '' ? name : `${path}.${name}`;
  }, '');
}
