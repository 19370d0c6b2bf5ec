/** Merges a site's overlay into a base spec. Pure. */
import { stringify } from 'yaml';
import { folderName } from './installer.ts';
import { isJsonObject, readJsonText, type Json, type JsonObject, type Path } from '../formats/yaml/yaml.ts';

export interface MergedInstaller {
  readonly document: JsonObject;
  /** Conflicts between the two. */
  readonly problems: readonly { readonly path: Path; readonly message: string }[];
}

type Complain = (path: Path, message: string) => void;

/**
 * Merges the two documents, with `metadata.name` set to `merged`: maps are merged, and other overlay values replace those of
 * the base. A null in the overlay keeps the base's value, since readers drop nulls. `docker.daemonConfig` is merged as JSON.
 * Names of add-ons and of their settings are compared without case, and keep the base's spelling.
 */
export function mergeInstallers(base: JsonObject, overlay: JsonObject): MergedInstaller {
  const problems: { path: Path; message: string }[] = [];
  for (const key of ['apiVersion', 'kind']) {
    if (base[key] === overlay[key]) continue;
    const message = `the overlay has ${key} ${shown(overlay[key])}, the base has ${shown(base[key])}`;
    problems.push({ path: [key], message });
  }
  const merged = mergeMaps(base, overlay, [], (path, message) => problems.push({ path, message }));
  const metadata = isJsonObject(merged['metadata']) ? merged['metadata'] : {};
  return { document: { ...merged, metadata: { ...metadata, name: 'merged' } }, problems };
}

function shown(value: Json | undefined): string {
  return value === undefined ? 'none' : JSON.stringify(value).slice(0, 80);
}

function mergeMaps(base: JsonObject, overlay: JsonObject, path: Path, complain: Complain): JsonObject {
  const out = new Map(Object.entries(base));
  const keys = new Map([...out.keys()].map((key) => [comparable(key, path), key]));
  for (const [key, value] of Object.entries(overlay)) {
    const own = keys.get(comparable(key, path)) ?? key;
    out.set(own, mergeValues(out.get(own), value, [...path, own], complain));
  }
  return Object.fromEntries(out);
}

/** The form of a key for comparison. */
function comparable(key: string, path: Path): string {
  if (path[0] !== 'spec' || path.length > 2) return key;
  return path.length === 1 ? folderName(key) : key.toLowerCase();
}

function mergeValues(base: Json | undefined, overlay: Json, path: Path, complain: Complain): Json {
  if (base === undefined) return overlay;
  if (path.join('.') === 'spec.docker.daemonConfig') return mergeDaemonConfig(base, overlay, path, complain);
  return isJsonObject(base) && isJsonObject(overlay) ? mergeMaps(base, overlay, path, complain) : overlay;
}

function mergeDaemonConfig(base: Json, overlay: Json, path: Path, complain: Complain): Json {
  if (typeof base !== 'string' || typeof overlay !== 'string') return overlay;
  if (base.trim() === '' || overlay.trim() === '') return overlay.trim() === '' ? base : overlay;
  const [below, above] = [readJsonText(base), readJsonText(overlay)];
  if (!isJsonObject(below) || !isJsonObject(above)) {
    complain(path, `docker.daemonConfig of the ${isJsonObject(above) ? 'base' : 'overlay'} is not a JSON object`);
    return overlay;
  }
  return JSON.stringify(sorted(mergeMaps(below, above, path, complain)), undefined, 2);
}

function sorted(value: Json): Json {
  if (!isJsonObject(value)) return value;
  const keys = Object.keys(value).toSorted();
  return Object.fromEntries(keys.map((key) => [key, sorted(value[key] ?? '')]));
}

/** A document as YAML. */
export function installerYaml(document: JsonObject): string {
  return stringify(document, { lineWidth: 0 });
}
