/** Describes a package or a bundle from its first entry and its table of contents. */
import { resolve } from 'node:path';
import { readDelta } from '../ship/bundle/delta/delta-read.ts';
import type { DeltaJson } from '../core/bundle.ts';
import type { Digest } from '../core/digest.ts';
import { ADDON_JSON, DELTA_CONTENTS, OMITTED_JSON, ownerOf, prefixOf } from '../core/layout.ts';
import { parseAddonJson, refOf, type AddonJson } from '../core/package.ts';
import type { ArchiveIndex, PlacedEntry } from '../formats/archive/entry.ts';
import { findEntry, readFile, readIndex } from '../formats/archive/read.ts';
import { openArchive } from '../ship/bundle/open-archive.ts';
import { INSPECT } from '../requests/archive.ts';
import { useCase } from '../core/request.ts';

export interface Inspected {
  readonly path: string;
  readonly size: number;
  /** Digest of the table of contents. */
  readonly digest: Digest;
  /** For a delta, only those whose addon.json is in it. */
  readonly packages: readonly InspectedPackage[];
  /** The bundle that a delta creates. */
  readonly delta?: DeltaJson | undefined;
  /** With `files`. */
  readonly files?: readonly PlacedEntry[];
}

/** Folders of operating systems that a bundle omits, and their unpacked bytes. */
interface LeftOut {
  readonly folders: readonly string[];
  readonly bytes: number;
}

export interface InspectedPackage extends AddonJson {
  readonly omitted?: LeftOut;
}

const DOCUMENT_LIMIT = 32 << 20;

/** Does not read payloads. */
export const inspect = useCase(INSPECT, async (request, { cwd, signal }): Promise<Inspected> => {
  const { path, files = false } = request;
  await using source = await openArchive(resolve(cwd, path), { signal, shown: path });
  const index = await readIndex(source, { signal });
  const delta = findEntry(index, DELTA_CONTENTS) === undefined ? undefined : await readDelta(source, index, { signal });
  const whole = delta?.full ?? index;
  const packages: InspectedPackage[] = [];
  for (const { path: name } of index.entries) {
    const owner = ownerOf(name);
    if (owner === undefined || name !== prefixOf(owner) + ADDON_JSON) continue;
    const entry = findEntry(index, name);
    if (entry === undefined) continue;
    const text = Buffer.from(await readFile(source, entry, { limit: DOCUMENT_LIMIT, signal })).toString();
    const addon = parseAddonJson(text, `${path}: ${name}`);
    const isWhole = findEntry(whole, prefixOf(owner) + OMITTED_JSON) === undefined;
    packages.push(isWhole ? addon : { ...addon, omitted: omittedFrom(whole, addon) });
  }
  const result = { path, size: index.size, digest: index.tocDigest, packages, delta: delta?.bundle.delta };
  return files ? { ...result, files: index.entries } : result;
});

/** Determined from present files, not from the list of omitted ones: a delta may not contain that list. */
function omittedFrom({ entries }: Pick<ArchiveIndex, 'entries'>, { os, unpacked, ...addon }: AddonJson): LeftOut {
  const prefix = prefixOf(refOf(addon));
  const files = entries.filter(({ path }) => path.startsWith(prefix));
  const present = files.filter(({ path }) => ![ADDON_JSON, OMITTED_JSON].includes(path.slice(prefix.length)));
  const bytes = present.reduce((sum, { size }) => sum + size, 0);
  return {
    folders: os.filter((folder) => !present.some(({ path }) => path.startsWith(`${prefix}${folder}/`))),
    bytes: Math.max(0, unpacked.files + unpacked.images - bytes),
  };
}
