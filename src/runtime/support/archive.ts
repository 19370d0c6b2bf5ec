/** A tar.gz that is whole whenever its writing ends: each file is a part of its own, and the space of the last part is reserved. */
import type { FileHandle } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { errnoOf } from '../../core/errors.ts';
import { anyHeader, paddingOf, TAR_END } from '../../formats/archive/header.ts';
import { createSemaphore } from '../../platform/limit/semaphore.ts';
import { writeFully } from '../../platform/files/write-fully.ts';

const compress = promisify(gzip);
/** The index needs less. */
const RESERVED = 1 << 20;
/** The limit of what is packed. */
const MAX_BYTES = 256 << 20;

/** Errors of a write for which there is no space, with what is reported. */
const NO_ROOM: ReadonlyMap<string | undefined, string> = new Map([
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the disk quota is reached'],
  ['EFBIG', 'the limit of file sizes is reached'],
]);

/** True for what {@link SupportArchive.add} returns if there is no space. */
export function isNoRoom(problem: string | undefined): boolean {
  return [...NO_ROOM.values()].some((one) => one === problem);
}

export interface SupportArchive {
  /** Adds a file. Returns why it is left out, if so: nothing of it is in the archive then. */
  readonly add: (path: string, data: Uint8Array) => Promise<string | undefined>;
  /** Adds the last file, for which there is space. */
  readonly end: (path: string, data: Uint8Array) => Promise<void>;
}

/** `folder` is before all paths. Throws what the system does if not even the reserved space is there. */
export async function openSupportArchive(
  file: FileHandle,
  folder: string,
  { maxBytes = MAX_BYTES }: { readonly maxBytes?: number } = {},
): Promise<SupportArchive> {
  let [end, allocated, bytes] = [0, 0, 0];
  /** Writes zeros, so that what is written over them needs no more space. */
  const allocate = async (upTo: number): Promise<void> => {
    try {
      await writeFully(file, Buffer.alloc(Math.max(0, upTo - allocated)), allocated);
      allocated = Math.max(allocated, upTo);
    } catch (error) {
      await file.truncate(allocated);
      throw error;
    }
  };
  const pack = async (path: string, data: Uint8Array, last: boolean): Promise<Buffer> => {
    const header = anyHeader({ type: 'File', path: `${folder}/${path}`, mode: 0o600, size: data.byteLength });
    return compress(Buffer.concat([header, data, Buffer.alloc(paddingOf(data.byteLength) + (last ? TAR_END : 0))]));
  };
  await allocate(RESERVED);
  const add: SupportArchive['add'] = async (path, data) => {
    if (bytes + data.byteLength > maxBytes) return 'the bundle is full';
    const part = await pack(path, data, false);
    try {
      await allocate(end + part.byteLength + RESERVED);
    } catch (error) {
      const reason = NO_ROOM.get(errnoOf(error));
      if (reason === undefined) throw error;
      return reason;
    }
    await writeFully(file, part, end);
    end += part.byteLength;
    bytes += data.byteLength;
    return undefined;
  };
  const turns = createSemaphore(1);
  return {
    add: async (path, data) => turns.run(async () => add(path, data)),
    end: async (path, data) => {
      const part = await pack(path, data, true);
      await writeFully(file, part, end);
      await file.truncate(end + part.byteLength);
    },
  };
}
