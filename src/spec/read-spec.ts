/** Reads the map `spec` of an installer spec into add-ons and sections, with findings. Pure. */
import type { Diagnostic } from '../core/diagnostic.ts';
import { nearest } from '../core/nearest.ts';
import { isAddonName } from '../core/ref.ts';
import { checkSetting, checkUnquoted, type SettingFinding } from './check-settings.ts';
import { folderName, type Installer, type InstallerAddon, type InstallerSection } from './installer.ts';
import { ADDON_NAMES, kurlFields, SECTION_NAMES, settingOf, variableName } from './settings.ts';
import { isRequestable, VERSION_FORMS } from './version.ts';
import { isJsonObject, type Json, type JsonObject, type Path, type YamlText } from '../formats/yaml/yaml.ts';

export interface SpecFindings extends Pick<YamlText, 'placeOf' | 'plainText'> {
  readonly add: (severity: Diagnostic['severity'], code: string, path: Path, message: string, hint?: string) => void;
}

/** Leaves out add-ons with errors. `nulls`: keys whose value is null. */
export function readSpec(
  spec: JsonObject,
  nulls: readonly string[],
  findings: SpecFindings,
): Pick<Installer, 'addons' | 'sections'> {
  const addons: InstallerAddon[] = [];
  const sections: InstallerSection[] = [];
  const owners = new Map<string, string>();
  for (const [specName, content] of Object.entries(spec)) {
    const path = ['spec', specName];
    if (!isJsonObject(content)) {
      if (noteMisplaced(specName, findings)) continue;
      findings.add('error', 'addon', path, `${specName} must be a map`, `write "${specName}: {version: latest}"`);
      continue;
    }
    const settings = currentNames(specName, content, findings);
    const owner = owners.get(folderName(specName));
    if (owner !== undefined) findings.add('error', 'twice', path, `${specName} and ${owner} are the same add-on`);
    owners.set(folderName(specName), specName);
    if (SECTION_NAMES.includes(specName)) {
      checkSettings(specName, settings, findings);
      sections.push({ specName, settings });
      continue;
    }
    if (settings['version'] === undefined || settings['version'] === '') {
      noteWithoutVersion(specName, settings, findings);
      sections.push({ specName, settings });
      continue;
    }
    const addon = readAddon(specName, settings, findings);
    if (addon !== undefined) addons.push(addon);
  }
  for (const specName of nulls) {
    if (!SECTION_NAMES.includes(specName) && !noteMisplaced(specName, findings))
      noteWithoutVersion(specName, {}, findings);
  }
  findSharedVariables([...addons, ...sections], findings);
  return { addons, sections };
}

/** Two settings with one variable, of which the last would win. kURL's own settings share some on purpose. */
function findSharedVariables(parts: readonly InstallerSection[], findings: SpecFindings): void {
  const owners = new Map<string, { readonly name: string; readonly known: boolean }>();
  for (const { specName, settings } of parts) {
    for (const field of new Set(['version', ...Object.keys(settings)])) {
      const [name, variable] = [`${specName}.${field}`, variableName(specName, field)];
      const known = settingOf(specName, field) !== undefined;
      const owner = variable === undefined ? undefined : owners.get(variable);
      if (owner !== undefined && !(owner.known && known)) {
        const message = `${owner.name} and ${name} would be the same variable ${variable}`;
        findings.add('error', 'twice', ['spec', specName, field], message, 'rename one of them');
      }
      if (variable !== undefined) owners.set(variable, { name, known });
    }
  }
}

function currentNames(specName: string, content: JsonObject, findings: SpecFindings): JsonObject {
  const { settings, renamed } = withNewNames(specName, content);
  for (const [old, field] of renamed) {
    const path = ['spec', specName, old];
    findings.add('warning', 'old-name', path, `${specName}.${old} is an old name: it is read as ${field}`);
  }
  return settings;
}

function checkSettings(specName: string, settings: JsonObject, findings: SpecFindings): void {
  const taken: string[] = [];
  for (const [field, value] of Object.entries(settings)) {
    const path = ['spec', specName, field];
    const wrong = checkSetting(specName, field, value, taken) ?? unquoted(specName, field, { value, path, findings });
    if (wrong !== undefined) findings.add(wrong.severity, wrong.code, path, wrong.message, wrong.hint);
    taken.push(field);
  }
}

interface Written {
  readonly value: Json;
  readonly path: Path;
  readonly findings: SpecFindings;
}

/** The first finding about a value, or about the items of a list, which become one variable. */
function unquoted(specName: string, field: string, { value, path, findings }: Written): SettingFinding | undefined {
  if (!Array.isArray(value)) return checkUnquoted(specName, field, value, findings.plainText(path));
  const items = (value as readonly Json[]).map((item, at) =>
    checkUnquoted(specName, field, item, findings.plainText([...path, at])),
  );
  return items.find((one) => one !== undefined);
}

function readAddon(specName: string, content: JsonObject, findings: SpecFindings): InstallerAddon | undefined {
  const name = folderName(specName);
  const path = ['spec', specName];
  if (!checkAddonName(specName, findings)) return undefined;
  noteNearName(specName, findings);
  const { version, s3Override, ...settings } = content;
  checkSettings(specName, settings, findings);
  const requested = readVersion(specName, version, findings);
  const override = readOverride(specName, s3Override, findings);
  if (requested === undefined) return undefined;
  const places = new Map(Object.keys(content).map((field) => [field, findings.placeOf([...path, field])]));
  return { specName, name, requested, settings, s3Override: override, place: findings.placeOf(path), places };
}

/** Warns about a setting one level too high, which kURL silently ignores. */
function noteMisplaced(specName: string, findings: SpecFindings): boolean {
  const owner = [...SECTION_NAMES, ...ADDON_NAMES].find((name) => kurlFields(name).includes(specName));
  if (owner === undefined || ADDON_NAMES.includes(specName)) return false;
  const message = `"${specName}" is not an add-on: it is ignored`;
  findings.add(
    'warning',
    'misplaced',
    ['spec', specName],
    message,
    `it is a setting of ${owner}: move it under that key`,
  );
  return true;
}

/**
 * One of kURL's add-ons with other settings, or with an empty version, is not installed in kURL either, and its settings still
 * become variables. Any other is a mistake, such as a version that is commented out.
 */
function noteWithoutVersion(specName: string, settings: JsonObject, findings: SpecFindings): void {
  const path = ['spec', specName, ...('version' in settings ? ['version'] : [])];
  if (!checkAddonName(specName, findings)) return;
  checkSettings(specName, settings, findings);
  const near = 'version' in settings ? undefined : nearest('version', Object.keys(settings));
  if (near !== undefined) {
    findings.add('error', 'version', path, `${specName} has no version`, `is "${near}" the version?`);
    return;
  }
  const hint = 'to install it, write an exact version, "latest", "1.2.x" or "channel:stable"';
  const meant = 'version' in settings || (ADDON_NAMES.includes(specName) && Object.keys(settings).length > 0);
  if (!meant) {
    findings.add('error', 'version', path, `${specName} has no version`, `${hint}; to leave it out, remove the key`);
    return;
  }
  const part =
    'version' in settings ? '' : '; merged over a spec that has one (installer-spec-file=FILE), it keeps that version';
  findings.add('warning', 'version', path, `${specName} has no version: it is not installed`, `${hint}${part}`);
}

function checkAddonName(specName: string, findings: SpecFindings): boolean {
  if (/^[A-Za-z][A-Za-z0-9_-]*$/.test(specName) && isAddonName(folderName(specName))) return true;
  findings.add('error', 'name', ['spec', specName], `"${specName.slice(0, 60)}" is not the name of an add-on`);
  return false;
}

/** Code of the guess that a name is misspelt. Only packages tell whether it is. */
export const UNKNOWN_ADDON = 'unknown-addon';

/** Warns about an unknown add-on only if its name is close to one of kURL's. */
function noteNearName(specName: string, findings: SpecFindings): void {
  const known = [...ADDON_NAMES, ...SECTION_NAMES];
  if (known.some((one) => folderName(one) === folderName(specName))) return;
  const near = nearest(specName, known);
  if (near === undefined) return;
  const message = `"${specName}" is not one of kURL's add-ons`;
  findings.add('warning', UNKNOWN_ADDON, ['spec', specName], message, `did you mean "${near}"?`);
}

function readOverride(specName: string, s3Override: Json | undefined, findings: SpecFindings): string | undefined {
  if (s3Override === undefined || s3Override === '') return undefined;
  if (typeof s3Override === 'string' && /^(?:https?|s3):\/\/\S+$/i.test(s3Override)) return s3Override;
  const message = `${specName}: s3Override must be the URL of a package, or s3://bucket/key`;
  findings.add('error', 's3-override', ['spec', specName, 's3Override'], message);
  return undefined;
}

function readVersion(specName: string, version: Json | undefined, findings: SpecFindings): string | undefined {
  const wrong = (message: string, hint?: string): undefined => {
    findings.add('error', 'version', ['spec', specName, 'version'], message, hint);
  };
  if (typeof version === 'number') {
    return wrong(`${specName}: the version is read as the number ${version}`, 'put it in quotes');
  }
  if (typeof version === 'string' && /^__\w+__$/.test(version)) {
    return wrong(
      `${specName}: ${version} is a placeholder that tests replace with a version`,
      'write the version itself',
    );
  }
  if (typeof version !== 'string' || !isRequestable(version)) return wrong(`${specName}: not a version`, VERSION_FORMS);
  return version;
}

interface NewName {
  readonly field: string;
  readonly value: (old: Json) => Json;
}

const same = (old: Json): Json => old;

const OLD_NAMES: Readonly<Record<string, NewName>> = {
  'fluentd.efkStack': { field: 'fullEFKStack', value: same },
  'rook.cephPoolReplicas': { field: 'cephReplicaCount', value: same },
  'rook.storageClass': { field: 'storageClassName', value: same },
  'weave.encryptNetwork': { field: 'isEncryptionDisabled', value: (old) => (typeof old === 'boolean' ? !old : old) },
  'weave.IPAllocRange': { field: 'podCidrRange', value: same },
};

export interface Renamed {
  readonly settings: JsonObject;
  /** Old and new names of the fields that were renamed. */
  readonly renamed: readonly (readonly [old: string, field: string])[];
}

/** A field with an old name replaces an existing one with the new name. */
function withNewNames(specName: string, settings: JsonObject): Renamed {
  const renamed: [string, string][] = [];
  const out: Record<string, Json> = { ...settings };
  for (const [old, value] of Object.entries(settings)) {
    const name = `${specName}.${old}`;
    const successor = Object.hasOwn(OLD_NAMES, name) ? OLD_NAMES[name] : undefined;
    if (successor === undefined) continue;
    Reflect.deleteProperty(out, old);
    out[successor.field] = successor.value(value);
    renamed.push([old, successor.field]);
  }
  if (specName === 'collectd' && settings['version'] === '0.0.1') out['version'] = 'v5';
  return { settings: out, renamed };
}
