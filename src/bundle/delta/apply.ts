/** The whole bundle, made again where a delta and the place that it was made for meet. */
import { basename } from 'node:path';
import type { PlacedEntry } from '../../formats/archive/entry.ts';
import type { Holder } from '../../formats/archive/holder.ts';
import { recreateArchive } from '../../formats/archive/recreate.ts';
import type { Digest } from '../../core/digest.ts';
import { reportStep, type Report } from '../../core/events.ts';
import { writeFully } from '../../platform/files/write-fully.ts';
import { writeWhole } from '../../platform/files/write-whole.ts';
import type { Base } from './base.ts';
import { baseLacks, lackingIn, type Delta } from './delta-read.ts';
import { createWriteQueue, WRITES_AT_ONCE } from '../write/write-queue.ts';

/** Says where each payload of the bundle lies. */
export type HolderOf = (entry: PlacedEntry) => Holder;

interface FindOptions {
  /** Opens the message when something lacks. */
  readonly doing: string;
  readonly signal: AbortSignal;
}

/** Looks for all payloads that did not come with the delta; `NOT_FOUND`, with what lacks, when the base has not got all. */
export async function findHolders(
  delta: Pick<Delta, 'full' | 'brought'>,
  base: Pick<Base, 'find'>,
  { doing, signal }: FindOptions,
): Promise<HolderOf> {
  const found = new Map<Digest, Holder>(delta.brought);
  const missing: PlacedEntry[] = [];
  for (const entry of lackingIn(delta)) {
    signal.throwIfAborted();
    const holder = await base.find(entry, { signal });
    if (holder === undefined) missing.push(entry);
    else found.set(entry.digest, holder);
  }
  if (missing.length > 0) throw baseLacks(doing, missing);
  return ({ digest, path }) => {
    const holder = found.get(digest);
    if (holder === undefined) throw new Error(`nobody was asked for ${path}`);
    return holder;
  };
}

export interface ApplyOptions {
  /** Replace a file that is there; otherwise that is `FILE_EXISTS`. */
  readonly force: boolean;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Writes the whole bundle, bit for bit the one that the delta was planned from: its table of contents is the recipe, and
 * every payload is proved on its way. The file appears under its name only whole and synced.
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
          const writes = createWriteQueue(async (piece, at) => writeFully(file, piece, at), { atOnce: WRITES_AT_ONCE });
          let size = 0;
          try {
            for await (const chunk of recreateArchive(full, holderOf, { signal, allocate: writes.allocate })) {
              await writes.push(chunk);
              size += chunk.byteLength;
              report({ type: 'step-progress', id: path, bytes: size });
            }
            await writes.finish();
          } catch (error) {
            await writes.settle();
            throw error;
          }
          if (size !== full.size) throw new Error(`the delta says ${full.size} bytes, written were ${size}`);
        },
        { force, size: full.size },
      ),
    () => 'written and verified',
  );
}
