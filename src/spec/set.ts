/** Applies settings from the command line to a spec. Pure. */
import { argumentPlace, type Place } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Installer, InstallerAddon } from './installer.ts';
import { settingOf, type SettingKind } from './settings.ts';
import type { Json } from '../formats/yaml/yaml.ts';

/**
 * Applies each `name.field=value` to the spec; `name` is spelled as in the spec. A value is parsed by the type that kURL gives
 * the setting; for other settings, `true`, `false` and whole numbers are parsed, and everything else is text. `USAGE` for a
 * name that the spec does not have, another form, and a value of the wrong type.
 */
export function withSettings(installer: Installer, args: readonly string[]): Installer {
  return args.reduce(withSetting, installer);
}

/** Name, field and value of an argument. */
export const SET_FORM = /^([A-Za-z0-9-]+)\.([A-Za-z0-9]+)=(.*)$/s;

function withSetting(installer: Installer, arg: string): Installer {
  const [, name = '', field = '', text = ''] = SET_FORM.exec(arg) ?? [];
  if (field === 'version' || field === 's3Override') {
    throw new CurlewError('USAGE', `--set ${name}.${field}: it selects a package and is not a setting`, {
      hint: 'write it into the spec or an overlay: installer-spec-file=FILE',
    });
  }
  if (field === '') {
    // The value may be a secret.
    const shown = JSON.stringify((arg.split('=', 1)[0] ?? '').slice(0, 80));
    throw new CurlewError('USAGE', `--set ${shown}: not a setting`, { hint: 'write --set name.field=value' });
  }
  const all = [...installer.addons, ...installer.sections];
  if (!all.some(({ specName }) => specName === name)) {
    const near = nearest(
      name,
      all.map(({ specName }) => specName),
    );
    throw new CurlewError('USAGE', `--set ${name}.${field}: the spec has no ${name}`, {
      hint: near === undefined ? `it has: ${all.map(({ specName }) => specName).join(', ')}` : `did you mean ${near}?`,
    });
  }
  const value = settingValue(settingOf(name, field)?.kind, text);
  if ('wrong' in value) throw new CurlewError('USAGE', `--set ${name}.${field}: it must be ${value.wrong}`);
  return withField(installer, {
    specName: name,
    field,
    value: value.value,
    place: argumentPlace(`--set ${name}.${field}`),
  });
}

export interface GivenField {
  /** The add-on or section, as written in the spec. */
  readonly specName: string;
  readonly field: string;
  readonly value: Json;
  /** The argument that sets it; absent for generated values. */
  readonly place?: Place;
}

/** Sets a field, and replaces one of the same name regardless of case; adds a section if the spec does not have the add-on. */
export function withField(installer: Installer, { specName, field, value, place }: GivenField): Installer {
  type Part = Pick<InstallerAddon, 'specName' | 'settings' | 'places'>;
  const change = <One extends Part>(one: One): One => {
    if (one.specName !== specName) return one;
    const others = Object.entries(one.settings).filter(([key]) => key.toLowerCase() !== field.toLowerCase());
    const settings = { ...Object.fromEntries(others), [field]: value };
    if (one.places === undefined) return { ...one, settings };
    const places = new Map([...one.places].filter(([key]) => key.toLowerCase() !== field.toLowerCase()));
    return { ...one, settings, places: place === undefined ? places : places.set(field, place) };
  };
  const parts: readonly Part[] = [...installer.addons, ...installer.sections];
  const known = parts.some((part) => part.specName === specName);
  const sections = known ? installer.sections : [...installer.sections, { specName, settings: {} }];
  return { ...installer, addons: installer.addons.map(change), sections: sections.map(change) };
}

const WHOLE = /^(?:0|-?[1-9]\d{0,14})$/;

/** Parses text as the value of a setting of this kind; returns what was expected if it is wrong. */
export function settingValue(
  kind: SettingKind | undefined,
  text: string,
): { readonly value: Json } | { readonly wrong: string } {
  const isSwitch = text === 'true' || text === 'false';
  if (kind === undefined) {
    if (isSwitch) return { value: text === 'true' };
    return { value: WHOLE.test(text) ? Number(text) : text };
  }
  if (kind === 'text') return { value: text };
  if (kind === 'switch') return isSwitch ? { value: text === 'true' } : { wrong: 'true or false' };
  if (kind === 'integer') return WHOLE.test(text) ? { value: Number(text) } : { wrong: 'a whole number' };
  if (kind === 'texts') return { value: text === '' ? [] : text.split(',') };
  return { wrong: 'written into the spec: it is not a plain value' };
}
