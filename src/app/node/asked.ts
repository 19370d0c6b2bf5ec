/** A request as JSON that is kept with its run, and back: for `resume`. Whatever is read is hostile until it is checked. */
import { camelCase } from '../../core/camel-case.ts';
import { isObject, isTexts } from '../../core/json.ts';

/** What a field holds; a list of texts is what it may be. */
type FieldKind = 'text' | 'texts' | 'flag' | readonly string[];

type KindOf<Value> = [Value] extends [boolean]
  ? 'flag'
  : [Value] extends [readonly string[]]
    ? 'texts'
    : string extends Value
      ? 'text'
      : readonly Value[];

/** The kinds of all fields of a request. */
export type Fields<Request> = { readonly [Field in keyof Request]-?: KindOf<NonNullable<Request[Field]>> };

/** How a request is kept. */
export interface Shape<Request> {
  readonly fields: Fields<Request>;
  /** The field of what is named on the command line, where something is. */
  readonly operands?: keyof Request & string;
  /** Without that there is no such request. */
  readonly needsOperands?: true;
}

/** What the folder of a run keeps. */
interface AskedCommand<Request> {
  readonly name: string;
  readonly request: Request;
  /** Folder that relative paths start from; absolute. */
  readonly cwd: string;
  /** The text of the installer spec, which may have changed since. */
  readonly installer?: string | undefined;
}

/** The JSON of a request; fields that its shape does not have are left out. */
export function askedFor<Request extends object>(
  asked: AskedCommand<Request>,
  { fields }: Shape<Request>,
): AskedCommand<Partial<Request>> {
  const kept = Object.entries(asked.request).filter(([field]) => Object.hasOwn(fields, field));
  return { ...asked, request: Object.fromEntries(kept) as Partial<Request> };
}

/** The name of the command that such JSON is of, which decides its shape; undefined for anything else. */
export function askedName(kept: unknown): string | undefined {
  const name = isObject(kept) ? kept['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** What {@link askedFor} has made, or a former version, which kept options by their names; undefined for anything else. */
export function askedOf<Request>(kept: unknown, shape: Shape<Request>): AskedCommand<Request> | undefined {
  if (!isObject(kept)) return undefined;
  const { name, request, operands, options, cwd, installer } = kept;
  if (typeof name !== 'string' || !isText(cwd) || !cwd.startsWith('/')) return undefined;
  if (installer !== undefined && typeof installer !== 'string') return undefined;
  const found = request === undefined ? ofWords(operands, options, shape) : checked(request, shape);
  return found === undefined ? undefined : { name, request: found, cwd, installer };
}

function ofWords<Request>(operands: unknown, options: unknown, shape: Shape<Request>): Request | undefined {
  if (!isTexts(operands) || !isObject(options)) return undefined;
  if (shape.operands === undefined) return operands.length > 0 ? undefined : requestOfOptions(options, shape);
  return requestOfOptions({ ...options, [shape.operands]: operands }, shape);
}

/**
 * The request of options by their names, `{ 'install-dir': ['/opt'], 'yes': true }`; undefined when they are none. A text may be
 * one in a list.
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

/** No path, name or variable has a NUL in it. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && !value.includes('\0');
}
