/** Validates settings of add-ons against the JSON Schemas in their packages. Pure. */
import { Ajv, type ErrorObject } from 'ajv';
import { runInNewContext } from 'node:vm';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { pointerStep, fieldsOf, isObject } from '../core/json.ts';
import { nearest } from '../core/nearest.ts';
import { mapProblem } from '../formats/yaml/yaml-map.ts';
import { readYaml } from '../formats/yaml/yaml.ts';
import type { InstallerAddon } from './installer.ts';
import { describedValue } from './secret-settings.ts';
import { HOOK_TIMEOUT } from './settings.ts';

const MAX_FINDINGS = 20;
/** Add-ons have few settings, and compile time grows with the size of a schema. */
const MAX_SCHEMA = 128 * 1024;
const MAX_LIST = 200;
/**
 * Processor time for compiling a schema, and again for validating with it: some patterns and references take practically
 * forever.
 */
const LIMIT_MS = 500;
/** Processor time that shows that late work was running, instead of waiting for a busy processor. */
const MIN_MS = LIMIT_MS / 2;
const MAX_MS = 32_000;

/**
 * A mismatch is an error at the setting's place in the spec, or at the add-on's if the setting is absent; an unknown name close
 * to a known one is a warning. `schema` comes from outside: nothing is checked if it is not a schema or takes too long to
 * compile; settings that it cannot validate in time are an error.
 */
export function checkShipped(addon: InstallerAddon, schema: unknown): readonly Diagnostic[] {
  if (!isObject(schema) || JSON.stringify(schema).length > MAX_SCHEMA) return [];
  const { requested, s3Override, settings } = addon;
  const properties = propertiesOf(schema);
  const { [HOOK_TIMEOUT]: timeout, ...others } = settings;
  const required = Array.isArray(schema['required']) ? (schema['required'] as readonly unknown[]) : [];
  const named: readonly unknown[] = [...properties, ...required];
  // Settings that every add-on has need not be in a schema.
  const common = Object.entries({ version: requested, s3Override, [HOOK_TIMEOUT]: timeout });
  const checked = { ...Object.fromEntries(common.filter(([name]) => named.includes(name))), ...others };
  const result = errorsOf(schema, checked);
  if (result === 'late') return [lateFinding(addon)];
  const errors = result
    .filter((error) => !isPlainText(error, others))
    .slice(0, MAX_FINDINGS)
    .map((error) => described(addon, error, (steps) => describedValue(checked, steps, schema)))
    .concat(yamlFindings(addon, schema));
  const refused = new Set(errors.map(({ message }) => message));
  const typos = typosOf(addon, Object.keys(others), properties).filter(({ message }) => !refused.has(message));
  return [...errors, ...typos.slice(0, MAX_FINDINGS - errors.length)];
}

/** Turns warnings about misspelled names into errors, for bundles: their spec can still be corrected. */
export function refusingTypos(findings: readonly Diagnostic[]): readonly Diagnostic[] {
  return findings.map((one) => ({ ...one, severity: 'error' }));
}

/** `SPEC_INVALID` with all mismatches. */
export function settingsError(diagnostics: readonly Diagnostic[], hint?: string): CurlewError {
  const message = 'some settings of the spec do not match the schemas of its packages';
  return new CurlewError('SPEC_INVALID', message, { diagnostics, hint });
}

function propertiesOf(schema: unknown): readonly string[] {
  return isObject(schema) && isObject(schema['properties']) ? Object.keys(schema['properties']) : [];
}

function described(
  { specName, place, places }: InstallerAddon,
  error: ErrorObject,
  valueAt: (steps: readonly string[]) => string,
): Diagnostic {
  const { instancePath, keyword, params, parentSchema, data, message = '' } = error;
  const steps = instancePath.split('/').slice(1).map(pointerStep);
  const name = [specName, ...steps].join('.');
  const extra: unknown = params['additionalProperty'];
  const at = (field: unknown): Diagnostic['place'] => (typeof field === 'string' && places?.get(field)) || place;
  const finding = { code: 'installer/schema', severity: 'error' as const };
  if (typeof extra === 'string') {
    const present = isObject(data) ? Object.keys(data) : [];
    const hint = nearHint(extra, propertiesOf(parentSchema), present) ?? knownHint(propertiesOf(parentSchema));
    return { ...finding, message: noSetting(name, extra), place: at(steps[0] ?? extra), hint };
  }
  const missing: unknown = params['missingProperty'];
  if (keyword === 'required' && typeof missing === 'string') {
    const text = `${name} requires the setting "${missing.slice(0, 60)}"`;
    return { ...finding, message: text, place: at(steps[0]), hint: missingHint(parentSchema, missing) };
  }
  // The message of a list or map is about what is in it, unless it is about its type.
  const value = keyword !== 'type' && typeof data === 'object' ? '' : `, but is ${valueAt(steps)}`;
  const text = `${name} ${expected(keyword, params) ?? message}${value}`;
  const isMap = keyword === 'type' && isObject(data) && isYaml(parentSchema);
  const hint = isMap ? `write it as text: ${steps.at(-1) ?? ''}: |` : typeHint(keyword, params, data);
  return { ...finding, message: text, place: at(steps[0]), hint };
}

/** Texts that the schema calls YAML, and what is in them. */
function yamlFindings(addon: InstallerAddon, { properties }: Readonly<Record<string, unknown>>): readonly Diagnostic[] {
  const { specName, settings, place, places } = addon;
  return Object.entries(settings).flatMap(([name, text]): readonly Diagnostic[] => {
    const schema = fieldsOf(properties)[name];
    if (typeof text !== 'string' || !isYaml(schema)) return [];
    const problem = mapProblem(text);
    if (problem !== undefined) {
      const message = `${specName}.${name} must be a map in YAML: ${problem}`;
      return [{ code: 'installer/schema', severity: 'error', message, place: places?.get(name) ?? place }];
    }
    const content = fieldsOf(fieldsOf(schema)['contentSchema']);
    // A null is a value for a hook that merges the text: it removes what the add-on has there.
    const value = fieldsOf(readYaml('', text, { kubernetes: () => true }).value);
    const result = errorsOf(content, value);
    if (result === 'late') return [lateFinding(addon)];
    return result.map((error) =>
      described(addon, { ...error, instancePath: `/${name}${error.instancePath}` }, (steps) =>
        describedValue({ [name]: value }, steps, { properties: { [name]: content } }),
      ),
    );
  });
}

function isYaml(schema: unknown): boolean {
  return fieldsOf(schema)['contentMediaType'] === 'application/yaml';
}

function noSetting(name: string, field: string): string {
  return `${name} has no setting "${field.slice(0, 60)}"`;
}

/** Suggests only names that are not already set. */
function nearHint(field: string, properties: readonly string[], present: readonly string[]): string | undefined {
  const near = nearest(
    field,
    properties.filter((name) => !present.includes(name)),
  );
  return near && `did you mean "${near}"?`;
}

function knownHint(properties: readonly string[]): string | undefined {
  return properties.length === 0 ? undefined : `it has: ${properties.join(', ').slice(0, MAX_LIST)}`;
}

/** The schema's description of a missing setting. */
function missingHint(parent: unknown, field: string): string | undefined {
  const properties = isObject(parent) ? parent['properties'] : undefined;
  const schema = isObject(properties) && Object.hasOwn(properties, field) ? properties[field] : undefined;
  if (!isObject(schema)) return undefined;
  const about: unknown = schema['description'];
  if (typeof about === 'string') return about.slice(0, MAX_LIST);
  if (Array.isArray(schema['enum'])) return `write ${oneOf(schema['enum'])}`;
  return typeof schema['type'] === 'string' ? `its type is ${schema['type']}` : undefined;
}

/** Types of JSON Schema, in the terms of the other findings. */
const TYPES: Readonly<Record<string, string>> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
};

/** For a key without a value, and for a number or a switch in quotes. */
function typeHint(keyword: string, params: ErrorObject['params'], data: unknown): string | undefined {
  if (keyword === 'type' && data === null) return 'write a value, or remove the key';
  if (keyword !== 'type' || typeof data !== 'string') return undefined;
  const isNumber = ['integer', 'number'].includes(String(params['type'])) && /^-?\d+(?:\.\d+)?$/.test(data);
  const isSwitch = params['type'] === 'boolean' && /^(?:true|false)$/.test(data);
  return isNumber || isSwitch ? 'write it without quotes' : undefined;
}

/** Replaces ajv messages that do not name the expected values, or name them for programmers. */
function expected(keyword: string, params: ErrorObject['params']): string | undefined {
  if (keyword === 'type') {
    const types = [params['type']].flat().map((type) => (typeof type === 'string' ? (TYPES[type] ?? type) : ''));
    return `must be ${types.join(' or ')}`;
  }
  if (keyword === 'enum' && Array.isArray(params['allowedValues'])) return `must be ${oneOf(params['allowedValues'])}`;
  return keyword === 'const' ? `must be ${oneOf([params['allowedValue']])}` : undefined;
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value)).join(', ');
  return `${values.length > 1 ? 'one of ' : ''}${texts.slice(0, MAX_LIST)}`;
}

/** True for a number or a boolean instead of a text: as a shell variable it is text, and `--set` cannot express it otherwise. */
function isPlainText({ keyword, params, instancePath }: ErrorObject, settings: InstallerAddon['settings']): boolean {
  const value = settings[instancePath.slice(1)];
  return keyword === 'type' && params['type'] === 'string' && ['number', 'boolean'].includes(typeof value);
}

function typosOf(
  { specName, place, places }: InstallerAddon,
  fields: readonly string[],
  properties: readonly string[],
) {
  return fields.flatMap((field): readonly Diagnostic[] => {
    const hint = properties.includes(field) ? undefined : nearHint(field, properties, fields);
    if (hint === undefined) return [];
    const at = places?.get(field) ?? place;
    return [
      { code: 'installer/unknown-setting', severity: 'warning', message: noSetting(specName, field), place: at, hint },
    ];
  });
}

function lateFinding({ specName, place }: InstallerAddon): Diagnostic {
  const message = `cannot validate the settings of ${specName}: its schema takes longer than ${LIMIT_MS} ms`;
  return { code: 'installer/schema', severity: 'error', message, place, hint: 'simplify its patterns and references' };
}

function errorsOf(schema: Readonly<Record<string, unknown>>, value: object): readonly ErrorObject[] | 'late' {
  try {
    const options = { strict: false, logger: false, validateFormats: false, allErrors: true, verbose: true } as const;
    const validate = inTime(() => new Ajv(options).compile(schema));
    if (validate === 'late') return [];
    const fits = inTime(() => validate(value));
    return fits === 'late' ? fits : (validate.errors ?? []);
  } catch {
    return [];
  }
}

/** Ends work that takes too long, even within a pattern. Work that waited for the processor is repeated with more time. */
export function inTime<Result>(work: () => Result): Result | 'late' {
  for (let timeout = LIMIT_MS; ; timeout *= 4) {
    const before = process.cpuUsage();
    try {
      return runInNewContext('work()', { work }, { timeout }) as Result;
    } catch (error) {
      // The error comes from another realm, so it is not an instance of this realm's Error.
      if ((error as { readonly code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.cpuUsage(before);
      if (user + system >= MIN_MS * 1000 || timeout >= MAX_MS) return 'late';
    }
  }
}
