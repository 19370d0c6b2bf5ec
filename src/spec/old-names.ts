/** What kURL called settings before (kurl.md 4.2, 1): read as what they are called now. Pure. */
import type { Json, JsonObject } from '../formats/yaml/yaml.ts';

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

/** A field of an old name takes the place of the one that has the new name already. */
export function withNewNames(specName: string, settings: JsonObject): Renamed {
  const renamed: [string, string][] = [];
  const out: Record<string, Json> = { ...settings };
  for (const [old, value] of Object.entries(settings)) {
    const name = `${specName}.${old}`;
    const found = Object.hasOwn(OLD_NAMES, name) ? OLD_NAMES[name] : undefined;
    if (found === undefined) continue;
    Reflect.deleteProperty(out, old);
    out[found.field] = found.value(value);
    renamed.push([old, found.field]);
  }
  if (specName === 'collectd' && settings['version'] === '0.0.1') out['version'] = 'v5';
  return { settings: out, renamed };
}
