/** The choice of a visitor of the page, as the query of an address, and the installer spec that it means. Pure. */
import type { Catalog } from '../../../core/catalog.ts';
import { CurlewError } from '../../../core/errors.ts';
import { type Arch, isAddonName } from '../../../core/ref.ts';
import type { JsonObject } from '../../../formats/yaml/yaml.ts';
import { installerId } from '../../../spec/id.ts';
import { folderName } from '../../../spec/installer.ts';
import { installerYaml } from '../../../spec/merge.ts';
import { isSecretName } from '../../../spec/secret-settings.ts';
import { SECTION_NAMES, SETTINGS } from '../../../spec/settings.ts';
import { isRequestable } from '../../../spec/version.ts';
import { type KnownSpec, readSpecText } from '../installers.ts';
import { chosenPlace } from '../route.ts';

/**
 * Parts of a query: `flannel=0.28.7` is an add-on by its key in the spec, `flannel:mtu=1400` a setting, with `:text` or `:list`
 * (one item a line) after its name for values that are not numbers or booleans. Parameters of the page itself begin with `_`,
 * which no add-on's name does.
 */
export interface Choice {
  /** Undefined for the current one. */
  readonly release: string | undefined;
  readonly arch: Arch;
  /** Requested versions by key in the spec. */
  readonly versions: ReadonlyMap<string, string>;
  /** By key in the spec, also of sections such as `kurl`, then by name. */
  readonly settings: ReadonlyMap<string, ReadonlyMap<string, SettingValue>>;
}

/** A value that a form field can have. */
export type Plain = string | number | boolean;
export type SettingValue = Plain | readonly string[];

/** Limits of one choice: larger specs are files of the store. */
const MAX_ADDONS = 100;
const MAX_SETTINGS = 200;
const SETTING = /^([A-Za-z0-9._-]{1,100}):([A-Za-z][\w.-]{0,99})(?::(text|list))?$/;

/** Fields that every add-on has in a spec; none is a setting of its own. */
export const COMMON: readonly string[] = ['version', 's3Override'];

/** Settings that an address must not decide: where a package comes from, and what runs as root. */
function isReserved(specName: string, name: string): boolean {
  if (COMMON.includes(name)) return true;
  const kind = SETTINGS.find((one) => one.specName === specName && one.field === name)?.kind;
  return kind === 'commands' || kind === 'document';
}

/** True for a setting of a key of the spec that can be part of a query. */
export function isChoosable(specName: string, name: string): boolean {
  return SETTING.test(`x:${name}`) && !isSecretName(name) && !isReserved(specName, name);
}

/** The key of an add-on in a spec: `certManager` for `cert-manager`. */
export function specNameOf(name: string): string {
  return name.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Reads a query. `USAGE` for what a choice cannot have; settings of an add-on that is not chosen are left out. */
export function parseChoice(query: URLSearchParams): Choice {
  const versions = new Map<string, string>();
  const settings = new Map<string, Map<string, SettingValue>>();
  let count = 0;
  for (const [key, value] of query) {
    if (key.startsWith('_')) continue;
    const [, specName, name, kind] = SETTING.exec(key) ?? [];
    if (specName !== undefined && name !== undefined) {
      if (isSecretName(name)) throw refused(`${key}: a secret must not be part of an address`);
      if (isReserved(specName, name)) throw refused(`${key}: only an installer spec can have this setting`);
      const fields = settings.get(specName) ?? new Map<string, SettingValue>();
      settings.set(specName, fields);
      if (value === '') continue;
      fields.set(name, valueOf(value, kind));
      count += 1;
    } else if (!isAddonName(folderName(key))) throw refused(`${key.slice(0, 100)}: not the name of an add-on`);
    else if (value === '') versions.delete(key);
    else if (isRequestable(value)) versions.set(key, value);
    else throw refused(`${key}: ${value.slice(0, 100)} is not a version`);
  }
  for (const key of settings.keys()) if (!versions.has(key) && !SECTION_NAMES.includes(key)) settings.delete(key);
  if (versions.size > MAX_ADDONS) throw refused(`more than ${MAX_ADDONS} add-ons`);
  if (count > MAX_SETTINGS) throw refused(`more than ${MAX_SETTINGS} settings`);
  return { ...chosenPlace(query), versions, settings };
}

function refused(what: string): CurlewError {
  return new CurlewError('USAGE', `cannot read the choice in this address: ${what}`);
}

function valueOf(text: string, kind: string | undefined): SettingValue {
  const lines = text.replaceAll('\r\n', '\n');
  if (kind === 'list') return lines.split('\n').filter((line) => line !== '');
  if (kind === 'text') return lines;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/.test(text) ? Number(text) : lines;
}

/** A choice as a query without a question mark; the same choice has the same text. */
export function formatChoice({ release, arch, versions, settings }: Choice): string {
  const query = new URLSearchParams();
  if (release !== undefined) query.append('_release', release);
  if (arch !== 'amd64') query.append('_arch', arch);
  for (const [key, version] of versions) query.append(key, version);
  for (const [key, fields] of settings) for (const [name, value] of fields) query.append(...pairOf(key, name, value));
  return query.toString().replaceAll('%3A', ':');
}

function pairOf(key: string, name: string, value: SettingValue): [string, string] {
  if (typeof value === 'object') return [`${key}:${name}:list`, value.join('\n')];
  return [`${key}:${name}${typeof value === 'string' ? ':text' : ''}`, String(value)];
}

/** The choice with these add-ons, each in its newest version for the architecture. */
export function withAddons(choice: Choice, added: readonly string[], { addons }: Catalog): Choice {
  const versions = new Map(choice.versions);
  for (const name of added) {
    const offered = addons.find((one) => one.name === name)?.versions ?? [];
    const newest = offered.find(({ packages }) => packages[choice.arch] !== undefined);
    if (newest !== undefined && !versions.has(specNameOf(name))) versions.set(specNameOf(name), newest.version);
  }
  return { ...choice, versions };
}

/** The installer spec of a choice, and its id, which is also its name. */
export interface ChosenSpec {
  readonly id: string;
  readonly spec: KnownSpec;
}

/** The installer spec of a choice, named after its id. `SPEC_INVALID` for settings that no spec can have. */
export function specOfChoice({ versions, settings }: Choice): ChosenSpec {
  const keys = [...versions.keys(), ...[...settings].flatMap(([key, { size }]) => (size > 0 ? [key] : []))];
  const rows = [...new Set(keys)].map((key) => {
    const version = versions.get(key);
    return [key, { ...(version === undefined ? {} : { version }), ...Object.fromEntries(settings.get(key) ?? []) }];
  });
  const read = (metadata: JsonObject): KnownSpec => {
    const spec: JsonObject = Object.fromEntries(rows);
    const document = { apiVersion: 'cluster.kurl.sh/v1beta1', kind: 'Installer', metadata, spec };
    return readSpecText(Buffer.from(installerYaml(document)), 'installer.yaml');
  };
  const id = installerId(read({}).installer);
  return { id, spec: read({ name: id }) };
}
