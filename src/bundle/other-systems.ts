/** Packages without the folders of operating systems that nobody at a site has. Pure. */
import type { ArchiveIndex, PlacedEntry } from '../archive/entry.ts';
import { KURL_FOLDER, OMITTED_JSON, ownerOf, prefixOf } from '../core/layout.ts';
import { formatOmitted, osFolderOf } from '../core/omitted.ts';
import type { OsId } from '../core/os.ts';
import type { AddonRef } from '../core/ref.ts';
import type { BundlePlan, RootFile } from './plan.ts';

export interface KeptPart {
  readonly index: ArchiveIndex;
  readonly select: (entry: PlacedEntry) => boolean;
  /** What says, in the package's folder of the bundle, which files were left out; empty when none were. */
  readonly notes: readonly RootFile[];
  /** Unpacked bytes that were left out. */
  readonly omitted: number;
}

/** What stays of a package: everything but the folders of systems that are not among `kept`. */
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

/** The systems that any package of the bundle has something for. */
export function systemsOfPlan({ bundle, splice }: BundlePlan): ReadonlySet<OsId> {
  const below = bundle.layout === 'kurl' ? KURL_FOLDER : '';
  const found = splice.index.entries.flatMap(({ path }) => {
    const owner = path.startsWith(below) ? ownerOf(path.slice(below.length)) : undefined;
    return owner === undefined ? [] : (osFolderOf(path.slice(below.length + prefixOf(owner).length)) ?? []);
  });
  return new Set(found);
}
