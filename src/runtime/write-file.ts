/** State files: whole under their name, or not at all. */
import { createReadStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '../files/sync-folder.ts';
import { CurlewError, errnoOf, fileError } from '../core/errors.ts';

/** Writes beside the file, syncs, renames, syncs the folder. Mode 0600. */
export async function writeStateFile(path: string, text: string): Promise<void> {
  const part = `${path}.part`;
  try {
    const file = await open(part, 'w', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(part, { force: true }).catch(() => undefined);
    throw fileError(`write ${path}`, error);
  }
}

/** The text of a file, or undefined when there is none. Larger than `limit` bytes is `FILE_UNUSABLE`. */
export async function readStateFile(path: string, limit: number): Promise<string | undefined> {
  try {
    const chunks: Buffer[] = [];
    let size = 0;
    // Counted while reading: a pipe or a device has no size to ask for.
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      size += chunk.byteLength;
      if (size > limit) throw new CurlewError('FILE_UNUSABLE', `read ${path}: larger than ${limit} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw fileError(`read ${path}`, error);
  }
}
