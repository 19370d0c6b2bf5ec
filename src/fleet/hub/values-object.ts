/** Values of an add-on that are in a Secret or a ConfigMap of the hub: its objects have only their digest. Pure. */
import type { HubValues } from '../../cluster/channel/channel.ts';
import { canonicalJson, digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import { CLUSTER_NAME, MAX_CLUSTERS } from '../upstream/kinds.ts';
import type { ValuesPlace } from './content-source.ts';
import type { Live } from './observe.ts';
import { textIn } from './push.ts';

/** What is known of values without keeping them: of all, and of each cluster if each has its own. */
export interface ValuesDigest {
  readonly digest: string;
  /** A digest, or why a cluster has none. */
  readonly byCluster?: ReadonlyMap<string, string | CurlewError>;
}

/** `title` is for messages. Throws `CLUSTER_FAILED` for what are no values, except of single clusters. */
export function valuesDigest(object: Live, { key, perCluster = false }: ValuesPlace, title: string): ValuesDigest {
  if (!perCluster) return { digest: valuesIn(object, key, title).digest };
  const end = keyOn('', key);
  const keys = Object.keys(isObject(object['data']) ? object['data'] : {}).filter((name) => name.endsWith(end));
  const names = keys.map((name) => name.slice(0, -end.length)).filter((name) => CLUSTER_NAME.test(name));
  // All texts are read at once, in which time nothing renews the Lease of the controller.
  if (names.length > MAX_CLUSTERS) {
    const found = `${title} has values of ${names.length} clusters in keys CLUSTER${end}`;
    throw new CurlewError('CLUSTER_FAILED', `${found}, and at most ${MAX_CLUSTERS} may have some`);
  }
  const byCluster = new Map(names.toSorted().map((name) => [name, digestIn(object, keyOn(name, key), title)] as const));
  const all = [...byCluster].map(([name, one]) => [name, typeof one === 'string' ? one : one.message]);
  return { digest: digestOf(canonicalJson(all)), byCluster };
}

/** The key of the values of one cluster. */
export function keyOn(cluster: string, key = 'values.yaml'): string {
  return `${cluster}.${key}`;
}

function digestIn(object: Live, key: string, title: string): string | CurlewError {
  try {
    return valuesIn(object, key, title).digest;
  } catch (error) {
    if (error instanceof CurlewError) return error;
    throw error;
  }
}

/** Its digest depends on its uid: whoever does not know that cannot try which values have this digest. `title` is for messages. */
export function valuesIn(object: Live, key = 'values.yaml', title: string): HubValues {
  const text = textIn(object, key, title);
  const { value, diagnostics } = readYaml(title, text, { kubernetes: () => true });
  if (isObject(value)) return { digest: digestOf(`${object.metadata.uid} ${text}`), values: value };
  // What the parser says may quote the text.
  const [{ place } = { place: { line: 1 } }] = diagnostics;
  throw new CurlewError('CLUSTER_FAILED', `${title}: data.${key} is not a map in YAML: line ${place.line}`);
}
