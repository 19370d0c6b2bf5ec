/** Settings of an add-on against the JSON Schema that its package ships. Pure. */
import { Ajv, type ErrorObject } from 'ajv';
import type { Diagnostic } from '../core/diagnostic.ts';
import { isObject } from '../core/json.ts';
import { nearest } from '../core/nearest.ts';
import type { InstallerAddon } from './installer.ts';
import { HOOK_TIMEOUT } from './settings.ts';

const MOST_FINDINGS = 20;
/** Settings are a handful; compiling takes time that grows with the text. */
const LARGEST = 128 * 1024;

/**
 * What does not fit is an error at the add-on's place in the spec; a name that the schema does not know, but nearly, is a
 * warning. `schema` comes from outside: one that is none, or too large, judges nothing.
 */
export function checkShipped(addon: InstallerAddon, schema: unknown): readonly Diagnostic[] {
  if (!isObject(schema) || JSON.stringify(schema).length > LARGEST) return [];
  const { specName, requested, s3Override, settings, place } = addon;
  const properties = isObject(schema['properties']) ? Object.keys(schema['properties']) : [];
  const { [HOOK_TIMEOUT]: timeout, ...others } = settings;
  const required = Array.isArray(schema['required']) ? (schema['required'] as readonly unknown[]) : [];
  const named: readonly unknown[] = [...properties, ...required];
  // What every add-on has need not stand in a schema.
  const common = Object.entries({ version: requested, s3Override, [HOOK_TIMEOUT]: timeout });
  const judged = { ...Object.fromEntries(common.filter(([name]) => named.includes(name))), ...others };
  const errors = errorsOf(schema, judged)
    .filter((error) => !isPlainText(error, others))
    .slice(0, MOST_FINDINGS);
  return [
    ...errors.map((error): Diagnostic => {
      const name = `${specName}${error.instancePath.replaceAll('/', '.')}`;
      const extra: unknown = error.params['additionalProperty'];
      const near = typeof extra === 'string' ? nearest(extra, properties) : undefined;
      const message =
        typeof extra === 'string' ? `${name} has no setting "${extra.slice(0, 60)}"` : `${name} ${error.message ?? ''}`;
      return { code: 'installer/schema', severity: 'error', message, place, hint: near && `did you mean "${near}"?` };
    }),
    ...(errors.length > 0 ? [] : slips(addon, Object.keys(others), properties)),
  ];
}

/** A number or a switch where a text is wanted: as a shell variable it is one, and `--set` cannot say it otherwise. */
function isPlainText({ keyword, params, instancePath }: ErrorObject, settings: InstallerAddon['settings']): boolean {
  const value = settings[instancePath.slice(1)];
  return keyword === 'type' && params['type'] === 'string' && ['number', 'boolean'].includes(typeof value);
}

function slips({ specName, place }: InstallerAddon, fields: readonly string[], properties: readonly string[]) {
  return fields.flatMap((field): readonly Diagnostic[] => {
    const near = properties.includes(field) ? undefined : nearest(field, properties);
    if (near === undefined) return [];
    const message = `the package of ${specName} knows no setting "${field.slice(0, 60)}"`;
    const hint = `did you mean "${near}"?`;
    return [{ code: 'installer/unknown-setting', severity: 'warning', message, place, hint }];
  });
}

function errorsOf(schema: Readonly<Record<string, unknown>>, value: object): readonly ErrorObject[] {
  try {
    const validate = new Ajv({ strict: false, logger: false, validateFormats: false, allErrors: true }).compile(schema);
    return validate(value) ? [] : (validate.errors ?? []);
  } catch {
    return [];
  }
}
