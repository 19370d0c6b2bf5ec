/** JSON documents from outside: one schema of a document provides its type and its checks. Pure. */
import * as v from 'valibot';
import { isDigest, type Digest } from './digest.ts';
import { isObject, isSize, parseText, strictJson } from './json.ts';
import { fileNameProblem, pathProblem } from './layout.ts';
import { ARCHES, isAddonName, isVersion } from './ref.ts';

type Frozen<Value> = Value extends object ? { readonly [Key in keyof Value]: Frozen<Value[Key]> } : Value;

/** The type of a document with this schema; readonly, like all documents. */
export type Read<Schema extends v.GenericSchema> = Frozen<v.InferOutput<Schema>>;

/** Creates the error for a document that its schema refuses; `what` is the problem, after the path of the field. */
export type Bad = (what: string, cause?: unknown) => Error;

export const texts = v.array(v.string());
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
  return v.pipe(v.custom<Record<string, v.InferOutput<Schema>>>(isObject, 'not an object'), each(item));
}

/** A list of many objects. (`v.array` keeps a copy of all of them until the end.) */
export function longList<Schema extends v.GenericSchema>(item: Schema) {
  return v.pipe(v.custom<v.InferOutput<Schema>[]>(Array.isArray, 'not a list'), each(item));
}

function each<Value extends object>(item: v.GenericSchema): v.RawCheckAction<Value> {
  return v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const input = dataset.value as Record<string | number, unknown>;
    for (const key of Array.isArray(input) ? input.keys() : Object.keys(input)) {
      const value = input[key];
      const issue = firstIssue(item, value);
      if (issue === undefined) continue;
      const step: v.UnknownPathItem = { type: 'unknown', origin: 'value', input, key, value };
      addIssue({ message: issue.message, path: [step, ...(issue.path ?? [])] });
      return;
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
  const path = pathOf(issue.path ?? []);
  throw bad(path === '' ? issue.message : `${path}: ${issue.message}`);
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

const LONGEST_KEY = 60;

function pathOf(steps: readonly v.IssuePathItem[]): string {
  return steps.reduce((path, { key }) => {
    if (typeof key === 'number') return `${path}[${key}]`;
    const name = String(key);
    if (!/^[\w-]{1,60}$/.test(name)) return `${path}[${JSON.stringify(name.slice(0, LONGEST_KEY))}]`;
    return path === '' ? name : `${path}.${name}`;
  }, '');
}
