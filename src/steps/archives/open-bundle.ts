/** Opens a bundle, whole or a delta; payloads that are not in a delta are read from the install folder. */
import { lstat } from 'node:fs/promises';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../../formats/archive/entry.ts';
import type { ReadEntry } from '../../formats/archive/extract.ts';
import { readHolder, type Holder } from '../../formats/archive/holder.ts';
import { readPayload } from '../../formats/archive/read.ts';
import { folderBase, type Base } from '../../ship/bundle/delta/base.ts';
import { incompleteBase, readDelta } from '../../ship/bundle/delta/delta-read.ts';
import type { Digest } from '../../core/digest.ts';

export interface OpenBundle {
  /** Index of the whole bundle. */
  readonly index: ArchiveIndex;
  readonly read: ReadEntry;
  /** Throws `NOT_FOUND`, with all missing payloads, if some of these cannot be read. */
  readonly requireAll: (entries: readonly PlacedEntry[]) => Promise<void>;
}

interface BundleOptions {
  /** The install folder, which need not exist. */
  readonly directory: string;
  readonly signal: AbortSignal;
}

export async function openBundle(
  source: RangeSource,
  index: ArchiveIndex,
  { directory, signal }: BundleOptions,
): Promise<OpenBundle> {
  const delta = await readDelta(source, index, { signal });
  if (delta === undefined) {
    return { index, read: (entry, options) => readPayload(source, entry, options), requireAll: async () => undefined };
  }
  const held = await holdersIn(directory, delta.included, { signal });
  const doing = `open ${source.name}, which is a delta, with what ${directory} has`;
  return {
    index: delta.full,
    async *read(entry, options) {
      if (entry.packed === 0) return;
      const holder = await held.find(entry);
      if (holder === undefined) throw incompleteBase(doing, [entry]);
      yield* readHolder(holder, entry, options);
    },
    requireAll: async (entries) => {
      const missing = new Map<Digest, PlacedEntry>();
      for (const entry of entries) {
        signal.throwIfAborted();
        // Hard links, too: their target may belong to a package that is not in `entries`.
        if (entry.size > 0 && (await held.find(entry)) === undefined) missing.set(entry.digest, entry);
      }
      if (missing.size > 0) throw incompleteBase(doing, [...missing.values()]);
    },
  };
}

/** A run that installs packages moves files: a file that is no longer in its place is searched again. */
async function holdersIn(
  directory: string,
  brought: ReadonlyMap<Digest, Holder>,
  { signal }: { readonly signal: AbortSignal },
): Promise<{ readonly find: (entry: PlacedEntry) => Promise<Holder | undefined> }> {
  let base = await folderBase(directory, { signal });
  const holders = new Map<Digest, { readonly holder: Holder; readonly mark: string | undefined; readonly in: Base }>();
  const search = async (entry: PlacedEntry): Promise<Holder | undefined> => {
    const holder = await base.find(entry, { signal });
    const mark = holder?.kind === 'file' ? await markOf(holder.path) : undefined;
    if (holder === undefined || mark === undefined) return undefined;
    holders.set(entry.digest, { holder, mark, in: base });
    return holder;
  };
  return {
    find: async (entry) => {
      const own = brought.get(entry.digest);
      if (own !== undefined) return own;
      const known = holders.get(entry.digest);
      if (known === undefined) return search(entry);
      if (known.holder.kind !== 'file' || (await markOf(known.holder.path)) === known.mark) return known.holder;
      // Packages move as a whole: a new base found for one file is right for the others.
      const again = known.in === base ? undefined : await search(entry);
      if (again !== undefined) return again;
      base = await folderBase(directory, { signal });
      return search(entry);
    },
  };
}

/** Changes if the file is replaced or written to; undefined if it does not exist. */
async function markOf(path: string): Promise<string | undefined> {
  const stats = await lstat(path, { bigint: true }).catch(() => undefined);
  return stats === undefined ? undefined : [stats.dev, stats.ino, stats.size, stats.mtimeNs].join(' ');
}
