/** Settings of an installer spec against what kURL knows of them: names and types. Pure. */
import { nearest } from '../core/nearest.ts';
import { isSecretName } from './secret-settings.ts';
import { fieldsOf, HOOK_TIMEOUT, SECTION_NAMES, settingOf, variableName, type SettingKind } from './settings.ts';
import { isReservedVariable } from './variable-names.ts';
import { isJsonObject, type Json } from '../formats/yaml/yaml.ts';

/** What is wrong with a setting; the reader of the spec knows where it stands. */
export interface SettingFinding {
  readonly severity: 'error' | 'warning' | 'info';
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
}

/**
 * `taken`: the fields above it. A name that kURL does not know below one of its own keys is dropped by kURL without a
 * word; here it becomes a variable. That is a warning where it looks like a slip, and a remark where a package may well
 * have settings of its own.
 */
export function checkSetting(
  specName: string,
  field: string,
  value: Json,
  taken: readonly string[],
): SettingFinding | undefined {
  const name = `${specName}.${field}`;
  const variable = variableName(specName, field);
  // A setting becomes a shell variable; one that bash, the linker or this tool listens to must not come from a spec.
  if (variable !== undefined && isReservedVariable(variable)) {
    return {
      severity: 'error',
      code: 'variable',
      message: `the setting ${name} would become the variable ${variable}`,
    };
  }
  const known = settingOf(specName, field);
  const fields = fieldsOf(specName);
  if (known === undefined) {
    if (fields.length === 0 || field === HOOK_TIMEOUT) return undefined;
    const near = nearest(field, fields);
    return {
      severity: near !== undefined || SECTION_NAMES.includes(specName) ? 'warning' : 'info',
      code: 'unknown-setting',
      message: `kURL knows no setting "${field.slice(0, 60)}" of ${specName}`,
      hint: near === undefined ? knownFields(fields) : `did you mean "${near}"?`,
    };
  }
  const other = taken.find((one) => settingOf(specName, one) === known);
  if (other !== undefined) {
    return { severity: 'error', code: 'twice', message: `${name} and ${specName}.${other} are the same setting` };
  }
  const { wanted, fits, hint } = KINDS[known.kind];
  if (fits(value)) return undefined;
  const message = `${name} must be ${wanted}, and is ${isSecretName(field) ? 'something else' : described(value)}`;
  return { severity: 'error', code: 'type', message, hint: hint(value) };
}

const MOST_NAMES = 6;

function knownFields(fields: readonly string[]): string {
  const page = 'docs/kurl-compatibility.md lists those that it knows';
  return fields.length > MOST_NAMES ? page : `it knows: ${fields.join(', ')}`;
}

interface KindCheck {
  readonly wanted: string;
  readonly fits: (value: Json) => boolean;
  readonly hint: (value: Json) => string | undefined;
}

const noHint = (): undefined => undefined;
const isText = (value: Json): boolean => typeof value === 'string';
const isListOf =
  (fits: (value: Json) => boolean) =>
  (value: Json): boolean =>
    Array.isArray(value) && (value as readonly Json[]).every(fits);
const WORDS: Readonly<Record<string, string>> = {
  yes: 'true',
  on: 'true',
  y: 'true',
  no: 'false',
  off: 'false',
  n: 'false',
};
const switchHint = (value: Json): string | undefined => {
  const word = typeof value === 'string' ? WORDS[value.toLowerCase()] : undefined;
  return word === undefined ? unquoted(value) : `write ${word}`;
};
const unquoted = (value: Json): string | undefined => (isText(value) ? 'write it without quotes' : undefined);

const KINDS: Readonly<Record<SettingKind, KindCheck>> = {
  switch: { wanted: 'true or false', fits: (value) => typeof value === 'boolean', hint: switchHint },
  integer: {
    wanted: 'a whole number',
    fits: (value) => Number.isSafeInteger(value),
    hint: (value) => (typeof value === 'string' && /^\d+$/.test(value) ? unquoted(value) : undefined),
  },
  text: {
    wanted: 'a text',
    fits: isText,
    hint: (value) => (typeof value === 'object' ? undefined : 'put it in quotes'),
  },
  texts: { wanted: 'a list of texts', fits: isListOf(isText), hint: noHint },
  commands: { wanted: 'a list of commands, each a list of words', fits: isListOf(isListOf(isText)), hint: noHint },
  document: { wanted: 'a map', fits: isJsonObject, hint: noHint },
};

function described(value: Json): string {
  if (typeof value === 'string') return 'a text';
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'a map';
  return `the ${typeof value === 'number' ? 'number ' : 'switch '}${value}`;
}
