/** The parts of a bundle as one source of ranges: what reads bundles reads them so, and nothing needs to be joined. */
import type { RangeReadOptions, RangeSource } from '../../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../../formats/archive/read.ts';
import { CurlewError } from '../../core/errors.ts';
import type { PartsHead } from '../../core/parts.ts';
import { findParts, partsError, readHead, type FoundPart } from './parts-find.ts';

export interface PartsSource extends RangeSource, AsyncDisposable {
  readonly head: PartsHead;
  /** Where each part was found. */
  readonly paths: readonly string[];
}

interface OpenOptions {
  /** Opens a part. */
  readonly open?: typeof openFileSource;
  readonly signal: AbortSignal;
}

/**
 * Opens all parts of a head file, wherever in the folders they are. Missing ones, and those of another size, are told
 * (`NOT_FOUND`, `DIGEST_MISMATCH`), and so is a table of contents that is not the head file's. Digests of parts are not looked
 * at: what is read by the table of contents is held against that.
 */
export async function openParts(
  path: string,
  { folders, ...options }: OpenOptions & { readonly folders: readonly string[] },
): Promise<PartsSource> {
  const head = await readHead(path);
  const found = await findParts(head, folders, { digests: false, signal: options.signal });
  const problem = partsError(`open ${path}`, found);
  if (problem !== undefined) throw problem;
  return openFound(path, { head, found }, options);
}

/** The same with parts that have been found, every one of them. */
export async function openFound(
  path: string,
  { head, found }: { readonly head: PartsHead; readonly found: readonly FoundPart[] },
  { open = openFileSource, signal }: OpenOptions,
): Promise<PartsSource> {
  const parts: OpenPart[] = [];
  const close = async (): Promise<void> => {
    for (const { source } of parts) await source[Symbol.asyncDispose]();
  };
  try {
    let start = 0;
    for (const { part, path: file = '' } of found) {
      parts.push({ source: await open(file), start, end: start + part.size });
      start += part.size;
    }
    const source = { name: path, size: head.size, read: readerOf(parts) };
    const { tocDigest } = await readIndex(source, { signal });
    if (tocDigest !== head.tocDigest) throw otherContents(`open ${path}`);
    return { ...source, head, paths: found.map((one) => one.path ?? ''), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The parts are right one by one, but what they make is not what the head file says. */
export function otherContents(doing: string): CurlewError {
  return new CurlewError('DIGEST_MISMATCH', `${doing}: its parts make another bundle than the head file says`, {
    hint: 'their table of contents is not the one that the head file names: ask for both again',
  });
}

interface OpenPart {
  readonly source: RangeSource & AsyncDisposable;
  /** Of its bytes, in the whole. */
  readonly start: number;
  readonly end: number;
}

function readerOf(parts: readonly OpenPart[]): RangeSource['read'] {
  return async function* read(offset: number, length: number, options: RangeReadOptions) {
    const until = offset + length;
    for (const { source, start, end } of parts) {
      if (end <= offset || start >= until) continue;
      const from = Math.max(offset, start);
      yield* source.read(from - start, Math.min(until, end) - from, options);
    }
  };
}
