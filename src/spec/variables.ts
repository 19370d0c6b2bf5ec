/**
 * Settings as shell variables, by kURL's rules. Values are plain text: the writer quotes them, so `$x` and backticks stay
 * text, unlike in kURL, which expands them.
 */
import { compareText } from '../core/ref.ts';
import type { Installer } from './installer.ts';
import { ORDER_ON_NODE } from './order.ts';
import { SETTINGS, variableName, type SettingKind } from './settings.ts';
import { upperSnake } from './variable-names.ts';
import type { Json } from '../formats/yaml/yaml.ts';

/** A variable that hooks get, as plain text. */
export type ShellVariable = readonly [name: string, value: string];

/**
 * Contains every variable that kURL creates from a spec, empty if unset: variables of the caller's environment must not count
 * as settings. Sorted by name.
 *
 * true is `1`, false and 0 are empty, lists of plain values are joined by commas; maps and lists of maps have no
 * variable. `versions` maps folder names to resolved versions.
 */
export function shellVariables(installer: Installer, versions: ReadonlyMap<string, string>): readonly ShellVariable[] {
  const out = new Map<string, string>(emptyVariables());
  for (const { specName, settings } of [...installer.sections, ...installer.addons]) {
    for (const [field, value] of Object.entries(settings)) {
      const name = variableName(specName, field);
      const text = valueText(value);
      if (name === undefined || text === undefined) continue;
      out.set(name, field.toLowerCase().endsWith('cidrrange') ? text.replace(/^\//, '') : text);
    }
  }
  for (const { specName, name, requested, s3Override } of installer.addons) {
    out.set(`${upperSnake(name)}_VERSION`, versions.get(name) ?? requested);
    const override = variableName(specName, 's3Override');
    if (s3Override !== undefined && override !== undefined) out.set(override, s3Override);
  }
  applySideEffects(installer, out);
  return sorted(out);
}

function sorted(variables: ReadonlyMap<string, string>): readonly ShellVariable[] {
  return [...variables].toSorted(([a], [b]) => compareText(a, b));
}

/**
 * The variables for hooks, sorted by name, including those that kURL's own scripts derive from settings before they call a
 * hook. A run of another version is resumed only with the same variables in the same order.
 */
export function hookVariables(installer: Installer, versions: ReadonlyMap<string, string>): readonly ShellVariable[] {
  const variables = new Map(shellVariables(installer, versions));
  // Not a separate setting: kURL uses the proxy of a spec for both (scripts/common/proxy.sh).
  variables.set('PROXY_HTTPS_ADDRESS', variables.get('PROXY_ADDRESS') ?? '');
  return sorted(variables);
}

const KINDS: ReadonlyMap<string, SettingKind> = new Map(
  SETTINGS.flatMap(({ variable, kind }) => (variable === undefined ? [] : [[variable, kind] as const])),
);
const SAFE = /^[\w.,:/@%+=-]*$/;

/**
 * Formats an assignment like kURL's yamltobash: text in double quotes, numbers and lists without. Escapes all expansions,
 * while kURL escapes only quotes.
 */
export function assignment(name: string, value: string): string {
  const kind = KINDS.get(name) ?? (/^\d+$/.test(value) ? 'integer' : 'text');
  const bare = value === '' || (kind !== 'text' && SAFE.test(value));
  return `${name}=${bare ? value : `"${value.replaceAll(/["$`\\]/g, '\\$&')}"`}`;
}

function emptyVariables(): readonly (readonly [string, string])[] {
  const ordered = ORDER_ON_NODE.flatMap((name) => [variableName(name, 'version'), variableName(name, 's3Override')]);
  const names = [...SETTINGS.map(({ variable }) => variable), ...ordered];
  return names.filter((name) => name !== undefined).map((name) => [name, ''] as const);
}

function valueText(value: Json): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? '1' : '';
  if (typeof value === 'number') return value === 0 ? '' : String(value);
  if (!Array.isArray(value)) return undefined;
  const parts = (value as readonly Json[]).map((item) => (typeof item === 'object' ? undefined : String(item)));
  return parts.includes(undefined) ? undefined : parts.join(',');
}

/** Effects of settings on the variables of other settings. */
function applySideEffects(installer: Installer, out: Map<string, string>): void {
  const isSet = (name: string): boolean => (out.get(name) ?? '') !== '';
  const settingOf = (requiredSpec: string, requiredField: string): Json | undefined => {
    const entry = [...installer.sections, ...installer.addons].find(({ specName }) => specName === requiredSpec);
    const fields = Object.entries(entry?.settings ?? {});
    return fields.find(([field]) => field.toLowerCase() === requiredField.toLowerCase())?.[1];
  };
  if (isSet('LOAD_BALANCER_ADDRESS')) out.set('HA_CLUSTER', '1');
  if (isSet('AIRGAP')) out.set('OFFLINE_DOCKER_INSTALL', '1');
  if (settingOf('docker', 'hardFailOnLoopback') === undefined) out.set('HARD_FAIL_ON_LOOPBACK', '1');
  out.set('NO_MASQ_LOCAL', settingOf('weave', 'noMasqLocal') === false ? '0' : '1');
  // kURL writes 1 here, but the add-on tests for 0, so the setting never took effect.
  out.set('ENCRYPT_NETWORK', settingOf('weave', 'isEncryptionDisabled') === true ? '0' : '');
  if (isSet('PRESERVE_FIREWALLD_CONFIG')) out.set('DISABLE_FIREWALLD', '');
  if (isSet('PRESERVE_SELINUX_CONFIG')) out.set('DISABLE_SELINUX', '');
  if (!isSet('KUBERNETES_CLUSTER_NAME')) out.set('KUBERNETES_CLUSTER_NAME', 'kubernetes');
}
