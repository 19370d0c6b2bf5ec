/** Reads and changes fields of YAML documents like kURL's yamlutil, which rewrites whole documents with sorted keys. */
import { parseAllDocuments, parseDocument, stringify } from 'yaml';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';

/** Aliases that would expand to more than this many times the document are refused. */
const ALIASES = 100;

function invalid(message: string): CurlewError {
  return new CurlewError('SPEC_INVALID', `yamlutil: ${message}`);
}

function readOne(text: string): unknown {
  const document = parseDocument(text);
  const [first] = document.errors;
  if (first !== undefined) throw invalid(first.message);
  return document.toJS({ maxAliasCount: ALIASES }) as unknown;
}

/** Every document that is a map, after `change`. */
function eachDocument(text: string, change: (fields: Record<string, unknown>) => void): string {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return '';
  const texts = documents.flatMap((document) => {
    const [first] = document.errors;
    if (first !== undefined) throw invalid(first.message);
    const fields: unknown = document.toJS({ maxAliasCount: ALIASES });
    if (fields === null || fields === undefined) return [];
    if (!isObject(fields)) throw invalid('a document is not a map');
    change(fields);
    return [stringify(fields, { sortMapEntries: true, lineWidth: 0 })];
  });
  return texts.join('---\n');
}

/** The JSON of a field, `a.b.c`. */
export function jsonOfField(text: string, path: string): string {
  let value = readOne(text);
  for (const field of path.split('.')) {
    if (!isObject(value)) throw invalid(`cannot look up ${field}: its parent is not a map`);
    if (!Object.hasOwn(value, field)) throw invalid(`field ${field} is not present`);
    value = value[field];
  }
  return JSON.stringify(sorted(value));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const keys = Object.keys(value).toSorted();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key])]));
}

function twoParts(path: string): readonly [string, string] {
  const parts = path.split('_');
  const [parent, child] = parts;
  if (parent === undefined || child === undefined || parts.length !== 2)
    throw invalid('the path must have two parts, a_b');
  return [parent, child];
}

/** Sets `parent_child` in every document, or appends to the list `parent_child[]`. */
export function addField(text: string, path: string, value: string): string {
  const added = readOne(value);
  const list = path.endsWith('[]');
  const [parent, child] = twoParts(list ? path.slice(0, -2) : path);
  return eachDocument(text, (fields) => {
    const inner = Object.hasOwn(fields, parent) ? fields[parent] : {};
    if (!isObject(inner)) throw invalid(`${parent} is not a map`);
    const before = Object.hasOwn(inner, child) ? inner[child] : undefined;
    if (list && before !== undefined && before !== null && !Array.isArray(before))
      throw invalid(`${child} is not a list`);
    const items: readonly unknown[] = Array.isArray(before) ? before : [];
    Object.defineProperty(inner, child, { ...OPEN, value: list ? [...items, added] : added });
    Object.defineProperty(fields, parent, { ...OPEN, value: inner });
  });
}

/** Treats names such as `__proto__` like any other. */
const OPEN = { enumerable: true, configurable: true, writable: true } as const;

/** Removes `parent_child`, or a top-level field, from every document. */
export function removeField(text: string, path: string): string {
  return eachDocument(text, (fields) => {
    if (!path.includes('_')) {
      Reflect.deleteProperty(fields, path);
      return;
    }
    const [parent, child] = twoParts(path);
    const inner = Object.hasOwn(fields, parent) ? fields[parent] : undefined;
    if (isObject(inner)) Reflect.deleteProperty(inner, child);
  });
}

/** The text in `parent_child`. */
export function textOfField(text: string, path: string): string {
  const [parent, child] = twoParts(path);
  const value = readOne(text);
  const inner = isObject(value) && Object.hasOwn(value, parent) ? value[parent] : undefined;
  const field = isObject(inner) && Object.hasOwn(inner, child) ? inner[child] : undefined;
  if (typeof field !== 'string') throw invalid(`${path} is not a text`);
  return field;
}
