/** Reads plain files of packages and verifies them while they are read. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { constants, open, type FileHandle } from 'node:fs/promises';
import { CurlewError, errnoOf, fileError } from '../../core/errors.ts';
import type { PackageFile } from '../../core/package.ts';

/** The bytes of the first of these files that exists. Throws {@link wrongBytes} at the end if they do not match. */
export async function* readVerified(
  paths: readonly string[],
  wanted: Pick<PackageFile, 'size' | 'digest'>,
  signal: AbortSignal,
  hint?: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  const [path = '', ...others] = paths;
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw fileError(`read ${path}`, error);
    if (others.length === 0) throw wrongBytes(path, hint);
    yield* readVerified(others, wanted, signal, hint);
    return;
  }
  await using _open = file;
  const hash = createHash('sha256');
  const stream = createReadStream('', {
    fd: file,
    autoClose: false,
    start: 0,
    end: wanted.size,
    highWaterMark: 1 << 20,
  });
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    signal.throwIfAborted();
    hash.update(chunk);
    yield chunk;
  }
  if (`sha256:${hash.digest('hex')}` !== wanted.digest) throw wrongBytes(path, hint);
}

/** The hint for a file of an unpacked bundle, which no install repairs. */
export const UNPACK_AGAIN = 'unpack the bundle again';
const REPAIR = `${UNPACK_AGAIN}; the same curlew install repairs installed files`;

/** The error for a package's file that is missing or has other bytes, by default one that is installed. */
export function wrongBytes(path: string, hint = REPAIR): CurlewError {
  return new CurlewError('DIGEST_MISMATCH', `${path}: not the file that its package contains`, { hint });
}
