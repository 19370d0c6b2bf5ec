/** Settings of add-ons, as far as a plan needs them: what they say to kubeadm, and which of them differ. */
import { canonicalJson, digestOf, hexOf } from '../../core/digest.ts';
import { fieldsOf } from '../../core/json.ts';
import type { MachineSettings } from '../cluster.ts';
import { mapProblem } from '../../formats/yaml/yaml-map.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';

/** The preflight errors of kubeadm that the settings let pass, in lower case: `swap`, `port-10250`, `all`. */
export function passedErrors(kubernetes: unknown, by: 'init' | 'join'): readonly string[] {
  const { initIgnorePreflightErrors: flag, initConfiguration, joinConfiguration } = fieldsOf(kubernetes);
  const own = fieldsOf(yamlOf(by === 'init' ? initConfiguration : joinConfiguration)['nodeRegistration']);
  const listed = own['ignorePreflightErrors'];
  const texts: readonly unknown[] = [
    ...(by === 'init' && typeof flag === 'string' ? flag.split(',') : []),
    ...(Array.isArray(listed) ? listed : []),
  ];
  return texts.flatMap((text) => (typeof text === 'string' ? text.trim().toLowerCase() : []));
}

export function maySwap(kubernetes: unknown): boolean {
  return yamlOf(fieldsOf(kubernetes)['kubeletConfiguration'])['failSwapOn'] === false;
}

/** Settings of kubernetes for one run, or for the moment at which a machine joins. The version has its own field in the file. */
const PASSING =
  /^(?:version|s3Override|nodeTaints|masterAddress|kubeadmToken|kubeadmTokenCAHash|certKey|controlPlane|HACluster|bootstrapToken(?:TTL)?|\w+IgnorePreflightErrors)$/;
const YAML = /^(?:init|join|cluster|kubelet|kubeProxy)Configuration$/;
const DIGITS = 16;

/** By path, and each field of kubeadm's YAML for itself. Digests, as settings may be secret. */
export function kubeadmSettingsOf(installer: Readonly<Record<string, unknown>>): MachineSettings {
  const found: Record<string, string> = {};
  const add = (path: string, value: unknown): void => {
    found[path] = hexOf(digestOf(canonicalJson([path, value]))).slice(0, DIGITS);
  };
  for (const [addon, settings] of Object.entries(installer)) {
    for (const [name, value] of Object.entries(fieldsOf(settings))) {
      const path = `${addon}.${name}`;
      if (addon !== 'kubernetes') add(path, value);
      else if (YAML.test(name)) for (const [field, part] of partsOf(name, value)) add(`${path}${field}`, part);
      else if (!PASSING.test(name)) add(path, value);
    }
  }
  return found;
}

/** The first of kubeadm's YAML that cannot be read, before any machine gets it. */
export function unreadableSetting(installer: Readonly<Record<string, unknown>>): string | undefined {
  for (const [name, value] of Object.entries(fieldsOf(installer['kubernetes']))) {
    if (!YAML.test(name)) continue;
    const problem = typeof value === 'string' ? mapProblem(value) : `write it as text: ${name}: |`;
    if (problem !== undefined)
      return `spec.installer.kubernetes.${name} must be a text that is a map in YAML: ${problem}`;
  }
  return undefined;
}

/** Fields that kubeadm only needs to make a machine a node do not count. */
function partsOf(name: string, value: unknown): readonly (readonly [field: string, part: unknown])[] {
  const fields = yamlOf(value);
  const isOnce = name === 'initConfiguration' || name === 'joinConfiguration';
  if (!isOnce) {
    const parts = Object.entries(fields).map(([field, part]) => [`.${field}`, part] as const);
    return parts.length === 0 && value !== '' ? [['', value]] : parts;
  }
  const { ignorePreflightErrors: _, ...node } = fieldsOf(fields['nodeRegistration']);
  return Object.entries(node).map(([field, part]) => [`.nodeRegistration.${field}`, part] as const);
}

function yamlOf(text: unknown): Readonly<Record<string, unknown>> {
  return typeof text === 'string' ? fieldsOf(readYaml('setting', text).value) : {};
}
