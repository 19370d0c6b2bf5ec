/** Requests as JSON that is saved with a run, for `resume`. Everything that is read is untrusted until it is checked. */
import { camelCase } from '../../core/camel-case.ts';
import { isObject, isTexts } from '../../core/json.ts';

/** The type of a field; a list of texts contains the allowed values. */
type FieldKind = 'text' | 'texts' | 'flag' | readonly string[];

type KindOf<Value> = [Value] extends [boolean]
  ? 'flag'
  : [Value] extends [readonly string[]]
    ? 'texts'
    : string extends Value
      ? 'text'
      : readonly Value[];

/** The types of all fields of a request. */
export type Fields<Request> = { readonly [Field in keyof Request]-?: KindOf<NonNullable<Request[Field]>> };

/** How a request is saved. */
export interface Shape<Request> {
  readonly fields: Fields<Request>;
  /** The field of the operands of the command line, if it has any. */
  readonly operands?: keyof Request & string;
  /** The operands are required. */
  readonly needsOperands?: true;
}

/** The JSON in the folder of a run. */
interface SavedCommand<Request> {
  readonly name: string;
  readonly request: Request;
  /** Base folder of relative paths; absolute. */
  readonly cwd: string;
  /** The text of the installer spec; its file may have changed since. */
  readonly installer?: string | undefined;
}

/** The JSON of a request; fields that are not in its shape are left out. */
export function commandOf<Request extends object>(
  asked: SavedCommand<Request>,
  { fields }: Shape<Request>,
): SavedCommand<Partial<Request>> {
  const kept = Object.entries(asked.request).filter(([field]) => Object.hasOwn(fields, field));
  return { ...asked, request: Object.fromEntries(kept) as Partial<Request> };
}

/** The command name in such JSON, which determines the shape; undefined for anything else. */
export function commandName(kept: unknown): string | undefined {
  const name = isObject(kept) ? kept['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** Parses JSON of {@link commandOf}, or of former versions, which saved options by name; undefined for anything else. */
export function parseCommand<Request>(kept: unknown, shape: Shape<Request>): SavedCommand<Request> | undefined {
  if (!isObject(kept)) return undefined;
  const { name, request, operands, options, cwd, installer } = kept;
  if (typeof name !== 'string' || !isText(cwd) || !cwd.startsWith('/')) return undefined;
  if (installer !== undefined && typeof installer !== 'string') return undefined;
  const found = request === undefined ? ofOptions(operands, options, shape) : checked(request, shape);
  return found === undefined ? undefined : { name, request: found, cwd, installer };
}

function ofOptions<Request>(operands: unknown, options: unknown, shape: Shape<Request>): Request | undefined {
  if (!isTexts(operands) || !isObject(options)) return undefined;
  if (shape.operands === undefined) return operands.length > 0 ? undefined : requestOfOptions(options, shape);
  return requestOfOptions({ ...options, [shape.operands]: operands }, shape);
}

/**
 * The request from options by name, such as `{ 'install-dir': ['/opt'], 'yes': true }`; undefined if they are invalid. A text may
 * be in a list of one.
 */
export function requestOfOptions<Request>(
  options: Readonly<Record<string, unknown>>,
  shape: Shape<Request>,
): Request | undefined {
  const values = Object.entries(options).map(([option, value]): readonly [string, unknown] => {
    const field = camelCase(option);
    const kind = kindOf(field, shape);
    const isList = kind === 'texts' || kind === 'flag';
    return [field, !isList && Array.isArray(value) && value.length === 1 ? value[0] : value];
  });
  return checked(Object.fromEntries(values), shape);
}

function kindOf<Request>(field: string, { fields }: Shape<Request>): FieldKind | undefined {
  return Object.hasOwn(fields, field) ? (fields as Readonly<Record<string, FieldKind>>)[field] : undefined;
}

function checked<Request>(value: unknown, shape: Shape<Request>): Request | undefined {
  if (!isObject(value) || !Object.entries(value).every(([field, one]) => fits(one, kindOf(field, shape)))) {
    return undefined;
  }
  const named = shape.operands === undefined ? undefined : value[shape.operands];
  if (shape.needsOperands === true && (named === undefined || named === '' || isEmpty(named))) return undefined;
  return value as Request;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function fits(value: unknown, kind: FieldKind | undefined): boolean {
  if (kind === undefined) return false;
  if (kind === 'flag') return typeof value === 'boolean';
  if (kind === 'texts') return Array.isArray(value) && value.every(isText);
  return isText(value) && (kind === 'text' || kind.includes(value));
}

/** Paths, names and variables cannot contain NUL. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}
