/** Settings of add-ons against the JSON Schemas that their packages ship. Pure. */
import { Ajv, type ErrorObject } from 'ajv';
import { runInNewContext } from 'node:vm';
import type { Diagnostic } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import { nearest } from '../core/nearest.ts';
import type { InstallerAddon } from './installer.ts';
import { HOOK_TIMEOUT } from './settings.ts';

const MOST_FINDINGS = 20;
/** Settings are a handful; compiling takes time that grows with the text. */
const LARGEST = 128 * 1024;
const LONGEST_LIST = 200;
/**
 * Processor time for compiling a schema, and again for judging by it: some patterns and references take longer than anybody
 * lives.
 */
const LIMIT_MS = 500;
/** Processor time by which work that is late was at work, and did not only wait for its turn on a busy machine. */
const LEAST_MS = LIMIT_MS / 2;
const LONGEST_MS = 32_000;

/**
 * What does not fit is an error at the setting's place in the spec, or at the add-on's where it has none; a name that the
 * schema does not know, but nearly, is a warning. `schema` comes from outside: one that is none, or takes too long to be
 * compiled, judges nothing; settings that it cannot judge in time are an error.
 */
export function checkShipped(addon: InstallerAddon, schema: unknown): readonly Diagnostic[] {
  if (!isObject(schema) || JSON.stringify(schema).length > LARGEST) return [];
  const { requested, s3Override, settings } = addon;
  const properties = propertiesOf(schema);
  const { [HOOK_TIMEOUT]: timeout, ...others } = settings;
  const required = Array.isArray(schema['required']) ? (schema['required'] as readonly unknown[]) : [];
  const named: readonly unknown[] = [...properties, ...required];
  // What every add-on has need not stand in a schema.
  const common = Object.entries({ version: requested, s3Override, [HOOK_TIMEOUT]: timeout });
  const judged = { ...Object.fromEntries(common.filter(([name]) => named.includes(name))), ...others };
  const found = errorsOf(schema, judged);
  if (found === 'late') return [lateFinding(addon)];
  const errors = found
    .filter((error) => !isPlainText(error, others))
    .slice(0, MOST_FINDINGS)
    .map((error) => described(addon, error));
  const refused = new Set(errors.map(({ message }) => message));
  const slips = slipsOf(addon, Object.keys(others), properties).filter(({ message }) => !refused.has(message));
  return [...errors, ...slips.slice(0, MOST_FINDINGS - errors.length)];
}

/** The same where misspelled names are refused, too: a bundle is made where the spec is written, and can be mended. */
export function refusingSlips(findings: readonly Diagnostic[]): readonly Diagnostic[] {
  return findings.map((one) => ({ ...one, severity: 'error' }));
}

/** `SPEC_INVALID` with everything that does not fit. */
export function settingsError(diagnostics: readonly Diagnostic[], hint?: string): CurlewError {
  return new CurlewError('SPEC_INVALID', 'settings of the spec do not fit its packages', { diagnostics, hint });
}

function propertiesOf(schema: unknown): readonly string[] {
  return isObject(schema) && isObject(schema['properties']) ? Object.keys(schema['properties']) : [];
}

function described({ specName, place, places }: InstallerAddon, error: ErrorObject): Diagnostic {
  const { instancePath, keyword, params, parentSchema, data, message = '' } = error;
  const steps = instancePath.split('/').slice(1).map(unescaped);
  const name = [specName, ...steps].join('.');
  const extra: unknown = params['additionalProperty'];
  const at = (field: unknown): Diagnostic['place'] => (typeof field === 'string' && places?.get(field)) || place;
  const finding = { code: 'installer/schema', severity: 'error' as const };
  if (typeof extra === 'string') {
    const there = isObject(data) ? Object.keys(data) : [];
    const hint = nearHint(extra, propertiesOf(parentSchema), there) ?? knownHint(propertiesOf(parentSchema));
    return { ...finding, message: noSetting(name, extra), place: at(steps[0] ?? extra), hint };
  }
  const missing: unknown = params['missingProperty'];
  if (keyword === 'required' && typeof missing === 'string') {
    const text = `${name} needs the setting "${missing.slice(0, 60)}"`;
    return { ...finding, message: text, place: at(steps[0]), hint: wantedHint(parentSchema, missing) };
  }
  return { ...finding, message: `${name} ${wanted(keyword, params) ?? message}`, place: at(steps[0]) };
}

/** RFC 6901: `~1` is a slash, `~0` a tilde. */
function unescaped(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}

function noSetting(name: string, field: string): string {
  return `${name} has no setting "${field.slice(0, 60)}"`;
}

/** Only names that are not there already can have been meant. */
function nearHint(field: string, properties: readonly string[], there: readonly string[]): string | undefined {
  const near = nearest(
    field,
    properties.filter((name) => !there.includes(name)),
  );
  return near && `did you mean "${near}"?`;
}

function knownHint(properties: readonly string[]): string | undefined {
  return properties.length === 0 ? undefined : `it has: ${properties.join(', ').slice(0, LONGEST_LIST)}`;
}

/** What the schema says of a setting that is missing. */
function wantedHint(parent: unknown, field: string): string | undefined {
  const properties = isObject(parent) ? parent['properties'] : undefined;
  const schema = isObject(properties) && Object.hasOwn(properties, field) ? properties[field] : undefined;
  if (!isObject(schema)) return undefined;
  const about: unknown = schema['description'];
  if (typeof about === 'string') return about.slice(0, LONGEST_LIST);
  if (Array.isArray(schema['enum'])) return `write ${oneOf(schema['enum'])}`;
  return typeof schema['type'] === 'string' ? `its type is ${schema['type']}` : undefined;
}

/** Types of JSON Schema, in the words of the other findings. */
const TYPES: Readonly<Record<string, string>> = {
  integer: 'a whole number',
  number: 'a number',
  string: 'a string',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
};

/** What ajv says of these does not name the values that it wants, or names them for programmers. */
function wanted(keyword: string, params: ErrorObject['params']): string | undefined {
  if (keyword === 'type') {
    const types = [params['type']].flat().map((type) => (typeof type === 'string' ? (TYPES[type] ?? type) : ''));
    return `must be ${types.join(' or ')}`;
  }
  if (keyword === 'enum' && Array.isArray(params['allowedValues'])) return `must be ${oneOf(params['allowedValues'])}`;
  return keyword === 'const' ? `must be ${oneOf([params['allowedValue']])}` : undefined;
}

function oneOf(values: readonly unknown[]): string {
  const texts = values.map((value) => JSON.stringify(value)).join(', ');
  return `${values.length > 1 ? 'one of ' : ''}${texts.slice(0, LONGEST_LIST)}`;
}

/** A number or a switch where a text is wanted: as a shell variable it is one, and `--set` cannot say it otherwise. */
function isPlainText({ keyword, params, instancePath }: ErrorObject, settings: InstallerAddon['settings']): boolean {
  const value = settings[instancePath.slice(1)];
  return keyword === 'type' && params['type'] === 'string' && ['number', 'boolean'].includes(typeof value);
}

function slipsOf(
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
  const message = `the settings of ${specName} cannot be judged: its schema takes longer than ${LIMIT_MS} ms for them`;
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

/** Ends work that takes too long, in the middle of a pattern, too. What had to wait for the processor starts again, with more time. */
export function inTime<Result>(work: () => Result): Result | 'late' {
  for (let timeout = LIMIT_MS; ; timeout *= 4) {
    const before = process.cpuUsage();
    try {
      return runInNewContext('work()', { work }, { timeout }) as Result;
    } catch (error) {
      // It comes from another realm: no instance of this one's Error.
      if ((error as { readonly code?: unknown } | null)?.code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.cpuUsage(before);
      if (user + system >= LEAST_MS * 1000 || timeout >= LONGEST_MS) return 'late';
    }
  }
}
