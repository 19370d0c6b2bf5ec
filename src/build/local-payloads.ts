/**
 * Existing packages are the cache: an index from the digest of a payload to its file and offset. Reading it takes two small
 * reads per package, so it is built only if something must be fetched.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cancellable } from '../core/cancellable.ts';
import type { PlacedEntry } from '../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../formats/archive/read.ts';
import type { Digest } from '../core/digest.ts';
import { mapLimited } from '../platform/limit/each.ts';
import { CurlewError, unless } from '../core/errors.ts';

export interface LocalPayload {
  readonly path: string;
  readonly entry: PlacedEntry;
}

export type LocalPayloads = ReadonlyMap<Digest, LocalPayload>;

/** Smaller payloads can be fetched as fast as they can be looked up. */
const MIN_SIZE = 4096;

/** Indexes the finished packages of a folder. Skips damaged packages and other files. */
export async function findLocalPayloads(folder: string, { signal }: Cancellable): Promise<LocalPayloads> {
  const names = (await unless(['ENOENT'], readdir(folder))) ?? [];
  const packages = names.filter((name) => name.endsWith('.tar.gz') && !name.startsWith('.')).toSorted();
  const indexes = await mapLimited(packages, async (name) => payloadsOf(join(folder, name), signal), {
    width: 8,
    signal,
  });
  const localPayloads = new Map<Digest, LocalPayload>();
  for (const [at, entries] of indexes.entries()) {
    const path = join(folder, packages[at] ?? '');
    for (const entry of entries) localPayloads.set(entry.digest, { path, entry });
  }
  return localPayloads;
}

async function payloadsOf(path: string, signal: AbortSignal): Promise<readonly PlacedEntry[]> {
  try {
    await using source = await openFileSource(path);
    const { entries } = await readIndex(source, { signal });
    return entries.filter(({ packed, size }) => packed > 0 && size >= MIN_SIZE);
  } catch (error) {
    if (error instanceof CurlewError) return [];
    throw error;
  }
}
