/** Arguments of `--set` that no schema covers. Pure. */
import { argumentPlace, type Diagnostic } from '../core/diagnostic.ts';
import { isObject } from '../core/json.ts';
import { checkSetting } from './check-settings.ts';
import type { Installer } from './installer.ts';
import { SET_FORM } from './set.ts';
import { HOOK_TIMEOUT, settingOf, variableName } from './settings.ts';

/** A package that has the settings of an add-on. */
export interface SettingsOwner {
  /** Name and version, for messages. */
  readonly title: string;
  /** Undefined if it has none. */
  readonly schema: unknown;
}

/**
 * Findings about arguments of `--set` that neither kURL's names nor the schema of a package (by name of the add-on) covers: a
 * warning if kURL has a similar name or the key is one of kURL's own, and otherwise a remark that nothing has checked it.
 */
export function uncheckedSettings(
  installer: Installer,
  args: readonly string[],
  owners: ReadonlyMap<string, SettingsOwner>,
): readonly Diagnostic[] {
  return args.flatMap((arg): readonly Diagnostic[] => {
    const [, specName = '', field = ''] = SET_FORM.exec(arg) ?? [];
    const addon = installer.addons.find((one) => one.specName === specName);
    const owner = addon === undefined ? undefined : owners.get(addon.name);
    const isCovered = isObject(owner?.schema) || settingOf(specName, field) !== undefined || field === HOOK_TIMEOUT;
    if (field === '' || isCovered) return [];
    const place = argumentPlace(`--set ${specName}.${field}`);
    const found = checkSetting(specName, field, '', []);
    if (found !== undefined && found.severity !== 'info') return [{ ...found, code: `installer/${found.code}`, place }];
    if (owner === undefined) return [];
    const variable = variableName(specName, field);
    const message =
      `nothing has checked this setting, because ${owner.title} has no schema.json` +
      (variable === undefined ? '' : `; its hooks get it as ${variable}`);
    return [{ code: 'installer/unchecked-setting', severity: 'info', message, place }];
  });
}
