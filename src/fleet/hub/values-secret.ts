/** Values of an add-on that are in a Secret of the hub: its objects have only their digest. Pure. */
import type { SecretValues } from '../../cluster/channel/channel.ts';
import { digestOf } from '../../core/digest.ts';
import { CurlewError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { readYaml } from '../../formats/yaml/yaml.ts';
import type { Live } from './observe.ts';
import { textIn } from './push.ts';

/** Its digest depends on its uid: whoever does not know that cannot try which values have this digest. `title` is for messages. */
export function valuesIn(secret: Live, key: string, title: string): SecretValues {
  const text = textIn(secret, key, title);
  const { value, diagnostics } = readYaml(title, text, { kubernetes: () => true });
  if (isObject(value)) return { digest: digestOf(`${secret.metadata.uid} ${text}`), values: value };
  // What the parser says may quote the text.
  const [{ place } = { place: { line: 1 } }] = diagnostics;
  throw new CurlewError('CLUSTER_FAILED', `${title}: data.${key} is not a map in YAML: line ${place.line}`);
}
