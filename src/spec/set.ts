/** Settings given on the command line, on top of a spec. Pure. */
import { wordPlace, type Place } from '../core/diagnostic.ts';
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Installer, InstallerAddon } from './installer.ts';
import { settingOf, type SettingKind } from './settings.ts';
import type { Json } from '../formats/yaml/yaml.ts';

/**
 * The spec with each `name.field=value` in it; `name` as the spec writes it. A value is read as what kURL knows the
 * setting to be; where it knows none, `true`, `false` and whole numbers are such and all else is text. A name that the
 * spec does not have, a word of another form and a value that does not fit are `USAGE`.
 */
export function withSettings(installer: Installer, words: readonly string[]): Installer {
  return words.reduce(withSetting, installer);
}

function withSetting(installer: Installer, word: string): Installer {
  const [, name = '', field = '', text = ''] = /^([A-Za-z0-9-]+)\.([A-Za-z0-9]+)=(.*)$/s.exec(word) ?? [];
  if (field === 'version' || field === 's3Override') {
    throw new CurlewError('USAGE', `--set ${name}.${field}: it chooses a package, and is not a setting`, {
      hint: 'write it into the spec, or into an overlay: installer-spec-file=FILE',
    });
  }
  if (field === '') {
    // What stands behind the sign may be a secret.
    const shown = JSON.stringify((word.split('=', 1)[0] ?? '').slice(0, 80));
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
    place: wordPlace(`--set ${name}.${field}`),
  });
}

export interface GivenField {
  /** The add-on or section, as specs write it. */
  readonly specName: string;
  readonly field: string;
  readonly value: Json;
  /** The word that says so; absent for what nobody has written. */
  readonly place?: Place;
}

/** The spec with this setting, in place of the one of that name whatever its case; in a section where there is no such add-on. */
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

/** A word as the value of a setting of this kind, or what it should be. */
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
  return { wrong: 'written into the spec: it is no plain value' };
}
