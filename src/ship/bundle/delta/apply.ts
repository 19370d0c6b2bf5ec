/** Recreates a whole bundle from a delta and its base. */
import { basename } from 'node:path';
import type { Cancellable, Reporting } from '../../../core/cancellable.ts';
import type { PlacedEntry } from '../../../formats/archive/entry.ts';
import type { Holder } from '../../../formats/archive/holder.ts';
import { recreateArchive } from '../../../formats/archive/recreate.ts';
import type { Digest } from '../../../core/digest.ts';
import { countBytes, reportStep } from '../../../core/events.ts';
import { writeFully } from '../../../platform/files/write-fully.ts';
import { writeWhole } from '../../../platform/files/write-whole.ts';
import type { Base } from './base.ts';
import { incompleteBase, missingIn, type Delta } from './delta-read.ts';
import { writeChunks } from '../write/write-queue.ts';

/** Returns the location of each payload of the bundle. */
export type HolderOf = (entry: PlacedEntry) => Holder;

interface FindOptions extends Cancellable {
  /** Prefix of the message if payloads are missing. */
  readonly doing: string;
}

/** Finds all payloads that are not in the delta; `NOT_FOUND` lists those that the base does not have. */
export async function findHolders(
  delta: Pick<Delta, 'full' | 'included'>,
  base: Pick<Base, 'find'>,
  { doing, signal }: FindOptions,
): Promise<HolderOf> {
  const holders = new Map<Digest, Holder>(delta.included);
  const missing: PlacedEntry[] = [];
  for (const entry of missingIn(delta)) {
    signal.throwIfAborted();
    const holder = await base.find(entry, { signal });
    if (holder === undefined) missing.push(entry);
    else holders.set(entry.digest, holder);
  }
  if (missing.length > 0) throw incompleteBase(doing, missing);
  return ({ digest, path }) => {
    const holder = holders.get(digest);
    if (holder === undefined) throw new Error(`${path} was not looked up`);
    return holder;
  };
}

interface ApplyOptions extends Reporting {
  /** Replace an existing file; otherwise it is `FILE_EXISTS`. */
  readonly force: boolean;
}

/**
 * Writes the whole bundle, bit for bit identical to the one that the delta was planned from, following its table of contents.
 * Verifies every payload. The file appears only when complete and synced.
 */
export async function applyDelta(
  { full }: Pick<Delta, 'full'>,
  holderOf: HolderOf,
  path: string,
  { force, report, signal }: ApplyOptions,
): Promise<void> {
  await reportStep(
    report,
    { id: path, title: basename(path), bytes: full.size },
    async () =>
      writeWhole(
        path,
        async (file) => {
          const size = await writeChunks(
            (allocate) => recreateArchive(full, holderOf, { signal, allocate }),
            async (piece, at) => writeFully(file, piece, at),
            { onBytes: countBytes(report, path) },
          );
          if (size !== full.size) throw new Error(`wrote ${size} bytes instead of the delta's ${full.size}`);
        },
        { force, size: full.size },
      ),
    () => 'written and verified',
  );
}
