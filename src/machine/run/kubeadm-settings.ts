/** What settings of the add-on kubernetes say to kubeadm, as far as a plan needs it. */
import { fieldsOf } from '../../core/json.ts';
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

/** What cannot be read is kubeadm's to refuse. */
function yamlOf(text: unknown): Readonly<Record<string, unknown>> {
  return typeof text === 'string' ? fieldsOf(readYaml('setting', text).value) : {};
}
