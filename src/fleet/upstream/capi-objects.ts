/** What Cluster API keeps besides a Cluster: the Secret with its kubeconfig, its control plane and its infrastructure. Pure. */
import { Buffer } from 'node:buffer';
import type { Findings } from '../../cluster/channel/findings.ts';
import { fieldsOf, isObject } from '../../core/json.ts';
import type { Values } from '../rollout/fleet.ts';
import { KUBECONFIG_SUFFIX, rootsOf } from './capi-cluster.ts';

export class CapiObjects {
  /** By kind, namespace and name. */
  readonly #objects = new Map<string, Values>();
  /** Texts of kubeconfigs by the name of the cluster. */
  readonly #kubeconfigs = new Map<string, string>();
  readonly #used = new Set<Values>();

  add(object: Values): void {
    this.#objects.set(keyOf(object['kind'], object['metadata']), object);
  }

  /** A Secret without a kubeconfig is not needed. */
  addSecret(secret: Values, findings: Findings): void {
    const { metadata } = secret;
    const name = String(fieldsOf(metadata)['name']);
    if (!name.endsWith(KUBECONFIG_SUFFIX)) return;
    const text = secretText(secret, 'value');
    if (text === undefined)
      findings.error('kubeconfig', ['data'], `the Secret ${name} has no kubeconfig in data.value`);
    else this.#kubeconfigs.set(name.slice(0, -KUBECONFIG_SUFFIX.length), text);
  }

  /** A cluster that was completed has it. */
  isUsed(object: Values): boolean {
    return this.#used.has(object);
  }

  /** A cluster of Cluster API with what belongs to it. */
  complete<Cluster extends { readonly name: string; readonly object: Values }>(cluster: Cluster) {
    const { name, object } = cluster;
    const { metadata } = object;
    if (object['kind'] !== 'Cluster') return cluster;
    const roots = rootsOf(object['spec']).flatMap(({ root, reference }) => {
      const { namespace } = { namespace: 'default', ...(isObject(metadata) && metadata), ...reference } as Values;
      const one = this.#objects.get(keyOf(reference['kind'], { name: reference['name'], namespace }));
      if (one !== undefined) this.#used.add(one);
      return one === undefined ? [] : [[root, one] as const];
    });
    const secret = this.#kubeconfigs.get(name);
    return {
      ...cluster,
      ...(secret !== undefined && { secret }),
      ...(roots.length > 0 && { roots: Object.fromEntries(roots) }),
    };
  }
}

function keyOf(kind: unknown, metadata: unknown): string {
  const { namespace = 'default', name } = fieldsOf(metadata);
  return `${String(kind)} ${String(namespace)}/${String(name)}`;
}

/** A text of a Secret as people write it. */
export function secretText({ data, stringData }: Values, key: string): string | undefined {
  const [plain, encoded] = [stringData, data].map((one) => fieldsOf(one)[key]);
  if (typeof plain === 'string') return plain;
  return typeof encoded === 'string' ? decodedBase64(encoded) : undefined;
}

/** A field of a Secret; undefined for what is not Base64. */
export function decodedBase64(text: string): string | undefined {
  const bare = text.replaceAll(/\s/g, '');
  const bytes = Buffer.from(bare, 'base64');
  return bytes.length > 0 && bytes.toString('base64') === bare ? bytes.toString('utf8') : undefined;
}
