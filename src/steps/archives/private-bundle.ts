/** Which files with a bundle, or with a part of it, are for their owner only: those whose spec has secrets. */
import { INSTALLER_LIMIT } from '../../core/bundle.ts';
import type { Cancellable } from '../../core/cancellable.ts';
import type { Context } from '../../core/context.ts';
import { ADDON_JSON, INSTALLER_YAML, KURL_FOLDER, ownerOf, prefixOf } from '../../core/layout.ts';
import { ADDON_JSON_LIMIT, parseAddonJson } from '../../core/package.ts';
import type { ArchiveIndex, RangeSource } from '../../formats/archive/entry.ts';
import { findEntry, readFile } from '../../formats/archive/read.ts';
import { secretsOfSpec, type AddonSchema } from '../../ship/bundle/open-packages.ts';
import { parseInstaller } from '../../spec/parse.ts';

export const ADD_ON_NODES = 'installer-spec-file=FILE of an install adds them on the node instead';

/** The mode of a file that contains a spec: only its owner may read secrets of these parts, which is said. */
export function modeFor(secrets: readonly string[], file: string, { report }: Pick<Context, 'report'>): number {
  if (secrets.length === 0) return 0o644;
  const text = `${file}: the spec has secrets (${secrets.join(', ')}), so only you can read this file, but everybody who gets it can; ${ADD_ON_NODES}`;
  report({ type: 'note', level: 'warning', text });
  return 0o600;
}

/** The parts with secrets of the spec in a bundle; none for a package. Reads only the spec and the schemas of its add-ons. */
export async function secretsOfBundle(
  source: RangeSource,
  index: ArchiveIndex,
  { signal }: Cancellable,
): Promise<readonly string[]> {
  const entry = findEntry(index, INSTALLER_YAML);
  if (entry === undefined) return [];
  const spec = await readFile(source, entry, { limit: INSTALLER_LIMIT, signal });
  const { readable } = parseInstaller(INSTALLER_YAML, Buffer.from(spec).toString());
  const schemas: AddonSchema[] = [];
  for (const one of index.entries) {
    const path = one.path.startsWith(KURL_FOLDER) ? one.path.slice(KURL_FOLDER.length) : one.path;
    const owner = path.endsWith(ADDON_JSON) ? ownerOf(path) : undefined;
    const addon = readable?.addons.find(({ name }) => name === owner?.name);
    if (owner === undefined || addon === undefined || path !== prefixOf(owner) + ADDON_JSON) continue;
    const text = Buffer.from(await readFile(source, one, { limit: ADDON_JSON_LIMIT, signal })).toString();
    schemas.push({ addon, schema: parseAddonJson(text, source.name).settings });
  }
  return secretsOfSpec(spec, schemas);
}
