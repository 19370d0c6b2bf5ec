/** The parts of a bundle as one range source, so that readers of bundles need not join them. */
import type { RangeReadOptions, RangeSource } from '../../../formats/archive/entry.ts';
import { openFileSource, readIndex } from '../../../formats/archive/read.ts';
import { CurlewError } from '../../../core/errors.ts';
import type { PartsHead } from '../../../core/parts.ts';
import { findParts, partsError, readHead, type FoundPart } from './parts-find.ts';

export interface PartsSource extends RangeSource, AsyncDisposable {
  readonly head: PartsHead;
  /** Path of each part. */
  readonly paths: readonly string[];
}

interface OpenOptions {
  /** Opens a part. */
  readonly open?: typeof openFileSource;
  readonly signal: AbortSignal;
}

/**
 * Opens all parts of a head file in the folders. Missing parts are `NOT_FOUND`; parts of another size, and a table of contents
 * that does not match the head file, are `DIGEST_MISMATCH`. Does not check digests of parts, since readers verify payloads
 * with the table of contents.
 */
export async function openParts(
  path: string,
  { folders, ...options }: OpenOptions & { readonly folders: readonly string[] },
): Promise<PartsSource> {
  const head = await readHead(path);
  const parts = await findParts(head, folders, { digests: false, signal: options.signal });
  const problem = partsError(`open ${path}`, parts);
  if (problem !== undefined) throw problem;
  return openFound(path, { head, parts }, options);
}

/** The same for parts that are already found; all must exist. */
export async function openFound(
  path: string,
  { head, parts }: { readonly head: PartsHead; readonly parts: readonly FoundPart[] },
  { open = openFileSource, signal }: OpenOptions,
): Promise<PartsSource> {
  const opened: OpenPart[] = [];
  const close = async (): Promise<void> => {
    for (const { source } of opened) await source[Symbol.asyncDispose]();
  };
  try {
    let start = 0;
    for (const { part, path: file = '' } of parts) {
      opened.push({ source: await open(file), start, end: start + part.size });
      start += part.size;
    }
    const source = { name: path, size: head.size, read: readerOf(opened) };
    const { tocDigest } = await readIndex(source, { signal });
    if (tocDigest !== head.tocDigest) throw wrongContents(`open ${path}`);
    return { ...source, head, paths: parts.map((one) => one.path ?? ''), [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The error for valid parts that together do not match the head file. */
export function wrongContents(doing: string): CurlewError {
  return new CurlewError(
    'DIGEST_MISMATCH',
    `cannot ${doing}: its parts form a different bundle than the head file describes`,
    { hint: 'their table of contents does not match the head file: get both again from their source' },
  );
}

interface OpenPart {
  readonly source: RangeSource & AsyncDisposable;
  /** Range of its bytes in the whole. */
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
