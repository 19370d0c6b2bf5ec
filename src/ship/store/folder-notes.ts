/**
 * Digest and metadata of a folder store's objects, kept as notes in a hidden tree next to the objects.
 * A note is matched to a file by size and mtime. Both are known before the file gets its name, so bytes and note become
 * visible in one step, and a file that was replaced by another program has no note.
 */
import type { BigIntStats } from 'node:fs';
import { stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import type { Digest } from '../../core/digest.ts';
import { atPath, CurlewError, errnoOf, isMissing } from '../../core/errors.ts';
import { digest, fits } from '../../core/schema.ts';
import { writeNew } from '../../platform/files/write-new.ts';
import { nameInside, openInside, removeInside } from './folder-inside.ts';
import { HIDDEN } from './key.ts';
import type { Metadata } from './store.ts';

export interface Note {
  readonly digest: Digest;
  readonly metadata: Metadata;
}

const NOTE_LIMIT = 64 << 10;
const MAX_ATTEMPTS = 100;

type Stamp = Pick<BigIntStats, 'size' | 'mtimeNs'>;

/** The folder of a key's notes, or of all. */
export function noteFolder(root: string, key = ''): string {
  return join(root, HIDDEN, 'notes', key);
}

function notePath(root: string, key: string, { size, mtimeNs }: Stamp): string {
  return join(noteFolder(root, key), `${size}-${mtimeNs}.json`);
}

const noteSchema = v.object({ digest, metadata: v.object({}) });

/** The note of the file with this stamp; undefined if it is missing or not readable. */
export async function readNote(root: string, key: string, stamp: Stamp): Promise<Note | undefined> {
  let value: unknown;
  try {
    const text = await readText(root, notePath(root, key, stamp));
    if (text === undefined) return undefined;
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError || isMissing(error)) return undefined;
    throw error;
  }
  if (!fits(noteSchema, value)) return undefined;
  const pairs = Object.entries(value.metadata).filter((pair): pair is [string, string] => typeof pair[1] === 'string');
  return { digest: value.digest, metadata: Object.fromEntries(pairs) };
}

async function readText(root: string, path: string): Promise<string | undefined> {
  await using file = await openInside(root, path);
  const stats = await file.stat().catch(atPath(path));
  return stats.isFile() && stats.size <= NOTE_LIMIT ? await file.readFile('utf8').catch(atPath(path)) : undefined;
}

/**
 * Writes the note of a partial file that is about to become `key`, and returns its stamp. If another file of the key has
 * the same stamp, the partial file gets a new mtime. Undefined if that is impossible because the partial file is a shared link.
 */
export async function writeNote(
  root: string,
  key: string,
  partial: { readonly path: string; readonly shared: boolean },
  note: Note,
): Promise<Stamp | undefined> {
  const text = JSON.stringify(note);
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    const stamp = await stat(partial.path, { bigint: true });
    const path = notePath(root, key, stamp);
    try {
      await nameInside(root, noteFolder(root, key), async () => writeNew(path, text, 0o644));
      return stamp;
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (JSON.stringify(await readNote(root, key, stamp)) === text) return stamp;
      if (partial.shared) return undefined;
      await utimes(partial.path, new Date(), Date.now() / 1000 + Math.random());
    }
  }
  throw new CurlewError('BUSY', `${key}: too many concurrent writers`);
}

/** Removes the note of one file of a key. */
export async function removeNote(root: string, key: string, stamp: Stamp): Promise<void> {
  await removeInside(root, notePath(root, key, stamp));
}
