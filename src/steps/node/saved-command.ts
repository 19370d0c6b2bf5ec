/** Requests as JSON that is saved with a run, for `resume`. Everything that is read is untrusted until it is checked. */
import type { Fields } from '../../core/field.ts';
import { isObject, isTexts } from '../../core/json.ts';
import { fieldName, requestProblem, type RequestOf } from '../../core/request.ts';

/** The JSON in the folder of a run. */
export interface SavedCommand<Request> {
  readonly name: string;
  readonly request: Request;
  /** Base folder of relative paths; absolute. */
  readonly cwd: string;
  /** The text of the installer spec; its file may have changed since. */
  readonly installer?: string | undefined;
}

function savedFields(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, { once }]) => once !== true));
}

/** The JSON of a request; fields that a resumed run does not get are left out. */
export function savedCommandOf(asked: SavedCommand<object>, fields: Fields): SavedCommand<object> {
  const saved = savedFields(fields);
  const entries = Object.entries(asked.request).filter(([field]) => Object.hasOwn(saved, field));
  return { ...asked, request: Object.fromEntries(entries) };
}

/** The command name in such JSON, which determines the fields; undefined for anything else. */
export function commandName(document: unknown): string | undefined {
  const name = isObject(document) ? document['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** Parses JSON of {@link savedCommandOf}, or of former versions, which saved options by name; undefined for anything else. */
export function parseCommand<Own extends Fields>(
  document: unknown,
  fields: Own,
): SavedCommand<RequestOf<Own>> | undefined {
  if (!isObject(document)) return undefined;
  const { name, request, operands, options, cwd, installer } = document;
  if (typeof name !== 'string' || !isPath(cwd)) return undefined;
  if (installer !== undefined && typeof installer !== 'string') return undefined;
  const parsed = request === undefined ? ofOptions(operands, options, fields) : checked(request, fields);
  return parsed === undefined ? undefined : { name, request: parsed, cwd, installer };
}

function isPath(value: unknown): value is string {
  return typeof value === 'string' && value.startsWith('/') && !value.includes('\0');
}

function ofOptions<Own extends Fields>(operands: unknown, options: unknown, fields: Own): RequestOf<Own> | undefined {
  if (!isTexts(operands) || !isObject(options)) return undefined;
  const named = Object.keys(fields).find((name) => fields[name]?.operand === true);
  if (named === undefined) return operands.length > 0 ? undefined : requestOfOptions(fields, options);
  return requestOfOptions(fields, { ...options, [named]: operands });
}

/**
 * The request from options by name, such as `{ 'install-dir': ['/opt'], 'yes': true }`; undefined if they are invalid. A text may
 * be in a list of one.
 */
export function requestOfOptions<Own extends Fields>(
  fields: Own,
  options: Readonly<Record<string, unknown>>,
): RequestOf<Own> | undefined {
  const values = Object.entries(options).map(([option, value]): readonly [string, unknown] => {
    const name = fieldName(option);
    const isOne = Object.hasOwn(fields, name) && fields[name]?.takes === 'one';
    return [name, isOne && Array.isArray(value) && value.length === 1 ? value[0] : value];
  });
  return checked(Object.fromEntries(values), fields);
}

function checked<Own extends Fields>(value: unknown, fields: Own): RequestOf<Own> | undefined {
  // What is in the JSON is only compared with the fields: it is the request, or nothing.
  return requestProblem(savedFields(fields), value) === undefined ? (value as RequestOf<Own>) : undefined;
}
