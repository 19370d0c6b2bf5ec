/** Settings of collectors and analyzers: their types and values. Pure. */
import { isJsonObject, type Json, type JsonObject } from '../../formats/yaml/yaml.ts';

/** `!`: required. */
export type SettingForm = 'text' | 'text!' | 'whole' | 'whole!' | 'yesno' | 'texts' | 'textmap' | 'map';
export type SettingForms = Readonly<Record<string, SettingForm>>;

/** Values that were checked against their forms. */
export interface Settings {
  /** Undefined if it is not set or empty. */
  readonly text: (name: string) => string | undefined;
  readonly whole: (name: string) => number | undefined;
  readonly yes: (name: string) => boolean;
  readonly texts: (name: string) => readonly string[] | undefined;
  readonly textMap: (name: string) => Readonly<Record<string, string>> | undefined;
  readonly map: (name: string) => Settings | undefined;
}

export function checkSettingsOf(values: JsonObject): Settings {
  const own = (name: string): Json | undefined => (Object.hasOwn(values, name) ? values[name] : undefined);
  return {
    text: (name) => {
      const value = own(name);
      return typeof value === 'string' && value !== '' ? value : undefined;
    },
    whole: (name) => {
      const value = own(name);
      return typeof value === 'number' ? value : undefined;
    },
    yes: (name) => own(name) === true,
    texts: (name) => {
      const value = own(name);
      return isTextList(value) ? value : undefined;
    },
    textMap: (name) => {
      const value = own(name);
      return isTextMap(value) ? value : undefined;
    },
    map: (name) => {
      const value = own(name);
      return isJsonObject(value) ? checkSettingsOf(value) : undefined;
    },
  };
}

function isTextList(value: Json | undefined): value is readonly string[] {
  return Array.isArray(value) && (value as readonly Json[]).every((item) => typeof item === 'string');
}

function isTextMap(value: Json | undefined): value is Readonly<Record<string, string>> {
  return isJsonObject(value) && Object.values(value).every((item) => typeof item === 'string');
}

/** The problem of a value; undefined if it is valid. */
export function settingProblem(form: SettingForm, value: Json): string | undefined {
  switch (form) {
    case 'text':
    case 'text!':
      return typeof value === 'string' ? undefined : 'must be a string: put it in quotes';
    case 'whole':
    case 'whole!':
      return Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : 'must be a non-negative integer';
    case 'yesno':
      return typeof value === 'boolean' ? undefined : 'must be true or false';
    case 'texts':
      return isTextList(value) ? undefined : 'must be a list of strings';
    case 'textmap':
      return isTextMap(value) ? undefined : 'must be a map of strings';
    case 'map':
      return isJsonObject(value) ? undefined : 'must be a map';
  }
}
