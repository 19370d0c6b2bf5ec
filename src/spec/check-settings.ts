/** Checks the settings of an installer spec against kURL's names and types. Pure. */
import type { Diagnostic } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { describedValue, isSecretName } from './secret-settings.ts';
import { kurlFields, HOOK_TIMEOUT, SECTION_NAMES, settingOf, variableName, type SettingKind } from './settings.ts';
import { isReservedVariable } from './variable-names.ts';
import { isJsonObject, type Json } from '../formats/yaml/yaml.ts';

/** A problem of a setting; the reader of the spec knows its place. */
export type SettingFinding = Omit<Diagnostic, 'place'>;

/**
 * `taken`: the fields above it. kURL silently drops a name that it does not know under one of its own keys; here it becomes a
 * variable. That is a warning if it looks like a typo, and a remark if a package may well have settings that kURL does not
 * know.
 */
export function checkSetting(
  specName: string,
  field: string,
  value: Json,
  taken: readonly string[],
): SettingFinding | undefined {
  const name = `${specName}.${field}`;
  const variable = variableName(specName, field);
  // A setting becomes a shell variable. Variables that bash, the linker or this tool read must not come from a spec.
  if (variable !== undefined && isReservedVariable(variable)) {
    return {
      severity: 'error',
      code: 'variable',
      message: `the setting ${name} would become the variable ${variable}`,
    };
  }
  const known = settingOf(specName, field);
  const fields = kurlFields(specName);
  if (known === undefined) {
    if (fields.length === 0 || field === HOOK_TIMEOUT) return undefined;
    const near = nearest(field, fields);
    return {
      severity: near !== undefined || SECTION_NAMES.includes(specName) ? 'warning' : 'info',
      code: 'unknown-setting',
      message: `kURL has no setting "${field.slice(0, 60)}" of ${specName}`,
      hint: near === undefined ? knownFields(fields) : `did you mean "${near}"?`,
    };
  }
  const other = taken.find((one) => settingOf(specName, one) === known);
  if (other !== undefined) {
    return { severity: 'error', code: 'twice', message: `${name} and ${specName}.${other} are the same setting` };
  }
  const { expected, fits, hint } = KINDS[known.kind];
  if (fits(value)) return undefined;
  const message = `${name} must be ${expected}, not ${describedValue({ [field]: value }, [field], undefined)}`;
  return { severity: 'error', code: 'type', message, hint: hint(value) };
}

/**
 * Unquoted texts that YAML 1.1, and so kURL, reads as switches, and numbers that lose their form. kURL's own settings have
 * types; others become variables of a form that hooks do not expect: `no` is a text, which a test for an empty value takes as
 * set.
 */
export function checkUnquoted(
  specName: string,
  field: string,
  value: Json,
  plain: string | undefined,
): SettingFinding | undefined {
  if (plain === undefined || settingOf(specName, field) !== undefined) return undefined;
  const name = `${specName}.${field}`;
  const word = YAML_1_1_BOOLEANS[plain.toLowerCase()];
  if (word !== undefined) {
    const message = `${name} is the text "${plain}", not a switch: hooks that test for an empty value take it as set`;
    return { severity: 'warning', code: 'unquoted', message, hint: `write ${word}, or "${plain}" to mean the text` };
  }
  if (typeof value !== 'number' || Number(plain) !== value || String(value) === plain) return undefined;
  const [message, hint] = isSecretName(field)
    ? [`${name} is read as a number that is written in another form`, 'put it in quotes']
    : [`${name} is read as the number ${value}`, `write "${plain}"`];
  return { severity: 'warning', code: 'unquoted', message, hint };
}

const MAX_NAMES = 6;

function knownFields(fields: readonly string[]): string {
  const page = 'docs/kurl-compatibility.md lists its settings';
  return fields.length > MAX_NAMES ? page : `its settings: ${fields.join(', ')}`;
}

interface KindCheck {
  readonly expected: string;
  readonly fits: (value: Json) => boolean;
  readonly hint: (value: Json) => string | undefined;
}

const noHint = (): undefined => undefined;
const isText = (value: Json): boolean => typeof value === 'string';
const isListOf =
  (fits: (value: Json) => boolean) =>
  (value: Json): boolean =>
    Array.isArray(value) && (value as readonly Json[]).every(fits);
const YAML_1_1_BOOLEANS: Readonly<Record<string, string>> = {
  yes: 'true',
  on: 'true',
  y: 'true',
  no: 'false',
  off: 'false',
  n: 'false',
};
const switchHint = (value: Json): string | undefined => {
  const word = typeof value === 'string' ? YAML_1_1_BOOLEANS[value.toLowerCase()] : undefined;
  return word === undefined ? unquoted(value) : `write ${word}`;
};
const unquoted = (value: Json): string | undefined => (isText(value) ? 'write it without quotes' : undefined);

const KINDS: Readonly<Record<SettingKind, KindCheck>> = {
  switch: { expected: 'true or false', fits: (value) => typeof value === 'boolean', hint: switchHint },
  integer: {
    expected: 'a whole number',
    fits: (value) => Number.isSafeInteger(value),
    hint: (value) => (typeof value === 'string' && /^\d+$/.test(value) ? unquoted(value) : undefined),
  },
  text: {
    expected: 'a string',
    fits: isText,
    hint: (value) => (typeof value === 'object' ? undefined : 'put it in quotes'),
  },
  texts: { expected: 'a list of strings', fits: isListOf(isText), hint: noHint },
  commands: { expected: 'a list of commands, each a list of strings', fits: isListOf(isListOf(isText)), hint: noHint },
  document: { expected: 'a map', fits: isJsonObject, hint: noHint },
};
