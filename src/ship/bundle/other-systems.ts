/** Omits folders of unneeded operating systems from packages. Pure. */
import type { ArchiveIndex, PlacedEntry } from '../../formats/archive/entry.ts';
import { OMITTED_JSON, prefixOf } from '../../core/layout.ts';
import { formatOmitted, osFolderOf } from '../../core/omitted.ts';
import type { AddonRef } from '../../core/ref.ts';
import type { RootFile } from '../../own/root-files.ts';

export interface KeptPart {
  readonly index: ArchiveIndex;
  readonly select: (entry: PlacedEntry) => boolean;
  /** A file in the package's folder of the bundle that lists the omitted files; empty if none are omitted. */
  readonly notes: readonly RootFile[];
  /** Omitted unpacked bytes. */
  readonly omitted: number;
}

/** Selects a package's files, without the folders of systems that are not in `kept`. */
export function keptPart(
  ref: AddonRef,
  index: ArchiveIndex,
  { kept, below = '' }: { readonly kept: readonly string[]; readonly below: string | undefined },
): KeptPart {
  const prefix = prefixOf(ref);
  const select = ({ path }: Pick<PlacedEntry, 'path'>): boolean => {
    const folder = osFolderOf(path.slice(prefix.length));
    return folder === undefined || kept.includes(folder);
  };
  const files = index.entries
    .filter((entry) => !select(entry))
    .map(({ path, mode, size, digest }) => ({ path: path.slice(prefix.length), mode, size, digest }));
  const data = Buffer.from(formatOmitted(files));
  const notes = files.length === 0 ? [] : [{ path: below + prefix + OMITTED_JSON, mode: 0o644, data } as const];
  return { index, select, notes, omitted: files.reduce((sum, { size }) => sum + size, 0) };
}
