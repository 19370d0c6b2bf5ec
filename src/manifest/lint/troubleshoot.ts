/** Judges Troubleshoot specs: a HostPreflight, a SupportBundle, a Preflight, also one inside of a Secret. Pure. */
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { isMap, isNode, isScalar, isSeq, visit, type Document } from 'yaml';
import { isObject } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import { quoted, type RuleId } from '../rules.ts';
import type { Remark, Spot } from './spot.ts';
import { touchesHole } from './template.ts';
import { SPEC_SCHEMAS, type Schema, type SpecKind } from './troubleshoot-schema.ts';
import type { YamlDocument } from './yaml-text.ts';

const MOST_MISTAKES = 20;
const MOST_ALIASES = 100;
/** Stands for what is known only when the text is rendered; fits everywhere. */
const ANYTHING = '\u0000anything';

const compiled = new Map<SpecKind, ValidateFunction>();

function validatorOf(kind: SpecKind): ValidateFunction {
  const known = compiled.get(kind);
  if (known !== undefined) return known;
  const made = new Ajv({
    allErrors: true,
    allowUnionTypes: true,
    verbose: true,
    inlineRefs: false,
    code: { optimize: false },
  }).compile(SPEC_SCHEMAS[kind]);
  compiled.set(kind, made);
  return made;
}

/** Keywords of our own schemas. */
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
 * Whether nothing is wrong with a value, wherever it is known. Most specs are sound, and compiling a validator, which says what
 * is wrong, takes longer than reading a hundred add-ons. A keyword that is not known here does not fit.
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
    const below = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return below === undefined ? additionalProperties !== false : fits(value[name], below, root);
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

/** What is wrong with one spec, at spots of the text that the document was read from. */
export function judgeSpec(kind: SpecKind, document: YamlDocument): readonly Remark[] {
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
    const path = error.instancePath.split('/').slice(1).map(unescaped);
    if (remarks.length === MOST_MISTAKES) break;
    if (valueAt(value, path) === ANYTHING || belowAnything(value, path)) continue;
    const told = worded(error, path);
    if (told === undefined) continue;
    const spot = spotOf(tree, told.at);
    const code = told.unknown ? rules.unknown : rules.schema;
    remarks.push({ code, from: base + spot.from, to: base + spot.to, message: told.message, hint: told.hint });
  }
  return remarks;
}

function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Undefined when aliases stand for more than they should. */
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
    return tree.toJS({ maxAliasCount: MOST_ALIASES }) as unknown;
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

function belowAnything(value: unknown, path: Path): boolean {
  return path.some((_, length) => valueAt(value, path.slice(0, length)) === ANYTHING);
}

interface Worded {
  readonly at: Path;
  readonly message: string;
  readonly hint?: string;
  readonly unknown?: boolean;
}

/** What an error of ajv means for the one who wrote the spec; undefined where another error says it better. */
function worded({ keyword, params, parentSchema }: ErrorObject, path: Path): Worded | undefined {
  const name = quoted(path.at(-1) ?? 'the document');
  if (keyword === 'additionalProperties') {
    const extra = String(params['additionalProperty']);
    const known = Object.keys((parentSchema?.['properties'] ?? {}) as object);
    const near = nearest(extra, known);
    const hint = near === undefined ? `known: ${known.slice(0, 40).join(', ')}` : `did you mean "${near}"?`;
    return { at: [...path, extra], message: `${quoted(extra)} is no ${kindAt(path)}`, hint, unknown: true };
  }
  if (keyword === 'required') {
    const missing = String(params['missingProperty']);
    return { at: path, message: `${name} needs ${quoted(missing)}` };
  }
  if (keyword === 'maxProperties') {
    return {
      at: path,
      message: 'one item of the list has one key; here are several',
      hint: 'begin each with its own "-"',
    };
  }
  if (keyword === 'minProperties') return { at: path, message: 'an item of the list is empty' };
  if (keyword === 'const') {
    const wanted = String(params['allowedValue']);
    return { at: path, message: `${name} has to be ${quoted(wanted)}`, hint: `${path.at(-1) ?? ''}: ${wanted}` };
  }
  if (keyword !== 'type') return undefined;
  const types = [params['type']].flat().filter((type) => type !== 'null');
  const hint = types.includes('object')
    ? `${path.at(-1) ?? ''}: {}`
    : types.includes('string')
      ? 'put it in quotes'
      : '';
  const message = `${name} has to be ${types.map((type) => WORDS.get(String(type)) ?? String(type)).join(' or ')}`;
  return { at: path, message, ...(hint === '' ? {} : { hint }) };
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ['string', 'a text'],
  ['integer', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'a map'],
]);

/** What the keys of a map are. */
function kindAt(path: Path): string {
  const list = /^\d+$/.test(path.at(-1) ?? '') ? (path.at(-2) ?? '') : '';
  if (/collectors$/i.test(list)) return list === 'collectors' ? 'collector' : 'collector of hosts';
  if (/analyzers$/i.test(list)) return list === 'analyzers' ? 'analyzer' : 'analyzer of hosts';
  if (list === 'outcomes') return 'outcome';
  return `setting of ${quoted(path.at(-1) ?? 'the document')}`;
}

/** The key at the end of a path, or the item of a list; the nearest part that there is. */
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
