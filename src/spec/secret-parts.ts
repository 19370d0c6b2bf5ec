/** Which parts of a whole spec have secrets, so that a file with the spec must not be readable for everybody. Pure. */
import { isObject } from '../core/json.ts';
import { readYaml } from '../formats/yaml/yaml.ts';
import { withoutSecrets } from './secret-settings.ts';

/**
 * The keys of `spec`, and of its document, whose values have secrets: add-ons whether they are installed or not,
 * sections such as `kurl`, and keys that have no meaning. `schemaOf` has the schemas of packages by the name of their add-on in
 * the spec. A text that is not YAML is one part, `its text`.
 */
export function partsWithSecrets(text: string, schemaOf: ReadonlyMap<string, unknown>): readonly string[] {
  const { value: document } = readYaml('', text);
  if (!isObject(document)) return hasSecrets('its text', text, undefined) ? ['its text'] : [];
  const { spec, ...head } = document;
  const parts = [...Object.entries(isObject(spec) ? spec : { spec }), ...Object.entries(head)];
  return parts.filter(([name, value]) => hasSecrets(name, value, schemaOf.get(name))).map(([name]) => name);
}

/** A part that is not a map counts by its own name. */
function hasSecrets(name: string, value: unknown, schema: unknown): boolean {
  if (value === undefined) return false;
  return isObject(value) ? withoutSecrets(value, schema).hidden : withoutSecrets({ [name]: value }, undefined).hidden;
}
