/** Settings given on the command line, on top of a spec. Pure. */
import { CurlewError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { Installer } from './installer.ts';
import type { Json } from './yaml.ts';

/**
 * The spec with each `name.field=value` in it; `name` as the spec writes it. `true`, `false` and whole numbers are such,
 * all else is text. A name that the spec does not have, or a word of another form, is `USAGE`.
 */
export function withSettings(installer: Installer, words: readonly string[]): Installer {
  return words.reduce(withSetting, installer);
}

function withSetting(installer: Installer, word: string): Installer {
  const [, name = '', field = '', text = ''] = /^([A-Za-z0-9-]+)\.([A-Za-z0-9]+)=(.*)$/s.exec(word) ?? [];
  if (field === '' || field === 'version' || field === 's3Override') {
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
      hint: near === undefined ? undefined : `did you mean ${near}?`,
    });
  }
  const change = <One extends { readonly specName: string; readonly settings: Installer['addons'][0]['settings'] }>(
    one: One,
  ): One => (one.specName === name ? { ...one, settings: { ...one.settings, [field]: valueOf(text) } } : one);
  return { ...installer, addons: installer.addons.map(change), sections: installer.sections.map(change) };
}

function valueOf(text: string): Json {
  if (text === 'true' || text === 'false') return text === 'true';
  return /^(?:0|-?[1-9]\d{0,14})$/.test(text) ? Number(text) : text;
}
