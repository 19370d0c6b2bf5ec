/** Checks Troubleshoot specs: a HostPreflight, a SupportBundle, a Preflight, also one inside a Secret. Pure. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { isMap, isNode, isScalar, isSeq, visit, type Document } from 'yaml';
import { pointerStep, isObject } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { quoted, type RuleId } from '../rules.ts';
import type { Remark, Spot } from './spot.ts';
import { touchesHole } from './template.ts';
import { SPEC_SCHEMAS, type Schema, type TroubleshootKind } from './troubleshoot-schema.ts';
import type { YamlDocument } from './yaml-text.ts';

const MAX_MISTAKES = 20;
const MAX_ALIASES = 100;
/** Placeholder for a value that is known only after rendering; matches everything. */
const ANYTHING = '\u0000anything';

const compiled = new Map<TroubleshootKind, ValidateFunction>();

function validatorOf(kind: TroubleshootKind): ValidateFunction {
  const known = compiled.get(kind);
  if (known !== undefined) return known;
  const validate = new Ajv({
    allErrors: true,
    allowUnionTypes: true,
    verbose: true,
    inlineRefs: false,
    code: { optimize: false },
  }).compile(SPEC_SCHEMAS[kind]);
  compiled.set(kind, validate);
  return validate;
}

/** The keywords of SPEC_SCHEMAS. */
interface Known {
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly $ref?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: false;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly definitions?: unknown;
}

/**
 * Whether the known parts of a value are valid. Most specs are, and compiling a validator, which reports errors, takes longer
 * than reading a hundred add-ons. An unknown keyword counts as a mismatch.
 */
function fits(value: unknown, schema: Schema, root: Schema): boolean {
  const { type, const: only, $ref, items, properties = {}, required = [], ...rest } = schema as Known;
  const { additionalProperties, minProperties = 0, maxProperties = Infinity, definitions: _, ...others } = rest;
  if (value === ANYTHING) return true;
  if (Object.keys(others).length > 0 || (only !== undefined && value !== only)) return false;
  if ($ref !== undefined) {
    const { outcomes } = (root as { readonly definitions?: { readonly outcomes?: Schema } }).definitions ?? {};
    return $ref === '#/definitions/outcomes' && outcomes !== undefined && fits(value, outcomes, root);
  }
  if (type !== undefined && ![type].flat().some((one) => one === typeOf(value) || isInteger(one, value))) return false;
  if (Array.isArray(value)) return items === undefined || value.every((item) => fits(item, items, root));
  if (!isObject(value)) return true;
  const names = Object.keys(value);
  if (names.length < minProperties || names.length > maxProperties) return false;
  if (required.some((name) => !Object.hasOwn(value, name))) return false;
  return names.every((name) => {
    const nested = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return nested === undefined ? additionalProperties !== false : fits(value[name], nested, root);
  });
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

function isInteger(type: string, value: unknown): boolean {
  return type === 'integer' && Number.isInteger(value);
}

type Path = readonly string[];

/** The errors of a spec, at ranges of the text of the document. */
export function checkSpec(kind: TroubleshootKind, document: YamlDocument): readonly Remark[] {
  const { tree, base } = document;
  const value = dataOf(document);
  const rules: { readonly schema: RuleId; readonly unknown: RuleId } =
    kind === 'HostPreflight'
      ? { schema: 'preflight/schema', unknown: 'preflight/unknown' }
      : { schema: 'troubleshoot/schema', unknown: 'troubleshoot/unknown' };
  if (value === undefined) {
    const message = 'its aliases cannot be expanded';
    return [{ code: rules.schema, from: base, to: base + 1, message, hint: 'write it without anchors' }];
  }
  if (fits(value, SPEC_SCHEMAS[kind], SPEC_SCHEMAS[kind])) return [];
  const validate = validatorOf(kind);
  if (validate(value)) return [];
  const remarks: Remark[] = [];
  for (const error of validate.errors ?? []) {
    const path = error.instancePath.split('/').slice(1).map(pointerStep);
    if (remarks.length === MAX_MISTAKES) break;
    if (valueAt(value, path) === ANYTHING || isInAnything(value, path)) continue;
    const described = describe(error, path);
    if (described === undefined) continue;
    const spot = spotOf(tree, described.at);
    const code = described.unknown ? rules.unknown : rules.schema;
    remarks.push({
      code,
      from: base + spot.from,
      to: base + spot.to,
      message: described.message,
      hint: described.hint,
    });
  }
  return remarks;
}

/** Undefined if aliases expand too much. */
function dataOf({ tree, template: { holes } }: YamlDocument): unknown {
  if (holes.length > 0) {
    visit(tree, {
      Scalar(key, node) {
        if (key === 'key' || !node.range) return;
        if (touchesHole(holes, { from: node.range[0], to: node.range[1] })) node.value = ANYTHING;
      },
    });
  }
  try {
    return tree.toJS({ maxAliasCount: MAX_ALIASES }) as unknown;
  } catch (error) {
    if (error instanceof ReferenceError || error instanceof RangeError || error instanceof TypeError) return undefined;
    throw error;
  }
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const step of path) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[step];
  }
  return at;
}

function isInAnything(value: unknown, path: Path): boolean {
  return path.some((_, length) => valueAt(value, path.slice(0, length)) === ANYTHING);
}

interface Described {
  readonly at: Path;
  readonly message: string;
  readonly hint?: string;
  readonly unknown?: boolean;
}

/** Describes an error of ajv for the author of the spec; undefined if another error describes it better. */
function describe({ keyword, params, parentSchema }: ErrorObject, path: Path): Described | undefined {
  const name = quoted(path.at(-1) ?? 'the document');
  if (keyword === 'additionalProperties') {
    const extra = String(params['additionalProperty']);
    const known = Object.keys((parentSchema?.['properties'] ?? {}) as object);
    const near = nearest(extra, known);
    const hint = near === undefined ? `known: ${known.slice(0, 40).join(', ')}` : `did you mean "${near}"?`;
    return { at: [...path, extra], message: `unknown ${kindAt(path)} ${quoted(extra)}`, hint, unknown: true };
  }
  if (keyword === 'required') {
    const missing = String(params['missingProperty']);
    return { at: path, message: `${name} requires ${quoted(missing)}` };
  }
  if (keyword === 'maxProperties') {
    return {
      at: path,
      message: 'a list item must have one key, but this one has several',
      hint: 'begin each with a separate "-"',
    };
  }
  if (keyword === 'minProperties') return { at: path, message: 'an item of the list is empty' };
  if (keyword === 'const') {
    const expected = String(params['allowedValue']);
    return { at: path, message: `${name} must be ${quoted(expected)}`, hint: `${path.at(-1) ?? ''}: ${expected}` };
  }
  if (keyword !== 'type') return undefined;
  const types = [params['type']].flat().filter((type) => type !== 'null');
  const hint = types.includes('object')
    ? `${path.at(-1) ?? ''}: {}`
    : types.includes('string')
      ? 'put it in quotes'
      : '';
  const message = `${name} must be ${types.map((type) => TYPE_NAMES.get(String(type)) ?? String(type)).join(' or ')}`;
  return { at: path, message, ...(hint === '' ? {} : { hint }) };
}

const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ['string', 'a string'],
  ['integer', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'a map'],
]);

/** The kind of keys in a map. */
function kindAt(path: Path): string {
  const list = /^\d+$/.test(path.at(-1) ?? '') ? (path.at(-2) ?? '') : '';
  if (/collectors$/i.test(list)) return list === 'collectors' ? 'collector' : 'host collector';
  if (/analyzers$/i.test(list)) return list === 'analyzers' ? 'analyzer' : 'host analyzer';
  if (list === 'outcomes') return 'outcome';
  return `setting of ${quoted(path.at(-1) ?? 'the document')}`;
}

/** The range of the key or list item at a path, or of its nearest existing parent. */
function spotOf(tree: Document, path: Path): Spot {
  let node: unknown = tree.contents;
  let spot: Spot = { from: 0, to: 1 };
  const take = (part: unknown): void => {
    if (isNode(part) && part.range) spot = { from: part.range[0], to: Math.max(part.range[0] + 1, part.range[1]) };
  };
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (pair === undefined) return spot;
      take(pair.key);
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      take(node);
    } else return spot;
  }
  return spot;
}
