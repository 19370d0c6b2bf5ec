/** A file as pieces that can be proved one by one, each as soon as all its bytes are there. */
import { digestOfAll } from '../formats/archive/digest-all.ts';
import type { ArchiveIndex, PlacedEntry, RangeSource } from '../formats/archive/entry.ts';
import { headerSize, paddingSize } from '../formats/archive/place.ts';
import { verifyEntry } from '../formats/archive/verify.ts';
import type { Digest } from '../core/digest.ts';
import { CurlewError } from '../core/errors.ts';
import type { Range } from './ranges.ts';

export interface Brick extends Range {
  /** Throws a CurlewError when the bytes of the file there are not the right ones. */
  readonly prove: (file: RangeSource, options: { readonly signal: AbortSignal }) => Promise<void>;
  /** Header, payload and padding of this entry. */
  readonly entry?: PlacedEntry | undefined;
}

/**
 * The bricks of an archive, each an entry with its header and padding, in order. They tile the file up to the TOC, or it
 * is `PACKAGE_INVALID`: that is seen from the TOC alone.
 */
export function archiveBricks(index: ArchiveIndex, name: string): readonly Brick[] {
  let at = 0;
  const bricks = index.entries.map((entry): Brick => {
    const offset = at;
    const payloadAt = offset + headerSize(entry);
    if (entry.packed > 0 && entry.offset !== payloadAt) throw untiled(name, entry.path);
    at = payloadAt + entry.packed + (entry.packed > 0 ? paddingSize(entry.size) : 0);
    return {
      offset,
      end: at,
      entry,
      prove: async (file, options) => {
        await verifyEntry(file, offset, entry, options);
      },
    };
  });
  if (at !== index.tocOffset) throw untiled(name, 'the end');
  return bricks;
}

function untiled(name: string, path: string): CurlewError {
  return new CurlewError('PACKAGE_INVALID', `${name}: ${path}: there are bytes that belong to no entry`, {
    hint: 'the file was altered: fetch it from somewhere else, or build it again',
  });
}

/** A file of which only the digest is known, or not even that. */
export function wholeBrick(size: number, digest: Digest | undefined): Brick {
  return {
    offset: 0,
    end: size,
    prove: async (file, { signal }) => {
      if (digest === undefined || (await digestOfAll(file, { signal })) === digest) return;
      throw new CurlewError('DIGEST_MISMATCH', `${file.name}: the digest does not match`);
    },
  };
}

/** The bricks that have bytes in a range. */
export function* bricksIn(bricks: readonly Brick[], { offset, end }: Range): Generator<Brick, void, undefined> {
  let low = 0;
  let high = bricks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bricks[middle]?.end ?? 0) <= offset) low = middle + 1;
    else high = middle;
  }
  for (let at = low; at < bricks.length; at += 1) {
    const brick = bricks[at];
    if (brick === undefined || brick.offset >= end) return;
    yield brick;
  }
}
